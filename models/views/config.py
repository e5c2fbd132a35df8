"""Settings of views: the methods that make them, and their translators."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from bsl.models.translation.config import Backend, Precision, TranslatorConfig
from bsl.models.translation.filters import FILTERS, AnyFilter
from bsl.storage.filesystem.urls import Named
from bsl.storage.record import Record, named


class ViewMethod(Record):
    """Settings of a view that needs no translator; `name` selects the view and is its method."""

    needs_labels: ClassVar[bool] = False
    """Whether the view is made from the labelled pairs of the sources."""
    purpose: ClassVar[str] = ""
    """Purpose of the view's models, on a model card."""
    lexicon: ClassVar[tuple[str, str, str] | None] = None
    """Purpose, name and licence of the lexicon that the view uses."""

    name: str

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the views."""
        return (self.name,)

    @property
    def models(self) -> tuple[tuple[str, str | None], ...]:
        """Pretrained models that the view uses, each with its revision."""
        return ()


class SynonymView(ViewMethod):
    """The sentence with some of its words replaced by synonyms from WordNet (BSL, section 4.4)."""

    lexicon = ("synonyms", "WordNet 3.0", "WordNet License")

    name: Literal["synonym"] = "synonym"

    share: float = Field(0.3, gt=0, le=1)
    """Share of all words to replace (paper: 30 %), rounded, at least one, drawn from the words that have a synonym; if
    these are fewer, all of them."""

    inflect: bool = True
    """Whether a synonym takes the form of its word ("cats" → "felines"); the paper's examples (Tables 5 and 11) show
    bare lemmas."""

    senses: int | None = Field(None, ge=1)
    """Number of a word's most frequent senses that synonyms are taken from; None uses all, as the paper's examples
    show."""

    seed: int = Field(0, ge=0, lt=2**32)
    """Seed that, with the sentence's id, decides the replaced words and their synonyms."""


class MaskedView(ViewMethod):
    """The sentence with some of its tokens masked and refilled by a masked language model (BSL, section 4.4)."""

    purpose = "refilled tokens"

    name: Literal["mlm"] = "mlm"

    model: Named = "FacebookAI/roberta-base"
    """Where the model comes from: a local folder, `embedded:<name>` or a Hub id (paper: RoBERTa-base)."""

    revision: str | None = "e2da8e2f811d1448a5b465c236feacd80ffbac7b"
    """Commit of a Hub id; None for folders and embedded models, whose files are digested instead."""

    share: float = Field(0.2, gt=0, le=1)
    """Share of the tokens masked (paper: 20 %), at least one; special tokens do not count."""

    top_k: int = Field(10, ge=1, le=1000)
    """Number of most probable tokens to draw from, by their probabilities; 1 uses the most probable."""

    seed: int = Field(0, ge=0, lt=2**32)
    """Seed that, with the sentence's id, decides the masked tokens and their replacements."""

    lang: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """Language of the sentences that get the view, ISO 639-1."""

    @property
    def models(self) -> tuple[tuple[str, str | None], ...]:
        """The masked language model."""
        return ((self.model, self.revision),)


class DeletedView(ViewMethod):
    """The sentence with most of its words deleted, which TSDAE reconstructs (Wang et al., 2021)."""

    name: Literal["deleted"] = "deleted"

    share: float = Field(0.6, gt=0, lt=1)
    """Probability of deleting a word (published: 0.6); at least one word stays."""

    seed: int = Field(0, ge=0, lt=2**32)
    """Seed that, with the sentence's id, decides which words are deleted. All epochs use the same deletions."""

    lang: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """Language of the sentences that get the view, ISO 639-1; the word tokenizer uses English rules."""


class CropView(ViewMethod):
    """Spans of the sentence's words (González-Márquez et al., 2025): views for any language, without a translator."""

    name: Literal["crop"] = "crop"

    crops: int = Field(2, ge=1, le=8)
    """Crops per sentence, called `crop`, `crop-2` and so on; each is drawn independently."""

    least: float = Field(0.4, gt=0, le=1)
    """Smallest share of the words in a crop; at least two words. A sentence of up to two words is unchanged."""

    most: float = Field(0.9, gt=0, le=1)
    """Largest share of the words in a crop; each crop's share is drawn uniformly between the two."""

    seed: int = Field(0, ge=0, lt=2**32)
    """Seed that, with the sentence's id, decides length and place of the crops. All epochs use the same crops."""

    lang: str | None = Field(None, pattern=r"^[a-z]{2,3}$")
    """Language of the sentences that get the views, ISO 639-1; None crops all."""

    @model_validator(mode="after")
    def _least_is_less(self) -> Self:
        if self.least > self.most:
            raise ValueError(f"view crop: least is {self.least}, expected at most the value of most ({self.most})")
        return self

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the views."""
        return ("crop", *(f"crop-{number}" for number in range(2, self.crops + 1)))


class EntailView(ViewMethod):
    """Hypotheses that annotators wrote as entailed (BSL, section 4.4: NLI_entail); needs labelled sources."""

    needs_labels = True

    name: Literal["entail"] = "entail"

    hypotheses: int = Field(1, ge=1, le=8)
    """Largest number of views per premise, called `entail`, `entail-2` and so on."""

    seed: int = Field(0, ge=0, lt=2**32)
    """Seed of the order of a premise's hypotheses."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the views."""
        return ("entail", *(f"entail-{number}" for number in range(2, self.hypotheses + 1)))


