"""A translator that was found: what decides its translations, and how another process finds the same one."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.metadata import version
from typing import TYPE_CHECKING, Annotated

from pydantic import BaseModel, ConfigDict, JsonValue

from models.translation.backends import check_shortlist, resolve
from models.translation.config import TRANSLATION_VERSION, ShortlistConfig, TranslatorConfig
from storage.keys import NotInKey
from storage.memory import translator_fingerprint
from storage.refs import ShortlistRef
from storage.weights import ResolvedModel
from tasks.assets.pins import embedded_pins
from tasks.pretrained import resolve_named_model
from tasks.sending import received_model
from tasks.stage.machine import device_of

if TYPE_CHECKING:
    from storage.store import Store
    from tasks.site import Site

_SHORTLIST = "shortlist"  # in identities: the settings while the pieces are not known, then their digest


class Hop(BaseModel):
    """One translator that was found, ready to be loaded."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    identity: dict[str, JsonValue]
    """All that decides its translations: the model's content, the engine with its version, and every setting."""
    config: Annotated[TranslatorConfig, NotInKey]
    """The settings with backend and precision as they are on this machine; in the identity, the model's content stands
    for its name."""
    model: Annotated[ResolvedModel, NotInKey]
    """Its weights, which are fetched when a shard first needs them."""
    shortlist: Annotated[ShortlistConfig | None, NotInKey] = None
    """How the pieces that it may write are to be found; None where that is done, or is not to be."""
    listed: Annotated[ShortlistRef | None, NotInKey] = None
    """The pieces that it may write; None for all that the model has."""
    pieces: Annotated[tuple[str, ...] | None, NotInKey] = None
    """What stands in `listed`."""

    @property
    def fingerprint(self) -> str:
        """Name of the translator's memory."""
        return translator_fingerprint(self.identity)

    @property
    def direction(self) -> str:
        """For people: `en→de`, or `en→de (2,407 pieces)`."""
        held = "" if self.pieces is None else f" ({len(self.pieces):,} pieces)"
        return f"{self.config.source_lang}→{self.config.target_lang}{held}"

    @property
    def whole(self) -> Hop:
        """The same translator with all pieces that the model has."""
        identity = {name: value for name, value in self.identity.items() if name != _SHORTLIST}
        return Hop(identity=identity, config=self.config, model=self.model)

    def held_to(self, listed: ShortlistRef, store: Store) -> Hop:
        """The same translator with the pieces of a shortlist alone.

        Its fingerprint holds the pieces themselves: a shortlist that is made again and differs is another translator.
        Pins stay the whole model's, which is tried by them.
        """
        pieces = tuple(sorted(store.scan(listed).collect()["piece"]))
        whole = self.whole
        return whole.model_copy(
            update={
                "identity": {**whole.identity, _SHORTLIST: hashlib.sha256("\n".join(pieces).encode()).hexdigest()},
                "listed": listed,
                "pieces": pieces,
            }
        )


def find_hop(site: Site, config: TranslatorConfig, shortlist: ShortlistConfig | None = None) -> Hop:
    """Find a translator's model and fingerprint it.

    Args:
        site: Mirror and device.
        config: The translator.
        shortlist: How to find the pieces that it may write; None for all.

    Raises:
        SourceError, AssetError: the model is nowhere to be had.
        TranslatorLoadError: this machine cannot run it as configured, or not with a shortlist.
    """
    device = device_of(site)
    hop = _hop(resolve_named_model(site, config.model, config.revision), config, device)
    if shortlist is None:
        return hop
    check_shortlist(hop.config, device)
    identity = {**hop.identity, _SHORTLIST: shortlist.model_dump(mode="json")}
    return hop.model_copy(update={"identity": identity, "shortlist": shortlist})


@lru_cache(maxsize=8)  # a folder's digest is taken once a process, not once a shard
def received_hop(site: Site, config: TranslatorConfig, listed: str | None) -> Hop:
    """The translator that another process sent.

    Args:
        site: Store, mirror and device.
        config: The translator, its model as `sent_model` names it.
        listed: Key of its shortlist, if there is one.
    """
    hop = _hop(received_model(site, config.model, config.revision), config, device_of(site))
    return hop if listed is None else hop.held_to(ShortlistRef(key=listed), site.open_store())


def _hop(model: ResolvedModel, config: TranslatorConfig, device: str) -> Hop:
    settled = resolve(config, device)
    engine = version(settled.backend)
    identity: dict[str, JsonValue] = {
        **settled.model_dump(mode="json", exclude={"model", "revision", "pinned"}),
        "model": model.identity,
        "backend_version": engine,
        "translation_version": TRANSLATION_VERSION,
    }
    pinned = config.pinned or embedded_pins(settled)
    return Hop(identity=identity, config=settled.model_copy(update={"pinned": pinned}), model=model)
