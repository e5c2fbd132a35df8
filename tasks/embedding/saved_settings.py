"""What a folder says of the encoder in it, taken over before anything is made that would not fit it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from models.encoder.architecture import architecture_of
from models.encoder.config import EncoderConfig
from models.errors import EncoderError
from storage.artifacts.refs import CheckpointRef
from storage.sources.model_sources import ResolvedModel, is_graph, settings_of
from tasks.embedding.encoders import described_folder

if TYPE_CHECKING:
    from tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)

_MODULES = "modules.json"  # what makes a folder one of sentence-transformers
_SAID = ("pooling", "normalize", "lower_case")


def is_bare(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Whether a folder is a transformer alone, which nobody has trained to compare sentences."""
    return not (settings_of(described_folder(site.open_store(), start)) / _MODULES).is_file()


def check_learns(start: CheckpointRef | ResolvedModel) -> None:
    """Refuse to train what cannot be trained, before anything is made for it.

    Raises:
        EncoderError: the start is an ONNX graph.
    """
    if isinstance(start, ResolvedModel) and is_graph(start.described):
        raise EncoderError(
            f"{start.described}: an ONNX graph gives vectors but no gradients, expected weights to train; start from "
            "the folder that it was exported from"
        )


def can_drop(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Whether a start has dropout to be set: a table of tokens or words has none."""
    if _is_only_planned(site, start):
        return False
    if is_bare(site, start):
        return True
    from models.encoder.serialization.settings import read_saved  # imports transformers

    return read_saved(described_folder(site.open_store(), start)).backbone.kind == "Transformer"


def taken_over(site: RunContext, start: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EncoderConfig:
    """The configuration with what the start's folder says where nothing else was asked for.

    Raises:
        EncoderError: something else was asked for, or the folder describes an encoder that cannot be computed here.
    """
    if _is_only_planned(site, start):
        return config
    folder = described_folder(site.open_store(), start)
    if is_bare(site, start):
        if (folder / "config.json").is_file():
            architecture_of(folder)  # raises where it has none
        return config
    from models.encoder.serialization.settings import check_settings, read_saved  # imports transformers

    saved = read_saved(folder)
    left = {name for name in _SAID if getattr(config, name) == EncoderConfig.model_fields[name].default}
    said = {name: getattr(saved, name) for name in left if getattr(saved, name) is not None}
    changed = {name: value for name, value in said.items() if value != getattr(config, name)}
    if changed:
        logger.info("%s: taken over from the folder: %s", folder, changed)
    settled = config.model_copy(update=changed)
    check_settings(saved, settled)
    return settled


def as_saved(site: RunContext, encoder: CheckpointRef | ResolvedModel, config: EncoderConfig) -> EncoderConfig:
    """A teacher's configuration as its folder has it; that of a bare transformer as it is given."""
    if _is_only_planned(site, encoder) or is_bare(site, encoder):
        return config
    from models.encoder.serialization.settings import saved_config  # imports transformers

    described = saved_config(described_folder(site.open_store(), encoder), config.model) or config
    return described.model_copy(update={"max_length": config.max_length or described.max_length})


def _is_only_planned(site: RunContext, start: CheckpointRef | ResolvedModel) -> bool:
    """Whether it is a file of word vectors that nobody has read into the store yet."""
    return isinstance(start, CheckpointRef) and site.open_store().defect(start) is not None
