"""Which views of a sentence are made, and from which translations."""

from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from models.translation.config import TranslatorConfig
from models.translation.filters import FilterConfig

ORIGINAL = "original"
"""Method of the view that is the sentence itself."""


class TranslatedView(BaseModel):
    """A view made by one translation (``mt-de``: the sentence in German) or by a round trip (``bt-de``)."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    method: str = Field(pattern=r"^(bt|mt)-[a-z0-9-]+$")
    """Name of the view: ``bt-`` and the pivot language, or ``mt-`` and the language it is in."""

    hops: tuple[TranslatorConfig, ...] = Field(min_length=1, max_length=4)
    """Translators in the order in which the sentence passes them."""

    @model_validator(mode="after")
    def _hops_join(self) -> Self:
        for left, right in zip(self.hops, self.hops[1:], strict=False):
            if left.target_lang != right.source_lang:
                raise ValueError(
                    f"view {self.method}: a hop ends in {left.target_lang} and the next begins in {right.source_lang}; "
                    "each must begin where the last ended"
                )
        returns = self.hops[0].source_lang == self.hops[-1].target_lang
        if returns != self.method.startswith("bt-"):
            raise ValueError(
                f"view {self.method}: its hops lead from {self.hops[0].source_lang} to {self.hops[-1].target_lang}; "
                "a bt- view must come back to its language and an mt- view must not"
            )
        return self

    @property
    def lang(self) -> str:
        """Language that the view is in."""
        return self.hops[-1].target_lang


class AugmentConfig(BaseModel):
    """All views of one corpus."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    views: tuple[TranslatedView, ...] = ()
    """Views by translation; the paper takes round trips through German and French (BSL, section 3.2)."""

    original: bool = True
    """Whether the sentence itself is a view too."""

    filters: FilterConfig = FilterConfig()
    """Limits beyond which a translation, at any hop, is dropped."""

    @model_validator(mode="after")
    def _methods_differ(self) -> Self:
        methods = [view.method for view in self.views]
        if len(set(methods)) < len(methods):
            raise ValueError(f"views {', '.join(methods)}: a method stands there twice; each view needs its own name")
        if not methods and not self.original:
            raise ValueError("no views at all: set views, or original = true")
        return self


def round_trip(forward: TranslatorConfig, backward: TranslatorConfig) -> TranslatedView:
    """The back-translation through ``forward``'s target language."""
    return TranslatedView(method=f"bt-{forward.target_lang}", hops=(forward, backward))


def translation(hop: TranslatorConfig) -> TranslatedView:
    """The sentence in ``hop``'s target language, as the multilingual pairs need it."""
    return TranslatedView(method=f"mt-{hop.target_lang}", hops=(hop,))
