"""Transfer sets are read alike from tables and SentEval's files, and errors name the row."""

import os

import numpy as np
import polars as pl
import pytest

from bsl.models.evaluation.probe.problem import pair_features, senteval_order
from bsl.storage.datasets.registry import DATASETS
from bsl.storage.errors import SourceError
from bsl.storage.readers.benchmarks.senteval import TRANSFER_SETS
from bsl.storage.readers.read_report import ReadReport
from bsl.storage.sources.mirror import fill_cache
from bsl.storage.sources.read import read_source
from bsl.storage.sources.sources import SourceSpec, resolve_source
from bsl.tasks.corpus.evaluation_sets import rows_of, unique_sentences
from bsl.tasks.evaluation.kinds import UnknownSuiteError, find_set
from bsl.tasks.evaluation.transfer import TransferKind
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import allow_any_rows, write_files

MIRROR = os.environ.get("BSL_DATA_MIRROR")
MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
# Set → files as SentEval's script writes them, and the same rows as tables: texts, then the label in the table's form.
ROWS = {
    "subj": (
        {"SUBJ/subj.subjective": "a moving film .\nsly and sad\n", "SUBJ/subj.objective": "he goes home .\n"},
        {"all": [("he goes home .", 0), ("a moving film .", 1), ("sly and sad", 1)]},
    ),
    "sst2": (
        {f"SST/binary/sentiment-{split}": "so good\t1\nso bad\t0\n" for split in ("train", "dev", "test")},
        {split: [("so good", 1), ("so bad", 0)] for split in ("train", "dev", "test")},
    ),
    "sst5": (
        {f"SST/fine/sentiment-{split}": "4 so good\n2 so so\n" for split in ("train", "dev", "test")},
        {split: [("so good", 4), ("so so", 2)] for split in ("train", "dev", "test")},
    ),
    "trec": (
        {
            "TREC/train_5500.label": "DESC:manner How does it : end ?\nNUM:dist How far ?\n",
            "TREC/TREC_10.label": "HUM:ind Who ?\n",
        },
        {"train": [("How does it : end ?", "DESC"), ("How far ?", "NUM")], "test": [("Who ?", "HUM")]},
    ),
    "mrpc": (
        {
            f"MRPC/msr_paraphrase_{split}.txt": f'{MRPC_HEADER}\n1\t7\t8\tHe " said\tHe says\n'
            for split in ("train", "test")
        },
        {split: [('He " said', "He says", 1)] for split in ("train", "test")},
    ),
}


def write_tables(folder, name, splits):
    declared = TRANSFER_SETS[name]
    for split, rows in splits.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        frame = pl.DataFrame(rows, schema=[*DATASETS[name].texts, declared.label], orient="row")
        frame.write_parquet(folder / name / f"{split}.parquet")


@pytest.fixture
def toys(monkeypatch):
    allow_any_rows(monkeypatch, *TRANSFER_SETS)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", list(ROWS))
def test_senteval_files_and_tables_give_the_same_rows(tmp_path, name):
    files, tables = ROWS[name]
    write_files(tmp_path / "senteval", files)
    write_tables(tmp_path / "mirror", name, tables)
    site = RunContext(mirror=str(tmp_path / "mirror"))
    table = rows_of(TransferKind().find(site, name))
    original = rows_of(TransferKind().find(RunContext(mirror=str(tmp_path / "senteval")), name))
    assert list(table) == list(original) == list(tables)
    for split, rows in tables.items():
        assert table[split].equals(original[split])
        numbers = [TRANSFER_SETS[name].classes.index(str(row[-1])) for row in rows]
        assert table[split]["class"].to_list() == numbers


@pytest.mark.usefixtures("toys")
def test_subj_objective_sentences_are_class_1(tmp_path):
    write_tables(tmp_path, "subj", ROWS["subj"][1])
    found = rows_of(TransferKind().find(RunContext(mirror=str(tmp_path)), "subj"))["all"]
    assert dict(found.rows()) == {"he goes home .": 1, "a moving film .": 0, "sly and sad": 0}


