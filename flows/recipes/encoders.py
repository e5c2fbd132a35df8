"""The encoders that recipes start from or learn from, each pinned to a commit where a public source names one.

Where this was written the Hub could not be asked. A model without a commit takes the newest of its repository: keys
hold the digest of its files, so two runs still tell whether they began alike.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from models.encoder.config import EncoderConfig

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class PinnedEncoder:
    """An encoder of the Hub.

    Attributes:
        model: Its id.
        revision: Its commit; None where none is known.
        note: What it is in the paper, and where the commit stands or why there is none.
    """

    model: str
    revision: str | None
    note: str

    @property
    def config(self) -> EncoderConfig:
        """Mean-pooled, at its own length."""
        return EncoderConfig(model=self.model, revision=self.revision)


_CITED: Final = "commit cited by public code with the model's files"
_UNKNOWN: Final = "no commit in any source at hand; give one by `--set encoder.revision=…`"

_ENCODERS: Final = (
    PinnedEncoder(
        "google-bert/bert-base-uncased", "86b5e0934494bd15c9632b12f734a8a67f723594", f"BERT-base, Table 8; {_CITED}"
    ),
    PinnedEncoder(
        "FacebookAI/roberta-base", "e2da8e2f811d1448a5b465c236feacd80ffbac7b", f"RoBERTa-base, Table 1; {_CITED}"
    ),
    PinnedEncoder(
        "google-bert/bert-base-multilingual-cased",
        "3f076fdb1ab68d5b2880cb87a0886f315b8146f8",
        f"mBERT, section 4.3 and Appendix A; {_CITED}",
    ),
    PinnedEncoder(
        "sentence-transformers/bert-base-nli-mean-tokens", None, f"SBERT by softmax on NLI, Table 1; {_UNKNOWN}"
    ),
    PinnedEncoder(
        "sentence-transformers/roberta-base-nli-mean-tokens", None, f"SRoBERTa by softmax on NLI, Table 1; {_UNKNOWN}"
    ),
    PinnedEncoder(
        "sentence-transformers/nli-roberta-base-v2",
        None,
        f"by multiple negatives on NLI; start of the authors' code since 2022 (cfacb3b), of no row; {_UNKNOWN}",
    ),
    PinnedEncoder(
        "sentence-transformers/stsb-xlm-r-multilingual", None, f"XLM-R distilled from SBERT-nli-stsb; {_UNKNOWN}"
    ),
    PinnedEncoder("FacebookAI/xlm-roberta-base", None, f"XLM-R, Table 3; {_UNKNOWN}"),
    PinnedEncoder("sentence-transformers/LaBSE", None, f"LaBSE, Table 3; {_UNKNOWN}"),
    PinnedEncoder(
        "sentence-transformers/bert-base-nli-stsb-mean-tokens", None, f"SBERT-nli-stsb, teacher of Table 3; {_UNKNOWN}"
    ),
    PinnedEncoder("princeton-nlp/unsup-simcse-roberta-large", None, f"teacher of ConGen; {_UNKNOWN}"),
    PinnedEncoder("nreimers/MiniLM-L6-H384-uncased", None, f"MiniLM-L6, student of ConGen; {_UNKNOWN}"),
)
ENCODERS: Final[Mapping[str, PinnedEncoder]] = {encoder.model.partition("/")[2]: encoder for encoder in _ENCODERS}
"""Every encoder by its id without the owner."""
