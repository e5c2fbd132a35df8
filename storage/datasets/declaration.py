"""Schema of dataset declarations: location, licence, splits, columns, suites."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from bsl.storage.readers.formats import Format
from bsl.storage.record import Record

TRAIN_DEV_TEST: Final = {"train": "train", "dev": "validation", "test": "test"}
"""Split → its usual name on the Hub."""


class HubArchive(Record):
    """An archive on the Hub with the original files of datasets."""

    hub_id: str
    file: str
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")


SENTEVAL: Final = HubArchive(
    hub_id="princeton-nlp/datasets-for-simcse",
    revision="e145e8bb659b2aa2669f32ef79cb4cdef6c58fef",
    file="senteval.tar",
)
"""SentEval's folder `data/downstream`, packed by SimCSE's authors: most papers since 2019 were scored on it.

Other copies differ. The folds depend on the order of rows, and only MRPC (GLUE) and SST-5 (SetFit) have Hub tables that
were made from SentEval's files. SetFit's copies of CR and SUBJ have a train and a test split, unlike SentEval;
rotten_tomatoes has MR's sentences before SentEval's tokenisation; GLUE's SST-2 hides its test labels.
"""


class Dataset(Record):
    """A declared dataset; on a mirror, `<name>/<split>.parquet`."""

    name: str
    """Name in sources and on mirrors."""
    licence: str
    """As stated upstream."""
    citation: str
    lang: str = "en"
    """ISO 639-1 code of its texts."""
    splits: dict[str, str] = Field(min_length=1)
    """Split → the Hub's name for it; several are joined by `+`."""
    hub_id: str | None = None
    """Repository on the Hub; None if no Hub table has the set."""
    hub_config: str | None = None
    revision: str | None = Field(None, pattern=r"^[0-9a-f]{40}$")
    texts: tuple[str, ...] = ()
    """Columns of text; if empty, the known shapes decide."""
    score_range: tuple[float, float] | None = None
    """Smallest and largest gold score of an STS set."""
    rows: dict[str, int] = Field({})
    """Split → number of scored pairs or labelled sentences in the papers; a copy with a different number is refused."""
    heading: str = ""
    """Column heading in the papers' tables; empty if the set has no column there."""
    suites: tuple[str, ...] = ()
    """Suites of the set. Within a suite, sets have the order of their declarations, which is that of the papers."""
    divided: bool = False
    """Whether its rows name subsets, over which some protocols average."""
    parallel: bool = False
    """Whether its subsets are translations of the same pairs, in the same order."""
    mteb: str = ""
    """The MTEB task with exactly the pairs of the set; empty if there is none."""
    mteb_subset: str = "default"
    """Subset of the task; subsets other than the default are named after their languages."""
    folder: str | None = None
    """Folder on a mirror; by default the name. Raw and tokenised versions of a set share a folder."""
    originals: dict[str, tuple[str, ...]] = Field({})
    """Split → glob patterns of the original files on a mirror; all are required, in this order."""
    original_format: Format | None = None
    order: str = ""
    """Column with each row's position in the original file, if the table has another order."""
    archive: HubArchive | None = None
    """Archive on the Hub with the original files, if the Hub has no table of the set."""
    remedy: str = ""
    """How to get the set if it was not found."""