@pytest.mark.usefixtures("toys")
def test_windows_1252_files_are_decoded(tmp_path):
    write_files(tmp_path, {"CR/custrev.pos": "naïve – fun\n".encode("cp1252"), "CR/custrev.neg": "no\n"})
    found = TransferKind().find(RunContext(mirror=str(tmp_path)), "cr").sentences()
    assert found.to_list() == ["no", "naïve – fun"]


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"text": ["a", "b"], "label": [0, 7]}, "mr all: row 2 has the label '7', expected one of 0, 1"),
        ({"text": ["a"], "score": [0]}, "column 'label' is missing"),
        ({"text": ["a"], "label": [None]}, "mr all: row 1 has the label None"),
        ({"text": [], "label": []}, "mr all contains no records"),
    ],
)
def test_table_with_invalid_labels_or_columns_is_refused(tmp_path, frame, words):
    (tmp_path / "mr").mkdir()
    schema = {"text": pl.String, next(name for name in frame if name != "text"): pl.Int8}
    pl.DataFrame(frame, schema=schema).write_parquet(tmp_path / "mr" / "all.parquet")
    with pytest.raises(SourceError, match=words):
        rows_of(TransferKind().find(RunContext(mirror=str(tmp_path)), "mr"))


@pytest.mark.usefixtures("toys")
def test_malformed_trec_line_error_names_file_and_line(tmp_path):
    files = dict(ROWS["trec"][0])
    files["TREC/TREC_10.label"] = "HUM:ind Who ?\nno colon\n"
    write_files(tmp_path, files)
    with pytest.raises(SourceError, match=r"TREC_10.label, line 2: 'no colon' does not have the format"):
        rows_of(TransferKind().find(RunContext(mirror=str(tmp_path)), "trec"))


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("form", ["files", "tables"])
def test_blank_line_is_sorted_first_and_encoded_as_period(tmp_path, form):
    if form == "files":
        write_files(tmp_path, {"CR/custrev.pos": "good\n\n", "CR/custrev.neg": "\r\nbad one\n \n"})
    else:
        write_tables(tmp_path, "cr", {"all": [("", 0), ("bad one", 0), (" ", 0), ("good", 1), ("", 1)]})
    found = TransferKind().find(RunContext(mirror=str(tmp_path)), "cr")
    rows = rows_of(found)["all"]
    assert [(text.strip(), label) for text, label in rows.rows()] == [
        ("", 0), ("bad one", 0), ("", 0), ("good", 1), ("", 1)
    ]  # fmt: skip
    assert senteval_order([rows["text"].to_list()], rows["class"].to_numpy()).tolist() == [0, 2, 4, 3, 1]
    assert found.sentences().to_list() == [".", "bad one", ".", "good", "."]
    assert sorted(unique_sentences([found])["text"]) == [".", "bad one", "good"]


def test_copy_without_blank_lines_is_refused_with_the_fix(tmp_path):
    write_tables(tmp_path, "cr", {"all": [(f"sentence {row}", row % 2) for row in range(3771)]})
    words = r"cr all has 3,771 rows, expected the 3,775 that papers report\. SentEval counts .*unpack .*senteval\.tar"
    with pytest.raises(SourceError, match=words):
        TransferKind().find(RunContext(mirror=str(tmp_path)), "cr").sentences()
    with pytest.raises(SourceError, match=words):
        list(fill_cache(tmp_path / "made", "cr", str(tmp_path)))


@pytest.mark.parametrize(("name", "of_class", "blank"), [("cr", (1368, 2407), (2, 2)), ("mpqa", (7294, 3312), (2, 1))])
def test_senteval_files_include_all_lines_and_blank_lines(tmp_path, name, of_class, blank):
    files = {}
    for file, label in TRANSFER_SETS[name].files["all"]:
        lines, blanks = of_class[int(label)], blank[int(label)]
        files[file] = "so it goes .\n" * (lines - blanks - 1) + "\n" * blanks + "and so on\n"
    write_files(tmp_path, files)
    rows = rows_of(TransferKind().find(RunContext(mirror=str(tmp_path)), name))["all"]
    assert rows["class"].value_counts(sort=True).sort("class")["count"].to_list() == list(of_class)
    assert rows.filter(text="")["class"].to_list() == [0] * blank[0] + [1] * blank[1]


