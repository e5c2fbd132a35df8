"""Sources and models: lookup, names, and the values that decide an artifact key."""

import gzip
import json
import shutil

import polars as pl
import pytest
from pydantic import ValidationError

from bsl.storage.artifacts.keys import artifact_key
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.model_sources import resolve_model
from bsl.storage.sources.read import read_nli_pairs, read_scored_pairs, read_source
from bsl.storage.sources.sources import ResolvedSource, SourceSpec, resolve_source, resolve_sources
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


@pytest.fixture
def original(tmp_path):
    """Return the same pairs as distributed: JSON lines, labels as words, "-" for none."""
    words = {0: "entailment", -1: "-", 2: "contradiction"}
    rows = [{"gold_label": words[label], "sentence1": one, "sentence2": two} for one, two, label in PAIRS]
    path = tmp_path / "snli_1.0_train.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return str(path)


def sentences(source: ResolvedSource, report: ReadReport | None = None) -> list[list[str]]:
    frame = pl.concat(read_source(source, report or ReadReport(source.name), max_bad_share=0.0))
    return [column.to_list() for column in frame.iter_columns()]


def test_unlabelled_nli_pairs_give_sentences_but_no_labelled_pair(mirror, original):
    for spec in (SourceSpec(dataset="snli"), SourceSpec(path=original)):
        source, report = resolve_source(spec, mirror), ReadReport("nli")
        assert [len(side) for side in sentences(source, report)] == [3, 3]
        assert (report.records, report.unlabelled, report.rejected) == (3, 0, 0)
        assert sum(frame.height for frame in read_nli_pairs(source, report, max_bad_share=0.0)) == 2
        assert report.unlabelled == 1


def test_mirror_and_original_files_give_the_same_pairs(mirror, original):
    for spec in (SourceSpec(dataset="snli"), SourceSpec(path=original)):
        frame = pl.concat(read_nli_pairs(resolve_source(spec, mirror), ReadReport("nli"), max_bad_share=0.0))
        assert frame.schema == {"premise": pl.String, "hypothesis": pl.String, "label": pl.Int8}
        assert frame["label"].to_list() == [0, 2]


