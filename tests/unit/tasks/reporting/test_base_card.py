"""The header of a base's own card."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from bsl.tasks.reporting.base_card import BaseCard, base_card

if TYPE_CHECKING:
    from pathlib import Path

CASES = {
    "one of each": (
        "license: apache-2.0\nlanguage: en\nbase_model: google-bert/bert-base-uncased",
        BaseCard(licence="apache-2.0", languages=("en",), base="google-bert/bert-base-uncased"),
    ),
    "lists": (
        "license: [mit]\nlanguage:\n- en\n- no\n- multilingual\nbase_model: [a/b, c/d]",
        BaseCard(licence="mit", languages=("en", "no", "multilingual"), base="a/b"),
    ),
    "another licence": ("license: other\nlicense_name: my-licence", BaseCard(licence="my-licence")),
    "an unknown licence": ("license: unknown", BaseCard()),
    "other types": ("license: 3\nlanguage: {en: 1}\nbase_model: true", BaseCard()),
    "nothing": ("tags: [x]", BaseCard()),
}


@pytest.mark.parametrize(("header", "expected"), CASES.values(), ids=CASES)
def test_header_is_read(tmp_path: Path, header: str, expected: BaseCard) -> None:
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\n# Title\n")
    assert base_card(tmp_path) == expected


def test_folder_without_a_card_or_header_says_nothing(tmp_path: Path) -> None:
    assert base_card(tmp_path) == BaseCard()
    (tmp_path / "README.md").write_text("# Title\n")
    assert base_card(tmp_path) == BaseCard()


@pytest.mark.parametrize("header", ["a: [", "- a\n- b", "\x00"])
def test_broken_header_is_skipped_with_a_warning(tmp_path: Path, header: str, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "README.md").write_text(f"---\n{header}\n---\n")
    assert base_card(tmp_path) == BaseCard()
    assert "header cannot be read" in caplog.text