@pytest.mark.real_data
@pytest.mark.skipif(not MIRROR, reason="BSL_DATA_MIRROR names no mirror")
@pytest.mark.parametrize(("name", "rows", "blank"), [("cr", 3775, 4), ("mpqa", 10_606, 3)])
def test_real_sets_in_senteval_layout_equal_the_mirror_tables(tmp_path, name, rows, blank):
    table = pl.read_parquet(f"{MIRROR}/{name}/all.parquet")
    assert (table.height, table.filter(text="").height) == (rows, blank)
    files = {
        file: "".join(f"{text}\n" for text in table.filter(label=int(label))["text"])
        for file, label in TRANSFER_SETS[name].files["all"]
    }
    write_files(tmp_path, files)
    found = rows_of(TransferKind().find(RunContext(mirror=str(tmp_path)), name))["all"]
    assert found.equals(
        rows_of(TransferKind().find(RunContext(mirror=MIRROR), name))["all"].sort("class", maintain_order=True)
    )
    assert (found.height, found.filter(text="").height) == (rows, blank)


@pytest.mark.real_data
@pytest.mark.skipif(not MIRROR, reason="BSL_DATA_MIRROR names no mirror")
@pytest.mark.parametrize("name", [name for name in TRANSFER_SETS if name != "sst5"])
def test_real_set_has_the_declared_row_counts(name):
    found = rows_of(TransferKind().find(RunContext(mirror=MIRROR), name))
    assert {split: rows.height for split, rows in found.items()} == DATASETS[name].rows


def test_unavailable_or_unknown_set_raises_an_error(hub, tmp_path):
    with pytest.raises(SourceError, match=r"datasets-for-simcse@e145e8b\w+: the Hub has no such repository"):
        rows_of(TransferKind().find(RunContext(mirror=str(tmp_path)), "mr"))
    with pytest.raises(UnknownSuiteError, match="unknown suite or set 'imdb'"):
        find_set(RunContext(), "imdb")


def test_senteval_order_sorts_by_word_count_then_class():
    texts, labels = ["a b", "c", "d", "e f", "g"], np.array([0, 1, 0, 0, 0])
    expected = sorted(range(5), key=lambda row: (len(texts[row].split()), labels[row]))
    assert senteval_order([texts], labels).tolist() == expected
    second = ["x", "y z", "w", "v u t", "s"]
    expected = sorted(range(5), key=lambda row: (len(texts[row].split()), len(second[row].split()), labels[row]))
    assert senteval_order([texts, second], labels).tolist() == expected


def test_pair_features_are_absolute_difference_and_product():
    features = pair_features(np.array([[1.0, -2.0]]), np.array([[3.0, 4.0]]))
    assert features.tolist() == [[2.0, 6.0, 3.0, -8.0]]


def spoken_of(name, mirror):
    """Return every sentence that a corpus takes from a transfer set, sorted, and the columns of each frame."""
    source = resolve_source(SourceSpec(dataset=name), str(mirror))
    frames = list(read_source(source, ReadReport(name), max_bad_share=0))
    return [frame.columns for frame in frames], sorted(text for frame in frames for row in frame.rows() for text in row)


@pytest.mark.parametrize("name", list(ROWS))
def test_transfer_set_as_source_has_sentences_without_labels(tmp_path, name):
    files, tables = ROWS[name]
    write_files(tmp_path / "senteval", files)
    write_tables(tmp_path / "mirror", name, tables)
    learnt = "all" if "all" in tables else "train"
    expected = sorted(text for row in tables[learnt] for text in row[:-1])
    for mirror in ("senteval", "mirror"):
        columns, texts = spoken_of(name, tmp_path / mirror)
        assert set(map(tuple, columns)) == {DATASETS[name].texts}
        assert texts == expected


def test_file_with_unknown_name_is_refused_as_senteval_source(tmp_path):
    (tmp_path / "reviews.txt").write_text("so good\n")
    source = resolve_source(SourceSpec(path=str(tmp_path / "reviews.txt"), format="senteval"))
    with pytest.raises(SourceError, match=r"reviews\.txt: not a file of SentEval, expected .* one of MR/"):
        list(read_source(source, ReadReport("reviews"), max_bad_share=0))


def test_incomplete_transfer_set_is_refused(tmp_path):
    write_files(tmp_path, {"CR/custrev.pos": "good\n"})
    with pytest.raises(SourceError, match=r"cr: .* has only some of its files, no CR/custrev\.neg\. Copy all of them"):
        TransferKind().find(RunContext(mirror=str(tmp_path)), "cr")
