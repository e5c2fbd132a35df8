"""The header of an original encoder's own card is repeated; a broken one is skipped with a warning."""

import pytest

from bsl.tasks.reporting.card import NO_CARD, BaseCard, base_card

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
    "an unknown licence": ("license: unknown", NO_CARD),
    "other types": ("license: 3\nlanguage: {en: 1}\nbase_model: true", NO_CARD),
    **{f"broken {header!r}": (header, NO_CARD) for header in ("a: [", "- a\n- b", "\x00")},
}


@pytest.mark.parametrize(("header", "expected"), CASES.values(), ids=CASES)
def test_header_is_read(tmp_path, header, expected, caplog, request):
    assert base_card(tmp_path) == NO_CARD
    card = tmp_path / "README.md"
    card.write_text("# Title\n")
    assert base_card(tmp_path) == NO_CARD
    card.write_text(f"---\n{header}\n---\n# Title\n")
    assert base_card(tmp_path) == expected
    assert ("header cannot be read" in caplog.text) == ("broken" in request.node.callspec.id)
