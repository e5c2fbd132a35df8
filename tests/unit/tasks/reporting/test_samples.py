"""The page shows a few of the texts that changed, and how many there are."""

from __future__ import annotations

import polars as pl

from bsl.storage.artifacts.schemas import SAMPLES
from bsl.tasks.rendering.blocks import Page
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.reporting.samples import sample_part


def _page(rows: list[tuple[str, str, str | None, str, str]]) -> str:
    part = sample_part(pl.DataFrame(rows, schema=SAMPLES, orient="row"))
    return markdown(Page("Title", "", "", [], [part]))


def test_classes_are_split_into_right_and_wrong_with_their_counts() -> None:
    right = [("class", f"Who is {number}?", "person", "place", "person") for number in range(7)]
    page = _page([*right, ("class", "Where is it?", "place", "place", "person")])
    assert "now right: 5 of 7 texts" in page
    assert page.count("| place | person | person |") == 5
    assert "now wrong: 1 of 1 texts" in page
    assert "| Where is it? | place | person | place |" in page


def test_neighbours_show_the_correct_answer_of_a_question_only() -> None:
    page = _page([("neighbour", "Who?", None, "What?", "Whom?")])
    assert "1 of 1 texts whose nearest text changed" in page
    assert "| text | nearest before | nearest after |" in page
    page = _page([("neighbour", "Who?", "You.", "It.", "You.")])
    assert "| Who? | It. | You. | You. |" in page


def test_no_samples_give_no_section() -> None:
    assert _page([]) == "# Title\n"
