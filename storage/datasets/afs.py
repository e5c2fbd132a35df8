"""Argument Facet Similarity."""

from __future__ import annotations

from typing import Final

from storage.datasets.declaration import Dataset
from storage.readers.benchmarks.afs import TOPICS, topic_file

AFS_SETS: Final = (
    Dataset(
        name="afs",
        licence="not stated; ask its authors",
        citation="Misra et al., 2016. Measuring the similarity of sentential arguments in dialogue. SIGDIAL.",
        splits={"all": "all"},
        heading="AFS",
        suites=("afs",),
        originals={"all": tuple(topic_file("afs", topic) for topic in TOPICS)},
        original_format="afs",
        remedy="put ArgPairs_GC.csv, ArgPairs_GM.csv and ArgPairs_DP.csv of its authors into the mirror's folder afs/",
    ),
)
