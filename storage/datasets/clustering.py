"""Two of MTEB's clustering tasks (Muennighoff et al., 2023): texts in groups that nobody is told."""

from __future__ import annotations

from typing import Final

from storage.datasets.declaration import Dataset

_MTEB: Final = "Sets of MTEB: Muennighoff et al., 2023. MTEB: Massive text embedding benchmark. EACL."


def _clusters(name: str, heading: str, licence: str, citation: str, revision: str) -> Dataset:
    return Dataset(
        name=name,
        licence=licence,
        citation=f"{citation} {_MTEB}",
        splits={"test": "test"},
        hub_id=f"mteb/{name}-clustering",
        revision=revision,
        heading=heading,
        suites=("clustering",),
    )


CLUSTERING: Final = (
    _clusters(
        "twentynewsgroups",
        "20News",
        "not stated; ask its authors",
        "Lang, 1995. NewsWeeder: learning to filter netnews. ICML.",
        "6125ec4e24fa026cec8a478383ee943acfbd5449",
    ),
    _clusters(
        "stackexchange",
        "StackEx.",
        "CC BY-SA, as all of Stack Exchange",
        "Geigle, Reimers, Rücklé and Gurevych, 2021. TWEAC: transformer with extendable QA agent classifiers. arXiv.",
        "6cbc1f7b2bc0622f2e39d2c77fa502909748c259",
    ),
)
