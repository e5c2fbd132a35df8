"""Names in titles carry no paths; the section of samples shows a few of the texts that changed, and their number."""

import polars as pl
import pytest

from bsl.storage.artifacts.schemas import SAMPLES
from bsl.storage.sources.own_text import TextSource
from bsl.tasks.rendering.blocks import Page
from bsl.tasks.rendering.markdown import markdown
from bsl.tasks.reporting.sections import encoder_name, sample_part, text_name
from tests.every import every


@every(
    [
        ("embedded:mini-sentence", "mini-sentence"),
        ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("/data/models/all-MiniLM-L6-v2/", "all-MiniLM-L6-v2"),
        ("report/latest", "report/latest"),
        ("checkpoint/" + "1a2b3c4d" * 8, "checkpoint/1a2b3c4d"),
        ("report/1a2b3c", "report/1a2b3c"),
        ("/", "/"),
    ]
)
def test_encoder_has_the_last_part_of_its_path_as_name(given, name):
    assert encoder_name(given) == name


def test_text_has_the_name_of_its_file_or_its_first_source():
    tickets, letters = (
        TextSource(name=name, digest="d", format="csv", texts=("body",), files=files)
        for name, files in (("tickets", ("/home/somebody/tickets.csv",)), ("letters", ("/a/1.csv", "/a/2.csv")))
    )
    assert text_name([tickets]) == "tickets.csv"
    assert text_name([letters, tickets]) == "letters and 1 more"
    assert text_name([]) == "your text"


RIGHT = [("class", f"Who is {number}?", "person", "place", "person") for number in range(7)]
WRONG = ("class", "Where is it?", "place", "place", "person")


@pytest.mark.parametrize(
    ("rows", "shown"),
    [
        ([*RIGHT, WRONG], ["now right: 5 of 7 texts", "now wrong: 1 of 1 texts", "| Where is it? | place | person |"]),
        (
            [("neighbour", "Who?", None, "What?", "Whom?")],
            ["1 of 1 texts", "| text | nearest before | nearest after |"],
        ),
        ([("neighbour", "Who?", "You.", "It.", "You.")], ["| Who? | It. | You. | You. |"]),
    ],
    ids=["classes", "labels", "questions"],
)
def test_samples_show_some_of_the_changed_texts_and_their_number(rows, shown):
    page = markdown(Page("T", "", "", [], [sample_part(pl.DataFrame(rows, schema=SAMPLES, orient="row"))]))
    assert [text for text in shown if text not in page] == []
    assert page.count("| place | person | person |") == min(5, sum(row in RIGHT for row in rows))
    assert sample_part(pl.DataFrame(schema=SAMPLES)).blocks == []
