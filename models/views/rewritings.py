"""Settings of the views that need no translator; `AnyRewriting` in config.py is their table."""

from __future__ import annotations

from typing import ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Rewriting(BaseModel):
    """A view that needs no translator; `name` says which one a section is for, and is its method."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    needs_labels: ClassVar[bool] = False
    """Whether it is made from the labelled pairs of the sources."""
    purpose: ClassVar[str] = ""
    """What its models are for, on a model card."""
    lexicon: ClassVar[tuple[str, str, str] | None] = None
    """What a lexicon that it uses is for, its name and its licence."""

    name: str

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the views."""
        return (self.name,)

    @property
    def models(self) -> tuple[tuple[str, str | None], ...]:
        """Pretrained models that it uses, each with its revision."""
        return ()


class SynonymView(Rewriting):
    """The sentence with some of its words replaced by synonyms out of WordNet (BSL, section 4.4)."""

    lexicon = ("synonyms", "WordNet 3.0", "WordNet License")

    name: Literal["synonym"] = "synonym"

    share: float = Field(0.3, gt=0, le=1)
    """Share of all words replaced (paper: 30 %), rounded and at least one, drawn from those that have a synonym; where
    these are fewer, all of them."""

    inflect: bool = True
    """Whether a synonym takes the form of its word ("cats" → "felines"); the paper's examples (Tables 5 and 11) show
    bare lemmas."""

    senses: int | None = Field(None, ge=1)
    """Most frequent senses of a word that synonyms are taken from; None takes all, as the paper's examples show."""

    seed: int = Field(0, ge=0, lt=2**32)
    """With the sentence's id it decides which words go and what takes their places."""


class MaskedView(Rewriting):
    """The sentence with some of its tokens masked and written anew by a masked language model (BSL, section 4.4)."""

    purpose = "refilled tokens"

    name: Literal["mlm"] = "mlm"

    model: str = Field("FacebookAI/roberta-base", min_length=1)
    """Where the model comes from: a local folder, `embedded:<name>` or a Hub id (paper: RoBERTa-base)."""

    revision: str | None = "e2da8e2f811d1448a5b465c236feacd80ffbac7b"
    """Commit of a Hub id; None for folders and embedded models, whose files are digested instead."""

    share: float = Field(0.2, gt=0, le=1)
    """Share of the tokens masked (paper: 20 %), at least one; special tokens do not count."""

    top_k: int = Field(10, ge=1, le=1000)
    """A token is drawn from this many most probable ones by their probabilities; 1 takes the most probable."""

    seed: int = Field(0, ge=0, lt=2**32)
    """With the sentence's id it decides which tokens are masked and what is drawn."""

    lang: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """Language of the sentences that get the view, ISO 639-1."""

    @property
    def models(self) -> tuple[tuple[str, str | None], ...]:
        """The masked language model."""
        return ((self.model, self.revision),)


class DeletedView(Rewriting):
    """The sentence with most of its words left out: the damage that TSDAE repairs (Wang et al., 2021)."""

    name: Literal["deleted"] = "deleted"

    share: float = Field(0.6, gt=0, lt=1)
    """Probability of each word to go (published: 0.6); one stays at least."""

    seed: int = Field(0, ge=0, lt=2**32)
    """With the sentence's id it decides which words go. A sentence is damaged once, whatever the epochs."""

    lang: str = Field("en", pattern=r"^[a-z]{2,3}$")
    """Language of the sentences that get the view, ISO 639-1; words are cut by the rules of English."""


class CropView(Rewriting):
    """Runs of the sentence's words (González-Márquez et al., 2025): views for any language, without a translator."""

    name: Literal["crop"] = "crop"

    crops: int = Field(2, ge=1, le=8)
    """Crops of one sentence, called `crop`, `crop-2` and so on; each is drawn for itself."""

    least: float = Field(0.4, gt=0, le=1)
    """Smallest share of the words kept; two words at least, and a sentence with no more stays whole."""

    most: float = Field(0.9, gt=0, le=1)
    """Largest share of the words kept; the share of each crop is drawn evenly between the two."""

    seed: int = Field(0, ge=0, lt=2**32)
    """With the sentence's id it decides how much is kept and from where. A sentence is cropped once, whatever the
    epochs."""

    lang: str | None = Field(None, pattern=r"^[a-z]{2,3}$")
    """Language of the sentences that get the views, ISO 639-1; None crops all."""

    @model_validator(mode="after")
    def _least_is_less(self) -> Self:
        if self.least > self.most:
            raise ValueError(
                f"view crop keeps at least {self.least} and at most {self.most} of the words, expected least ≤ most"
            )
        return self

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the views."""
        return ("crop", *(f"crop-{number}" for number in range(2, self.crops + 1)))


class EntailView(Rewriting):
    """What annotators wrote as following from the sentence (BSL, section 4.4: NLI_entail); needs labelled sources."""

    needs_labels = True

    name: Literal["entail"] = "entail"

    hypotheses: int = Field(1, ge=1, le=8)
    """Most hypotheses of one premise that become views, called `entail`, `entail-2` and so on."""

    seed: int = Field(0, ge=0, lt=2**32)
    """Decides which hypotheses come first where a premise has several."""

    @property
    def methods(self) -> tuple[str, ...]:
        """Names of the views."""
        return ("entail", *(f"entail-{number}" for number in range(2, self.hypotheses + 1)))
