"""JSON lines: each kind of bad line is counted, and both parsers agree."""

import gzip
import json
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from bsl.storage.errors import SourceError
from bsl.storage.readers import blocks, jsonl
from bsl.storage.readers.columns import Columns
from bsl.storage.readers.formats import columns_of, format_of
from bsl.storage.readers.read_report import ReadReport
from tests.every import every
from tests.reading import table, texts, where

PAIR = Columns(("sentence1", "sentence2"), ("gold_label",))
NUL = "\x00"
BAD = [
    (b'{"sentence1": "a", "sentence2": "b"', "not JSON"),
    (b'{"sentence1": "a", "sentence2": "b"} x', "not JSON (Extra data"),
    (b"not json at all", "not JSON (Expecting value"),
    (b'["a", "b"]', "a list, expected an object"),
    (b"null", "null, expected an object"),
    (b'{"sentence1": "\xff", "sentence2": "b"}', "not UTF-8"),
    (b'{"sentence1": 5, "sentence2": "b"}', "field 'sentence1' is a number"),
    (b'{"sentence1": "a", "sentence2": true}', "field 'sentence2' is a boolean"),
    (b'{"sentence1": ["a"], "sentence2": "b"}', "field 'sentence1' is a list"),
    (b'{"sentence1": {"a": 1}, "sentence2": "b"}', "field 'sentence1' is an object"),
    (b'{"sentence1": "half \\ud800 pair", "sentence2": "b"}', "half a surrogate pair"),
    (b'{"sentence1": "a", "sentence2": "b", "gold_label": "\\ud800"}', "'gold_label' contains half a surrogate pair"),
    (b'{"sentence1": "a", "sentence2": "b", "gold_label": ["\\ud800"]}', "half a surrogate pair"),
    (b'{"sentence1": "a", "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
]


def record(one, two="b", label="neutral"):
    return json.dumps({"gold_label": label, "sentence1": one, "sentence2": two}).encode()


@pytest.mark.parametrize(("bad", "reason"), BAD, ids=[reason for _, reason in BAD])
@pytest.mark.parametrize("around", [3, 2000])
def test_bad_json_line_is_counted_with_line_and_reason(write, report, bad, reason, around):
    good = [record(f"sentence {number}") for number in range(around)]
    frame = table(write("a.jsonl", b"\n".join([*good, bad, *good]) + b"\n"), PAIR, report)
    assert frame["sentence1"].to_list() == [f"sentence {number}" for number in range(around)] * 2
    assert (report.records, report.rejected, report.bad[0].line) == (2 * around, 1, around + 1)
    assert reason in report.bad[0].reason


@pytest.mark.parametrize("value", ["5", "-1e3", "true", "[1]", '["a\\nb"]', '{"a": "b\\nc"}', "[]"])
@pytest.mark.parametrize("spelled", ["sätze", "s\\u00e4tze", "s\\u00E4\\u0074ze"])
@pytest.mark.parametrize("around", [3, 2000])
def test_non_string_value_of_an_escaped_key_is_rejected(write, report, value, spelled, around):
    good = [f'{{"{spelled}": "Satz {number}"}}' for number in range(around)]
    path = write("a.jsonl", "\n".join([*good, f'{{"{spelled}": {value}}}', *good]))
    assert len(texts(path, report, "sätze")) == 2 * around
    assert [line for line, _ in where(report)] == [around + 1]


ODD = ["5", "true", "[laughs]", "[a\nb]", "{sic}", "{}", "", f"a{NUL}b", "x" * 1_000_000, "\U0001f600", '": 5', "-"]


@pytest.mark.parametrize("name", ["sentence1", "sätze"])
def test_json_strings_that_resemble_other_types_remain_strings(write, report, name):
    odd = [*ODD, f'{name}": 5']
    assert texts(write("a.jsonl", "\n\n  \n".join(json.dumps({name: text}) for text in odd)), report, name) == odd
    assert report.rejected == 0


def test_raw_control_characters_are_text_and_keys_with_a_lone_surrogate_are_no_columns(write, report):
    path = write("a.jsonl", b'{"te\\ud800xt": "x", "text": "a\x00b\tc"}\n{"text": "d"}\n')
    assert columns_of(path, "jsonl") == ("text",)
    assert texts(path, report) == [f"a{NUL}b\tc", "d"]


def test_json_parsers_agree_on_labels_and_repeated_keys(write, report):
    good = [record("a", "b", label) for label in ("-", -1, 0, 1.0, None)]
    good.append(b'{"sentence1": "first", "sentence2": "b", "sentence1": "second"}')
    fast = table(write("a.jsonl", b"\n".join(good)), PAIR, report)
    slow = table(write("b.jsonl", b"\n".join([*good, b"{", record("a", "b", float("nan"))])), PAIR, report)
    assert fast["gold_label"].to_list() == ["-", "-1", "0", "1", None, None]
    assert fast["sentence1"].to_list() == ["a"] * 5 + ["first"]
    assert slow.head(len(good)).equals(fast)


@pytest.mark.parametrize("block_bytes", [60, 500, 1 << 20])
def test_json_records_do_not_depend_on_block_size(write, monkeypatch, block_bytes):
    rows = [
        b"{" if number % 50 == 7 else record(f"s {number}", "5" if number % 9 == 0 else "t") for number in range(400)
    ]
    path, whole, cut = write("a.jsonl", b"\n".join(rows)), ReadReport("test"), ReadReport("test")
    in_one = pl.concat(jsonl.read(path, PAIR, whole))
    monkeypatch.setattr(blocks, "BLOCK_BYTES", block_bytes)
    assert pl.concat(jsonl.read(path, PAIR, cut)).equals(in_one)
    assert where(cut) == where(whole)
    assert (cut.records, cut.rejected) == (392, 8)


@pytest.mark.parametrize("late", ["label", "la\\u0062el", 'la\\"bel', "título"])
@pytest.mark.parametrize("first", ["x", 'say \\"label\\": y', "a \\\\"])
def test_key_that_first_appears_late_is_a_column(write, report, late, first):
    lines = [f'{{"text": "{first}"}}'] * 150 + [f'{{"text": "x", "{late}": "yes"}}', "{"]
    path, name = write("a.jsonl", "\n".join(lines)), json.loads(f'"{late}"')
    assert columns_of(path, "jsonl") == ("text", name)
    assert table(path, Columns(("text",), (name,)), report)[name].to_list() == [None] * 150 + ["yes"]


def test_null_or_missing_text_is_an_empty_cell(write, report):
    lines = ['{"text": "a", "other": "b"}', '{"text": null, "other": "c"}', '{"other": "d"}', '{"text": " "}']
    frame = table(write("a.jsonl", "\n".join(lines)), Columns(("text", "other")), report)
    assert frame.rows() == [("a", "b"), ("", "c"), ("", "d"), (" ", "")]
    assert (report.records, report.rejected, report.empty) == (4, 0, 4)
    with pytest.raises(SourceError, match="no line is a JSON object"):
        texts(write("a.jsonl", "one\ntwo\n"), report)


@pytest.mark.parametrize("name", ["rows.json", "it's a $HOME.json", "rows.json.gz", "rows.jsonl"])
@pytest.mark.parametrize("key", [None, "", "it's\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_remedy_for_an_array_is_a_command_that_keeps_every_value(tmp_path, monkeypatch, name, key, encoding):
    """Regression: the command read neither packed files nor an array that is the value of a key, nor UTF-16."""
    monkeypatch.chdir(tmp_path)
    rows = [{"score": 1}] * 150 + [{"score": 0.5, "late": "größer"}, {"score": None, "nested": {"a": [1]}}]
    whole = rows if key is None else {"version": {"parts": [{"major": 2}]}, key: rows}  # a key within is no key of it
    content = json.dumps(whole, indent=1).encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(SourceError, match="Write the objects of its array as lines") as caught:
        columns_of(str(tmp_path / name), format_of(str(tmp_path / name)))
    subprocess.run(str(caught.value).split("`")[1], shell=True, check=True)
    (made,) = tmp_path.glob("*.jsonl" if name != "rows.jsonl" else "*.lines.jsonl")
    assert [json.loads(line) for line in made.read_text().splitlines()] == rows


@every(
    [
        ('{"text": {"0": "a"}, "label": {"0": "b"}}', "an object with the text on each line"),
        ('{"text": "a", "tags": [{}]}\n{"text": "b"}', r"rename it to a\.jsonl"),
        ('\n{"text": "a"}\n{"text": "b"}', r"rename it to a\.jsonl"),
        ('{\n"text": "a"\n}', "an object with the text on each line"),
        ('{"data": {"items": [{"text": "a"}]}}', "an object with the text on each line"),
        (r'{"a\x": [{"text": "a"}]}', "an object with the text on each line"),
        ("[" * 100_000, "an object with the text on each line"),
        ('{"text": "' + r"\"" * 200_000, "an object with the text on each line"),
    ]
)
def test_remedy_for_other_json_names_no_command(content, remedy):
    """Regression: keys within keys were named, deep JSON and wrong escapes had a traceback, many quotes took hours."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "a.json"
        path.write_text(content)
        with pytest.raises(SourceError, match=f"unknown file suffix.*{remedy}") as caught:
            format_of(str(path))
    assert "`" not in str(caught.value).replace("`ingest.sources[].format`", "")


def test_remedy_for_packed_lines_keeps_the_suffix_and_for_other_encodings_is_to_convert(tmp_path):
    packed, latin = tmp_path / "a.json.gz", tmp_path / "b.json"
    packed.write_bytes(gzip.compress(b'{"text": "a"}\n{"text": "b"}'))
    latin.write_bytes('{"größe": [{"text": "a"}]}'.encode("latin-1"))
    with pytest.raises(SourceError, match=r"rename it to a\.jsonl\.gz\."):
        format_of(str(packed))
    with pytest.raises(SourceError, match=r"not UTF-8. Find its encoding .*iconv -f ENCODING .* > .*b\.utf8\.json"):
        format_of(str(latin))
