"""Sources and models: lookup, names, and the values that decide an artifact key."""

import gzip
import json

import polars as pl
import pytest
from pydantic import ValidationError

from bsl.storage.artifacts.keys import artifact_key
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.read import read_nli_pairs, read_scored_pairs, read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source, resolve_sources
from tests.toy_sets import write_files

PAIRS = [
    ("A man sleeps.", "A person rests.", 0),
    ("A man sleeps.", "Nobody knows.", -1),
    ("A dog runs.", "A cat runs.", 2),
]


@pytest.fixture
def mirror(tmp_path):
    folder = tmp_path / "mirror" / "snli"
    folder.mkdir(parents=True)
    frame = pl.DataFrame(PAIRS, schema=["premise", "hypothesis", "label"], orient="row")
    frame.write_parquet(folder / "train.parquet")
    return str(tmp_path / "mirror")


def sentences(source, report=None):
    frame = pl.concat(read_source(source, report or ReadReport(source.name), max_bad_share=0.0))
    return [column.to_list() for column in frame.iter_columns()]


def test_nli_pairs_of_a_mirror_and_of_the_original_files_are_equal(mirror, write):
    """An unlabelled pair gives sentences, but no labelled pair."""
    words = {0: "entailment", -1: "-", 2: "contradiction"}
    rows = [{"gold_label": words[label], "sentence1": one, "sentence2": two} for one, two, label in PAIRS]
    original = write("snli_1.0_train.jsonl", "\n".join(map(json.dumps, rows)))
    for spec in (SourceSpec(dataset="snli"), SourceSpec(path=original)):
        source, report = resolve_source(spec, mirror), ReadReport("nli")
        assert [len(side) for side in sentences(source, report)] == [3, 3]
        assert (report.records, report.unlabelled, report.rejected) == (3, 0, 0)
        frame = pl.concat(read_nli_pairs(source, report, max_bad_share=0.0))
        assert frame.schema == {"premise": pl.String, "hypothesis": pl.String, "label": pl.Int8}
        assert frame.rows() == [PAIRS[0], PAIRS[2]]
        assert report.unlabelled == 1


def test_nli_labels_in_capitals_or_with_decimals_are_read(write, report):
    rows = ["a,b,Entailment", "c,d,NEUTRAL", "e,f,2.0", "g,h,-1.0", "i,j,"]
    path = write("a.csv", "\n".join(["premise,hypothesis,label", *rows]))
    frame = pl.concat(read_nli_pairs(resolve_source(SourceSpec(path=path)), report, 0.0))
    assert (frame["label"].to_list(), report.unlabelled) == ([0, 1, 2], 2)


def test_unknown_label_of_nli_is_refused(write, report):
    path = write("a.csv", "premise,hypothesis,label\na,b,entialment\n")
    with pytest.raises(SourceError, match="1 rows have a label such as 'entialment'"):
        list(read_nli_pairs(resolve_source(SourceSpec(path=path)), report, 0.0))


@pytest.mark.parametrize("score", ["5.1", "-0.1", "nan", "four", "inf"])
def test_score_outside_its_range_is_refused_with_its_row(write, report, score):
    path = write("a.csv", f"sentence1,sentence2,score,subset\na,b,1,\na,b,{score},\n")
    with pytest.raises(SourceError, match=f"row 2 has the score '{score}', expected a number from 0 to 5"):
        read_scored_pairs(resolve_source(SourceSpec(path=path)), report)


def test_scored_pairs_preserve_order_and_drop_blank_scores(write, report):
    path = write("sts.csv", "sentence1,sentence2,score,subset\nb,c,2.5,news\na,b,5,\nx,y, ,news\n")
    frame = read_scored_pairs(resolve_source(SourceSpec(path=path)), report)
    assert frame.rows() == [("news", "b", "c", 2.5), ("", "a", "b", 5.0)]
    assert report.unlabelled == 1


