"""Pretrained models that a run takes from outside: found before the first stage, named in keys by their bytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from storage.weights import ResolvedModel, resolve_model

if TYPE_CHECKING:
    from models.encoder.config import EncoderConfig
    from tasks.site import Site


def resolve_encoder(site: Site, config: EncoderConfig) -> tuple[ResolvedModel, EncoderConfig]:
    """Find the transformer that training starts from.

    Returns:
        The model, and the configuration with the model's identity in the place of its name: a folder's path or an
        unpinned revision must not decide a key.
    """
    found = resolve_named_model(site, config.model, config.revision)
    return found, config.model_copy(update={"model": found.identity, "revision": None})


def resolve_named_model(site: Site, model: str, revision: str | None) -> ResolvedModel:
    """Find a model by folder, `embedded:` name or Hub id; a mirror may stand in for the Hub."""
    return resolve_model(model, revision, site.mirror, Path(site.cache) if site.cache else None)
