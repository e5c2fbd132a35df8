"""What a declaration of a data set says."""

from __future__ import annotations

from typing import Final

from pydantic import Field

from storage.readers.formats import Format
from storage.record import Record

TRAIN_DEV_TEST: Final = {"train": "train", "dev": "validation", "test": "test"}
"""Split → the name that most of the Hub gives it."""


class MtebTask(Record):
    """The task of MTEB that has the very pairs of a set."""

    name: str
    """As MTEB calls it."""
    subset: str = "default"
    """Which of the task's subsets; one that is not the default is named after its languages."""


class HubArchive(Record):
    """An archive on the Hub that holds sets' own files."""

    hub_id: str
    """Its repository."""
    file: str
    """Its name there; a tar file."""
    revision: str = Field(pattern=r"^[0-9a-f]{7,40}$")
    """The Hub commit that is read, or its first digits."""


SENTEVAL: Final = HubArchive(
    hub_id="princeton-nlp/datasets-for-simcse", revision="e145e8b",
    file="senteval.tar",
)  # fmt: skip
"""SentEval's folder `data/downstream`, packed by SimCSE's authors: what most papers since 2019 were scored on.

Of one set alone a table of the Hub is known to have SentEval's rows, and the order that decides the folds: MRPC, which
GLUE's tables were made of. SetFit's copies of CR and SUBJ are cut into a train and a test set that SentEval has not;
rotten_tomatoes has MR's sentences before SentEval's tokens; GLUE's SST-2 hides the labels of its test.
"""


class Dataset(Record):
    """A declared data set. On a mirror it is the folder `<name>` with `<split>.parquet` in it."""

    name: str
    """How sources and mirrors call it."""
    licence: str
    """As stated upstream."""
    citation: str
    """Whom to cite."""
    lang: str = "en"
    """ISO 639-1 code of its texts."""
    splits: dict[str, str] = Field(min_length=1)
    """Split → the Hub's name for it; several are joined by `+`."""
    hub_id: str | None = None
    """Where it is on the Hub; None for a set that only mirrors hold."""
    hub_config: str | None = None
    """Which of the Hub's configurations."""
    revision: str | None = Field(None, pattern=r"^[0-9a-f]{40}$")
    """The Hub commit that is read."""
    texts: tuple[str, ...] = ()
    """Columns of text; by the known shapes if empty."""
    score_range: tuple[float, float] | None = None
    """Smallest and largest gold score of an STS set."""
    rows: dict[str, int] = Field({})
    """Split → its scored pairs or labelled sentences, as its papers count them; a copy with others is refused."""
    heading: str = ""
    """What the papers' tables call it; a set without one has no column there."""
    suites: tuple[str, ...] = ()
    """Suites that it belongs to; a suite is ordered as its sets are declared: as the papers print them."""
    divided: bool = False
    """Whether its rows name subsets, over which protocols take means."""
    mteb: MtebTask | None = None
    """Where its figures can be compared with MTEB's."""
    folder: str | None = None
    """Folder on a mirror; the name unless given, so that two forms of one text share a file."""
    originals: dict[str, tuple[str, ...]] = Field({})
    """Split → where the distribution's own files may lie on a mirror, as patterns that are all needed, in order."""
    original_format: Format | None = None
    """Format of those files."""
    order: str = ""
    """Column with the place of each row among those of the distribution's own file, where tables have another order."""
    archive: HubArchive | None = None
    """Where the Hub has those files, if it has no table of the set."""
    remedy: str = ""
    """What to do where nobody has it."""
