"""Which views of a sentence are made, and from which translations."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from models.runtime.named_config import named
from models.translation.config import Backend, Precision, TranslatorConfig
from models.translation.filters import FilterConfig
from models.views.rewritings import CropView, DeletedView, EntailView, MaskedView, SynonymView

ORIGINAL = "original"
"""Method of the view that is the sentence itself."""


class TranslatedView(BaseModel):
    """A view made by one translation (`mt-de`: the sentence in German) or by a round trip (`bt-de`)."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    method: str = Field(pattern=r"^(bt|mt)-[a-z0-9-]+$")
    """Name of the view: `bt-` and the pivot language, or `mt-` and the language it is in."""

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


class GivenView(BaseModel):
    """A view that the sources bring in a column beside their sentences, such as translations or paraphrases."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    method: str = Field("given", pattern=r"^[a-z][a-z0-9-]*$")
    """Name of the view."""

    column: str = Field("view", min_length=1)
    """Column of the view; sources without it have no such view."""


AnyRewriting = Annotated[
    SynonymView | MaskedView | EntailView | DeletedView | CropView, Field(discriminator="name"), BeforeValidator(named)
]


class AugmentConfig(BaseModel):
    """All views of one corpus."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    translations: tuple[TranslatedView, ...] = ()
    """Views by translation; the paper takes round trips through German and French (BSL, section 3.2)."""

    backend: Backend | Literal["auto"] | None = None
    """Engine of every translator, in place of each hop's own; null leaves the hops theirs."""

    precision: Precision | Literal["auto"] | None = None
    """Number format of every translator, in place of each hop's own; null leaves the hops theirs."""

    beam: int | None = Field(None, ge=1, le=16)
    """Hypotheses that every translator keeps, in place of each hop's own; null leaves the hops theirs."""

    rewritings: tuple[AnyRewriting, ...] = ()
    """Views by other means: `synonym`, `mlm`, `entail`, `deleted`, `crop`; a bare name takes its defaults."""

    given: tuple[GivenView, ...] = ()
    """Views that the sources bring in a column beside their column of sentences; the first view of each sentence."""

    original: bool = True
    """Whether the sentence itself is a view too."""

    filters: FilterConfig = FilterConfig()
    """Limits beyond which a translation, at any hop, or a finished view is dropped."""

    @property
    def routes(self) -> tuple[TranslatedView, ...]:
        """`translations` with `backend`, `precision` and `beam` in every hop, as translators are found by."""
        words = {"backend": self.backend, "precision": self.precision, "beam": self.beam}
        given = {name: value for name, value in words.items() if value is not None}
        return tuple(
            view.model_copy(update={"hops": tuple(hop.model_copy(update=given) for hop in view.hops)})
            for view in self.translations
        )

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of all views."""
        return (
            *((ORIGINAL,) if self.original else ()),
            *(view.method for view in self.translations),
            *(method for view in self.rewritings for method in view.methods),
            *(view.method for view in self.given),
        )

    @property
    def needs_labels(self) -> bool:
        """Whether a view is made from labelled pairs."""
        return any(view.needs_labels for view in self.rewritings)

    @model_validator(mode="after")
    def _methods_differ(self) -> Self:
        if len(set(self.methods)) < len(self.methods):
            raise ValueError(
                f"views {', '.join(self.methods)}: a method stands there twice; each view needs its own name"
            )
        if not self.methods:
            raise ValueError("no views at all: set translations or rewritings, or original = true")
        return self


def round_trip(forward: TranslatorConfig, backward: TranslatorConfig) -> TranslatedView:
    """The back-translation through `forward`'s target language."""
    return TranslatedView(method=f"bt-{forward.target_lang}", hops=(forward, backward))


def translation(hop: TranslatorConfig) -> TranslatedView:
    """The sentence in `hop`'s target language, as the multilingual pairs need it."""
    return TranslatedView(method=f"mt-{hop.target_lang}", hops=(hop,))
