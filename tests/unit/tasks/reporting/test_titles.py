"""Titles name encoders and texts without paths."""

from __future__ import annotations

from bsl.storage.sources.own_text import TextSource
from bsl.tasks.reporting.titles import encoder_name, text_name
from tests.every import every


@every(
    [
        ("embedded:mini-sentence", "mini-sentence"),
        ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2"),
        ("/data/models/all-MiniLM-L6-v2/", "all-MiniLM-L6-v2"),
        ("./model", "model"),
        ("report/latest", "report/latest"),
        ("checkpoint/" + "1a2b3c4d" * 8, "checkpoint/1a2b3c4d"),
        ("report/1a2b3c", "report/1a2b3c"),
        ("/", "/"),
    ]
)
def test_encoder_has_the_last_part_of_its_path_as_name(given: str, name: str) -> None:
    assert encoder_name(given) == name


def _source(name: str, *files: str) -> TextSource:
    return TextSource(name=name, digest="d", format="csv", texts=("body",), files=files)


def test_text_has_the_name_of_its_file_or_its_first_source() -> None:
    tickets = _source("tickets", "/home/somebody/tickets.csv")
    assert text_name([tickets]) == "tickets.csv"
    assert text_name([_source("letters", "/a/1.csv", "/a/2.csv"), tickets]) == "letters and 1 more"
    assert text_name([]) == "your text"
