"""The use that decides: the one asked for, else the one that the labels are for."""

from typing import get_args

import pytest

from bsl.models.evaluation.uses import USES, UseName, deciding_use, use_answered_by
from tests.every import every


@every(
    [
        (None, "classes", "classify"),
        (None, "pairs", "similarity"),
        (None, None, None),
        ("group", "classes", "group"),
        ("search", "classes", "search"),
        ("search", "pairs", "search"),
        ("search", None, "search"),
    ]
)
def test_use_asked_for_decides_else_the_use_of_the_labels(asked, labels, decides):
    assert deciding_use(asked, labels) == decides


@every(
    [
        ("classify", None, r"--for classify: needs other labels .found no labels, expected texts with a class"),
        ("classify", "pairs", r"found pairs with a score, expected texts with a class.* --for similarity, search$"),
        ("similarity", "classes", r"found texts with a class, expected pairs with .* --for classify, group, sea"),
        ("group", None, r"Give them with --labels, or use one of --for search$"),
    ]
)
def test_use_without_its_labels_is_refused(asked, labels, message):
    with pytest.raises(ValueError, match=message):
        deciding_use(asked, labels)


def test_each_use_is_answered_by_one_set():
    assert tuple(USES) == get_args(UseName)
    assert {use.name: use_answered_by(use.group, use.metric) for use in USES.values()} == {name: name for name in USES}
    assert use_answered_by("stsb test", "spearman") is None
