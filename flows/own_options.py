"""Options of `bsl adapt` and `bsl sweep own` that are settings.

They are separate from the settings of the stages, whose import takes longer than printing the help.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, field_validator

from bsl.models.evaluation.uses import UseName
from bsl.models.translation.config import CATALOGS, TranslatorConfig
from bsl.storage.filesystem.spelling import did_you_mean
from bsl.storage.filesystem.urls import Public
from bsl.storage.record import Record
from bsl.storage.sources.reading_config import TEXT_FORMS, ReadingConfig

DEFAULT_ENCODER: Final = "embedded:mini-sentence"


class AdaptOptions(ReadingConfig):
    """The settings of `bsl adapt` that are also options."""

    used_for: UseName | None = None
    """Use of the encoder that decides the verdict; by default classify for labels of classes, similarity for scored
    pairs. `classify`: a classifier is trained on the vectors; `group`: texts of one class are near each other;
    `similarity`: cosines of pairs; `search`: in your text."""
    accept: bool = False
    """Without labels: export the adapted encoder, although no gain is proved. After training on views its share of the
    trained weights is `proof.share`. It is not exported if a general set loses too much."""
    views: Literal["auto", "crops", "round-trips", "both", "dropout"] = "auto"
    """Views to train on if training uses no labels; auto: crops. With `dropout`, each sentence is paired with itself
    under dropout (as in SimCSE). Round trips take longest and improved labels most
    (docs/research-log.md)."""
    translators: str | dict[str, TranslatorConfig] = "embedded"
    """Translators of round trips: embedded, opus-mt, or '' for none. Or a mapping from language pairs, such as `en-de`,
    to translators."""

    @field_validator("translators")
    @classmethod
    def _are_known(cls, named: str | dict[str, TranslatorConfig]) -> str | dict[str, TranslatorConfig]:
        if isinstance(named, str) and named and named not in CATALOGS:
            raise ValueError(
                f"unknown name.{did_you_mean(named, CATALOGS)} Expected {', '.join(CATALOGS)}, or '' for none"
            )
        return named


class OwnRequest(Record):
    """The user's text and the encoder to start from, as options of `bsl sweep own`."""

    text: tuple[Public, ...] = Field(min_length=1, description=f"{TEXT_FORMS}.")
    labels: Public | None = None
    """File of texts with a class, or of scored pairs; their test rows decide."""
    encoder: Public = DEFAULT_ENCODER
    """Original encoder: folder, Hub id, embedded:<name>, checkpoint/<key> or report/<key>."""
    translators: Literal["embedded", "opus-mt"] = "embedded"
    """Translators of round trips."""
