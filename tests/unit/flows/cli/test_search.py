"""What `bsl search` and `bsl pairs` print."""

import json

import pytest

from bsl.flows.cli.main import main

ROWS = "id,text\n7,The parcel came late.\n8,The parcel came too late.\n9,Nobody likes the new colour.\n"


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (["search", "ENCODER", "FILE", "The parcel came late.", "--top", "1"], [["The parcel came late.", "7"]]),
        (
            ["pairs", "ENCODER", "FILE", "--top", "1"],
            [["The parcel came too late.", "The parcel came late.", "8", "7"]],
        ),
    ],
)
def test_json_has_the_kept_columns_of_each_sentence(call, expected, site, write, capsys, monkeypatch):
    """Regression: `bsl pairs --json --keep` left the columns out."""
    monkeypatch.setenv("BSL_STORE", site.store)
    names = {"ENCODER": "embedded:mini-sentence", "FILE": write("rows.csv", ROWS)}
    assert main([*(names.get(word, word) for word in call), "--keep", "id", "--device", "cpu", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    hits = found if call[0] == "pairs" else found["The parcel came late."]
    assert [[one["id"] if isinstance(one, dict) else one for one in hit[1:]] for hit in hits] == expected