ORIGINAL = "original"
"""Method of the view that is the sentence itself."""


class TranslatedView(Record):
    """A view made by one translation (`mt-de`: the sentence in German) or by a round trip (`bt-de`)."""

    method: str = Field(pattern=r"^(bt|mt)-[a-z0-9-]+$")
    """Name of the view: `bt-` and the pivot language, or `mt-` and the target language."""

    hops: tuple[TranslatorConfig, ...] = Field(min_length=1, max_length=4)
    """Translators in the order of their use."""

    @model_validator(mode="after")
    def _hops_join(self) -> Self:
        for left, right in zip(self.hops, self.hops[1:], strict=False):
            if left.target_lang != right.source_lang:
                raise ValueError(
                    f"view {self.method}: a hop translates into {left.target_lang}, but the next one translates from "
                    f"{right.source_lang}, expected the same language"
                )
        returns = self.hops[0].source_lang == self.hops[-1].target_lang
        if returns != self.method.startswith("bt-"):
            raise ValueError(
                f"view {self.method}: its hops lead from {self.hops[0].source_lang} to {self.hops[-1].target_lang}; a "
                "bt- view must end in its first language, an mt- view in another one"
            )
        return self

    @property
    def lang(self) -> str:
        """Language of the view."""
        return self.hops[-1].target_lang


class GivenView(Record):
    """A view from another column of the sources, such as translations or paraphrases."""

    method: str = Field("given", pattern=r"^[a-z][a-z0-9-]*$")
    """Name of the view."""

    column: str = Field("view", min_length=1)
    """Column of the view; sources without it have no such view."""


AnyViewMethod = Annotated[
    SynonymView | MaskedView | EntailView | DeletedView | CropView, Field(discriminator="name"), BeforeValidator(named)
]


class AugmentConfig(Record):
    """All views of one corpus."""

    translations: tuple[TranslatedView, ...] = ()
    """Views by translation; the paper uses round trips through German and French (BSL, section 3.2)."""

    backend: Backend | Literal["auto"] | None = None
    """Engine of every translator, overriding the hops' settings; null uses the hops' settings."""

    precision: Precision | Literal["auto"] | None = None
    """Number format of every translator, overriding the hops' settings; null uses the hops' settings."""

    beam: int | None = Field(None, ge=1, le=16)
    """Beam size of every translator, overriding the hops' settings; null uses the hops' settings."""

    rewritings: tuple[AnyViewMethod, ...] = ()
    """Views by other methods: `synonym`, `mlm`, `entail`, `deleted`, `crop`; a bare name uses its defaults."""

    given: tuple[GivenView, ...] = ()
    """Views from another column of the sources; the first view of each sentence counts."""

    original: bool = True
    """Whether the sentence itself is a view too."""

    filters: tuple[AnyFilter, ...] = FILTERS
    """Filters of translations, at any hop, and of finished views; a bare name uses its defaults, [] drops no text."""

    @property
    def routes(self) -> tuple[TranslatedView, ...]:
        """`translations` with `backend`, `precision` and `beam` set in every hop."""
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
            raise ValueError(f"views {', '.join(self.methods)}: a name occurs twice. Give each view a different name.")
        if not self.methods:
            raise ValueError("no views. Set translations or rewritings, or original = true.")
        return self


def round_trip(forward: TranslatorConfig, backward: TranslatorConfig) -> TranslatedView:
    """Return the back-translation through `forward`'s target language."""
    return TranslatedView(method=f"bt-{forward.target_lang}", hops=(forward, backward))


def translation(hop: TranslatorConfig) -> TranslatedView:
    """Return the view in `hop`'s target language, which multilingual pairs need."""
    return TranslatedView(method=f"mt-{hop.target_lang}", hops=(hop,))