def test_unknown_nli_label_raises_source_error(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("premise,hypothesis,label\na,b,entialment\n")
    with pytest.raises(SourceError, match="1 rows have a label such as 'entialment'"):
        list(read_nli_pairs(resolve_source(SourceSpec(path=str(path))), ReadReport("nli"), 0.0))


def test_columns_option_selects_text_columns_of_any_table(tmp_path):
    path = tmp_path / "talks.tsv"
    path.write_text("id\ttitle\tbody\n1\tT\tB\n")
    source = resolve_source(SourceSpec(path=str(path), columns=("body",), lang="de"))
    assert sentences(source) == [["B"]]
    assert (source.name, source.lang) == ("talks", "de")
    with pytest.raises(SourceError, match=r"column 'bodi' is missing; found 'id', 'title', 'body'.*mean 'body'"):
        sentences(resolve_source(SourceSpec(path=str(path), columns=("bodi",))))
    with pytest.raises(SourceError, match="expected one of the known sets"):
        sentences(resolve_source(SourceSpec(path=str(path))))


def test_folder_and_glob_files_are_read_in_name_order(tmp_path):
    for name, text in (("b.txt", "two"), ("a.txt.gz.txt", "one"), ("c.docx", "no")):
        (tmp_path / name).write_text(text)
    assert sentences(resolve_source(SourceSpec(path=str(tmp_path)))) == [["one", "two"]]
    assert sentences(resolve_source(SourceSpec(path=str(tmp_path / "b*")))) == [["two"]]
    with pytest.raises(SourceError, match=r"c\* matches 1 files, none in a known format"):
        resolve_source(SourceSpec(path=str(tmp_path / "c*")))
    with pytest.raises(SourceError, match=r"d\* matches no files\. Correct the path"):
        resolve_source(SourceSpec(path=str(tmp_path / "d*")))
    (tmp_path / "empty").mkdir()
    with pytest.raises(SourceError, match=r"empty contains no files\. Correct the path"):
        resolve_source(SourceSpec(path=str(tmp_path / "empty")))
    with pytest.raises(SourceError, match="no such file or folder"):
        resolve_source(SourceSpec(path=str(tmp_path / "d.txt")))


def test_folder_with_mixed_formats_gives_a_source_per_format(tmp_path):
    write_files(tmp_path, {"b.txt": "one\n", "a.jsonl": '{"text": "two"}\n'})
    (tmp_path / "c.jsonl.gz").write_bytes(gzip.compress(b'{"text": "three"}\n'))
    spec = SourceSpec(path=str(tmp_path), limit=5)
    found = resolve_sources(spec)
    assert [source.format for source in found] == ["jsonl", "txt"]
    assert {(source.name, source.limit) for source in found} == {("a", 5)}  # equal, so they share the limit
    assert [sentences(source) for source in found] == [[["two", "three"]], [["one"]]]
    with pytest.raises(SourceError, match=r"files of jsonl and txt, expected one format\. Select one by a pattern"):
        resolve_source(spec)


def test_artifact_key_uses_source_content_and_settings_not_path(tmp_path):
    def key(folder: str, content: str, **wanted: object) -> str:
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


def test_unknown_dataset_or_split_error_lists_the_alternatives(mirror):
    with pytest.raises(SourceError, match=r"has no snlli/train\.parquet, and it is not one of .*did you mean 'snli'"):
        resolve_source(SourceSpec(dataset="snlli"), mirror)
    with pytest.raises(SourceError, match="no mirror is set, and the Hub has no copy"):
        resolve_source(SourceSpec(dataset="afs", split="all"))
    with pytest.raises(SourceError, match="has no split 'valid', expected one of train, dev, test"):
        resolve_source(SourceSpec(dataset="snli", split="valid"), mirror)
    with pytest.raises(ValidationError, match="needs a `dataset` or a `path`"):
        SourceSpec(split="train")


def test_mirror_may_contain_undeclared_datasets(tmp_path):
    (tmp_path / "ours").mkdir()
    pl.DataFrame({"text": ["hello"]}).write_parquet(tmp_path / "ours" / "train.parquet")
    assert sentences(resolve_source(SourceSpec(dataset="ours"), str(tmp_path))) == [["hello"]]


def test_embedded_datasets_are_read_as_sources():
    source = resolve_source(SourceSpec(dataset="embedded:nli-sample"))
    assert source.name == "nli-sample"
    assert sum(len(frame) for frame in read_source(source, ReadReport("nli-sample"), max_bad_share=0.0)) > 1000
    dev = resolve_source(SourceSpec(dataset="embedded:stsb", split="dev"))
    assert read_scored_pairs(dev, ReadReport("stsb")).height == 1500
    with pytest.raises(SourceError, match="embedded:stsb has no split 'validation', expected one of dev, test, train"):
        resolve_source(SourceSpec(dataset="embedded:stsb", split="validation"))


def test_every_registered_dataset_has_licence_citation_and_revision():
    for name, dataset in DATASETS.items():
        assert name == dataset.name
        assert dataset.licence
        assert dataset.citation
        assert (dataset.hub_id is None) == (dataset.revision is None), f"{name} is on the Hub but not pinned"


@pytest.fixture
def no_hub(monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setattr("bsl.storage.hub.faults.SECONDS_TO_CONNECT", ())


def test_dataset_with_a_pinned_commit_resolves_offline(no_hub):
    found = resolve_source(SourceSpec(dataset="snli"))
    assert found.digest.startswith("stanfordnlp/snli@cdb5c3d")


# STS


def scored(tmp_path, content: str) -> ResolvedSource:
    path = tmp_path / "sts.csv"
    path.write_text("sentence1,sentence2,score,subset\n" + content)
    return resolve_source(SourceSpec(path=str(path)))


def test_scored_pairs_preserve_order_and_drop_blank_scores(tmp_path):
    report = ReadReport("sts")
    frame = read_scored_pairs(scored(tmp_path, "b,c,2.5,news\na,b,5,\nx,y, ,news\n"), report)
    assert frame.rows() == [("news", "b", "c", 2.5), ("", "a", "b", 5.0)]
    assert report.unlabelled == 1


@pytest.mark.parametrize("score", ["5.1", "-0.1", "nan", "four", "inf"])
def test_invalid_sts_score_error_names_the_row(tmp_path, score):
    with pytest.raises(SourceError, match=f"row 2 has the score '{score}', expected a number from 0 to 5"):
        read_scored_pairs(scored(tmp_path, f"a,b,1,\na,b,{score},\n"), ReadReport("sts"))


def test_sts_file_without_a_score_column_raises_source_error(tmp_path):
    path = tmp_path / "sts.csv"
    path.write_text("sentence1,sentence2,scores\na,b,1\n")
    with pytest.raises(SourceError, match=r"column 'score' is missing.*did you mean 'scores'"):
        read_scored_pairs(resolve_source(SourceSpec(path=str(path))), ReadReport("sts"))


# Models


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "1_Pooling").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "1_Pooling" / "config.json").write_text("{}")
    return folder


def test_model_identity_depends_on_file_content_only(model, tmp_path):
    first = resolve_model(str(model))
    copy = tmp_path / "copy"
    shutil.copytree(model, copy)
    (copy / ".cache").mkdir()
    (copy / ".cache" / "left.json").write_text("x")
    assert resolve_model(str(copy)).identity == first.identity
    (copy / "model.safetensors").write_bytes(b"wEights")
    assert resolve_model(str(copy)).identity != first.identity


def test_unresolvable_model_raises_source_error(tmp_path, no_hub):
    with pytest.raises(SourceError, match="no such folder"):
        resolve_model(str(tmp_path / "absent"))
    (tmp_path / "empty").mkdir()
    with pytest.raises(
        SourceError, match=r"is not a model: it contains nothing, expected config\.json or modules\.json"
    ):
        resolve_model(str(tmp_path / "empty"))
    with pytest.raises(SourceError, match="the Hub does not answer"):
        resolve_model("google-bert/bert-base-uncased", cache=tmp_path / "cache")


@pytest.mark.parametrize("last", ["", "/*.txt", "/a.txt"])
def test_folder_name_may_contain_glob_characters(tmp_path, last):
    folder = tmp_path / "talks[1]"
    folder.mkdir()
    (folder / "a.txt").write_text("A dog runs.\n")
    assert sentences(resolve_source(SourceSpec(path=f"{folder}{last}"))) == [["A dog runs."]]


def test_mirror_path_may_contain_glob_characters(tmp_path):
    folder = tmp_path / "mirror[1]" / "CR"
    folder.mkdir(parents=True)
    for name in ("custrev.neg", "custrev.pos"):
        (folder / name).write_text("A dog.\n")
    source = resolve_source(SourceSpec(dataset="cr", split="all"), str(tmp_path / "mirror[1]"))
    assert sentences(source) == [["A dog.", "A dog."]]