@pytest.mark.parametrize("folder", ["talks", "talks[1]"])
def test_folder_and_glob_files_are_read_in_name_order(tmp_path, folder):
    write_files(tmp_path / folder, {"b.txt": "two", "a.txt.gz.txt": "one", "c.docx": "no", "empty/.hidden": ""})
    for name, found in {"": ["one", "two"], "/*.txt": ["one", "two"], "/b*": ["two"], "/b.txt": ["two"]}.items():
        source = resolve_source(SourceSpec(path=f"{tmp_path / folder}{name}"))
        assert sentences(source) == [found]
        assert source.name == (folder if len(found) > 1 else "b")
    for name, why in {
        "c*": r"c\* matches 1 files, none in a known format", "d*": r"d\* matches no files\. Correct the path",
        "empty": r"empty contains no files\. Correct the path", "d.txt": "no such file or folder",
    }.items():  # fmt: skip
        with pytest.raises(SourceError, match=why):
            resolve_source(SourceSpec(path=str(tmp_path / folder / name)))


def test_folder_with_mixed_formats_gives_a_source_per_format(tmp_path):
    write_files(tmp_path, {"b.txt": "one\n", "a.jsonl": '{"text": "two"}\n'})
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(b'{"text": "three"}\n'))
    spec = SourceSpec(path=str(tmp_path), limit=5)
    found = resolve_sources(spec)
    assert [source.format for source in found] == ["jsonl", "txt"]
    assert {(source.name, source.limit) for source in found} == {(tmp_path.name, 5)}  # equal, so they share the limit
    assert [sentences(source) for source in found] == [[["two", "three"]], [["one"]]]
    with pytest.raises(SourceError, match=r"files of jsonl and txt, expected one format\. Select one by a pattern"):
        resolve_source(spec)


def test_artifact_key_uses_source_content_and_settings_not_path(tmp_path):
    def key(folder, content, **wanted):
        path = tmp_path / folder / "corpus.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
        return artifact_key("ingest", "corpus", 1, {"sources": [resolve_source(SourceSpec(path=str(path), **wanted))]})

    base = key("here", "one\n")
    assert key("there", "one\n") == base
    others = [
        key("here", "two\n"),
        key("here", "one\n", name="x"),
        key("here", "one\n", lang="de"),
        key("here", "one\n", columns=("text",)),
    ]
    assert len({base, *others}) == 5


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"dataset": "snlli"}, r"has no snlli/train\.parquet, and it is not one of .*did you mean 'snli'"),
        ({"dataset": "snli", "split": "valid"}, "no split 'valid', expected one of train, dev, test"),
    ],
)
def test_unknown_dataset_or_split_error_lists_the_alternatives(mirror, fields, why):
    with pytest.raises(SourceError, match=why):
        resolve_source(SourceSpec(**fields), mirror)


def test_dataset_without_a_mirror_is_that_of_the_hub_or_missing():
    with pytest.raises(SourceError, match="no mirror is set, and the Hub has no copy"):
        resolve_source(SourceSpec(dataset="afs", split="all"))
    with pytest.raises(ValidationError, match="needs a `dataset` or a `path`"):
        SourceSpec(split="train")


def test_mirror_may_contain_undeclared_and_original_files_in_a_folder_of_any_name(tmp_path):
    mirror = write_files(
        tmp_path / "mirror[1]",
        {"CR/custrev.neg": "A dog.\n", "CR/custrev.pos": "A dog.\n", "ours/README": ""},
    )
    assert sentences(resolve_source(SourceSpec(dataset="cr", split="all"), mirror)) == [["A dog.", "A dog."]]
    pl.DataFrame({"text": ["hello"]}).write_parquet(tmp_path / "mirror[1]" / "ours" / "train.parquet")
    assert sentences(resolve_source(SourceSpec(dataset="ours"), mirror)) == [["hello"]]


def test_every_registered_dataset_has_licence_citation_and_revision():
    for name, dataset in DATASETS.items():
        assert name == dataset.name
        assert dataset.licence
        assert dataset.citation
        assert (dataset.hub_id is None) == (dataset.revision is None), f"{name} is on the Hub but not pinned"


def test_unreachable_hub_is_named_and_the_pinned_commit_of_a_dataset_needs_no_request(tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("bsl.storage.hub.faults.SECONDS_TO_CONNECT", ())
    with pytest.raises(SourceError, match="the Hub does not answer"):
        resolve_model("google-bert/bert-base-uncased", cache=tmp_path / "cache")
    assert resolve_source(SourceSpec(dataset="snli")).digest.startswith("stanfordnlp/snli@cdb5c3d")
