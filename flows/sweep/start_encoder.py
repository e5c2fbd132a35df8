"""An encoder that methods start from: found, read as its folder says, and what cannot be tried from it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from flows.sweep.methods import SMALL, Start
from models.encoder.config import EncoderConfig
from storage.sources.model_sources import settings_of
from tasks.embedding.encoders import as_saved, can_drop, described_folder, is_bare, resolve_encoder

if TYPE_CHECKING:
    from collections.abc import Iterable

    from flows.sweep.method_settings import FieldSettings
    from flows.sweep.methods import Method
    from storage.artifacts.refs import CheckpointRef
    from storage.sources.model_sources import ResolvedModel
    from tasks.stage.run_context import RunContext

_KINDS: Final = {
    "small": "a small masked language model",
    "raw": "a masked language model",
    "trained": "a trained sentence encoder",
}


@dataclass(frozen=True)
class Contender:
    """An encoder that methods start from.

    Attributes:
        name: as a person names it.
        encoder: where its files are.
        config: how it is read.
        start: what kind it is, which decides the learning rates.
        heads: its modules after pooling; `truncate_dim` where it keeps the first dimensions alone.
        drops: whether it has dropout to be set.
    """

    name: str
    encoder: CheckpointRef | ResolvedModel
    config: EncoderConfig
    start: Start
    heads: tuple[str, ...] = ()
    drops: bool = True

    @property
    def title(self) -> str:
        """What tables call it."""
        return EncoderConfig(model=self.name).short_name

    @property
    def said(self) -> str:
        """For notes."""
        return _KINDS[self.start]


def contender_of(site: RunContext, name: str) -> Contender:
    """Find an encoder, read as its folder says.

    Raises:
        SourceError, AssetError, ArtifactMissingError: nobody has it.
    """
    encoder, named = resolve_encoder(site, EncoderConfig(model=name))
    folder = described_folder(site.open_store(), encoder)
    if not is_bare(site, encoder):
        from models.encoder.serialization.settings import read_saved  # transformers

        saved = read_saved(folder)
        heads = tuple(head.kind for head in saved.sentence_heads) + ("truncate_dim",) * (saved.kept is not None)
        return Contender(name, encoder, as_saved(site, encoder, named), "trained", heads, can_drop(site, encoder))
    width = json.loads((settings_of(folder) / "config.json").read_text(encoding="utf-8")).get("hidden_size", SMALL + 1)
    return Contender(name, encoder, named, "small" if width <= SMALL else "raw")


def inapplicable(methods: Iterable[Method], contender: Contender, settings: FieldSettings) -> dict[str, str]:
    """Why some methods cannot be tried on this text from this encoder, by their names."""
    reasons = {}
    for method in methods:
        if method.views == "round trips" and not settings.trips:
            reasons[method.name] = (
                f"not tried: no translator of {settings.translators!r} knows a way from {settings.lang!r} and back"
            )
        elif method.headless and contender.heads:
            reasons[method.name] = (
                f"not tried: it holds token vectors against their mean, and {contender.title} has "
                f"{', '.join(contender.heads)} after pooling; start from an encoder without"
            )
        elif "dropout" in method.encoder and not contender.drops:
            reasons[method.name] = (
                f"not tried: it reads under dropout, and {contender.title} is a table of words, which has none; start "
                "from a transformer"
            )
    return reasons
