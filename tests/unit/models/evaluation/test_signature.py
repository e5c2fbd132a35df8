"""Signatures of figures: writing, reading and joining."""

import pytest

from bsl.models.errors import EvaluationError
from bsl.models.evaluation.signature import joint_signature, parse_signature, rows_digest, signature
from tests.every import every

FIELDS = {"set": "sts12/test", "metric": "spearman", "tuned": "stsb/train:ab@cd", "len": 64, "special": True}


def test_signature_round_trips_through_parse():
    line = signature(FIELDS | {"norm": False, "prompt": None})
    assert line == "set:sts12/test|metric:spearman|tuned:stsb/train:ab@cd|len:64|special:yes|norm:no|prompt:none"
    assert signature(parse_signature(line)) == line
    with pytest.raises(EvaluationError, match=r"invalid field 'len:32'.*different names"):
        parse_signature("len:64|len:32")


def test_a_prompt_of_two_lines_stays_on_the_line_of_its_signature():
    prompt = "Instruct: find the same\nQuery:\u2028\r| "
    line = signature({"prompt": prompt, "len": 64})
    assert line == r"prompt:Instruct: find the same\nQuery:\u2028\r/ |len:64"
    assert signature(parse_signature(line)) == line
    with pytest.raises(EvaluationError, match="invalid field"):
        parse_signature(f"prompt:{prompt}")


@every([{"len": ""}, {"Set": "a"}, {"": "a"}, {}])
def test_invalid_signature_fields_are_rejected(fields):
    with pytest.raises(EvaluationError, match="invalid field"):
        signature(fields)


def test_joint_signature_merges_lines_field_by_field():
    lines = [
        signature({"set": "mr/all", "data": "aa", "len": 64}),
        signature({"set": "mr-copy/all", "data": "aa", "len": 64, "fitted": "x"}),
        signature({"set": "cr/all", "data": "bb", "len": 64}),
    ]
    # Every set has its digest at its own position, even if digests are equal.
    assert joint_signature(lines) == "set:mr/all,mr-copy/all,cr/all|data:aa,aa,bb|len:64|fitted:none,x"
    assert joint_signature(lines[:1]) == lines[0]
    with pytest.raises(EvaluationError, match="no signatures to join"):
        joint_signature([])


def test_rows_digest_depends_on_rows_order_and_split():
    rows = [("A cat.", "A dog.", 2.5), ("One", None, 0.0)]
    digests = [
        rows_digest([("test", rows)]),
        rows_digest([("dev", rows)]),
        rows_digest([("test", rows[::-1])]),
        rows_digest([("test", [("A cat. A", "dog.", 2.5), rows[1]])]),
        rows_digest([("test", rows[:1]), ("dev", rows[1:])]),
    ]
    assert len(set(digests)) == len(digests)
    assert rows_digest([("test", iter(rows))]) == digests[0]
    assert len(digests[0]) == 12
