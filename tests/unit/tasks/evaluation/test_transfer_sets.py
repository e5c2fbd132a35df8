"""Transfer sets are read alike from tables and SentEval's files, also as sources; errors name the row."""

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
from bsl.tasks.evaluation.transfer import TransferKind
from bsl.tasks.stage.run_context import RunContext
from tests.toy_sets import allow_any_rows, write_files

MIRROR = os.environ.get("BSL_DATA_MIRROR")
SPLITS = ("train", "dev", "test")
MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
# Set → files as SentEval's script writes them, and the same rows as tables: texts, then the label in the table's form.
ROWS = {
    "subj": (
        {"SUBJ/subj.subjective": "a moving film .\nsly and sad\n", "SUBJ/subj.objective": "he goes home .\n"},
        {"all": [("he goes home .", 0), ("a moving film .", 1), ("sly and sad", 1)]},
    ),
    "sst2": (
        {f"SST/binary/sentiment-{split}": "so good\t1\nso bad\t0\n" for split in SPLITS},
        dict.fromkeys(SPLITS, (("so good", 1), ("so bad", 0))),
    ),
    "sst5": (
        {f"SST/fine/sentiment-{split}": "4 so good\n2 so so\n" for split in SPLITS},
        dict.fromkeys(SPLITS, (("so good", 4), ("so so", 2))),
    ),
    "trec": (
        {"TREC/train_5500.label": "DESC:manner How does it : end ?\nNUM:dist How far ?\n",
         "TREC/TREC_10.label": "HUM:ind Who ?\n"},
        {"train": [("How does it : end ?", "DESC"), ("How far ?", "NUM")], "test": [("Who ?", "HUM")]},
    ),
    "mrpc": (
        {f"MRPC/msr_paraphrase_{split}.txt": f'{MRPC_HEADER}\n1\t7\t8\tHe " said\tHe says\n' for split in SPLITS[::2]},
        dict.fromkeys(SPLITS[::2], (('He " said', "He says", 1),)),
    ),
}  # fmt: skip
OBJECTIVE_IS_1 = {"he goes home .": 1, "a moving film .": 0, "sly and sad": 0}


def write_tables(folder, name, splits):
    (folder / name).mkdir(parents=True, exist_ok=True)
    schema = [*DATASETS[name].texts, TRANSFER_SETS[name].label]
    for split, rows in splits.items():
        pl.DataFrame(rows, schema=schema, orient="row").write_parquet(folder / name / f"{split}.parquet")
    return str(folder)


def found_in(mirror, name):
    return TransferKind().find(RunContext(mirror=str(mirror)), name)


@pytest.fixture
def toys(monkeypatch):
    allow_any_rows(monkeypatch, *TRANSFER_SETS)


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("name", ROWS)
def test_senteval_files_and_tables_give_the_same_rows_and_as_sources_the_same_sentences(tmp_path, name):
    files, tables = ROWS[name]
    mirrors = write_tables(tmp_path / "mirror", name, tables), write_files(tmp_path / "senteval", files)
    table, original = (rows_of(found_in(mirror, name)) for mirror in mirrors)
    assert list(table) == list(original) == list(tables)
    for split, rows in tables.items():
        assert table[split].equals(original[split])
        assert table[split]["class"].to_list() == [TRANSFER_SETS[name].classes.index(str(row[-1])) for row in rows]
    if name == "subj":
        assert dict(table["all"].rows()) == OBJECTIVE_IS_1
    sentences = sorted(text for row in tables["all" if "all" in tables else "train"] for text in row[:-1])
    for mirror in mirrors:
        source = resolve_source(SourceSpec(dataset=name), mirror)
        frames = list(read_source(source, ReadReport(name), max_bad_share=0))
        assert {tuple(frame.columns) for frame in frames} == {DATASETS[name].texts}
        assert sorted(text for frame in frames for row in frame.rows() for text in row) == sentences


REFUSED = {
    "label": ("mr", {"text": ["a", "b"], "label": [0, 7]}, "mr all: row 2 has the label '7', expected one of 0, 1"),
    "no labels": ("mr", {"text": ["a"], "score": [0]}, "column 'label' is missing"),
    "null": ("mr", {"text": ["a"], "label": [None]}, "mr all: row 1 has the label None"),
    "empty": ("mr", {"text": [], "label": []}, "mr all contains no records"),
    "line": (
        "trec", ROWS["trec"][0] | {"TREC/TREC_10.label": "HUM:ind Who ?\nno colon\n"},
        r"TREC_10.label, line 2: 'no colon' does not have the format",
    ),
    "incomplete": (
        "cr", {"CR/custrev.pos": "good\n"}, r"cr: .* has only some of its files, no CR/custrev\.neg\. Copy all of them",
    ),
}  # fmt: skip


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize(("name", "content", "words"), REFUSED.values(), ids=REFUSED)
def test_damaged_table_or_file_is_refused_with_its_row(tmp_path, name, content, words):
    if name == "mr":
        (tmp_path / name).mkdir()
        schema = {column: pl.String if column == "text" else pl.Int8 for column in content}
        pl.DataFrame(content, schema=schema).write_parquet(tmp_path / name / "all.parquet")
    else:
        write_files(tmp_path, content)
    with pytest.raises(SourceError, match=words):
        rows_of(found_in(tmp_path, name))


def test_unavailable_set_or_unknown_file_is_refused(hub, tmp_path):
    with pytest.raises(SourceError, match=r"datasets-for-simcse@e145e8b\w+: the Hub has no such repository"):
        rows_of(found_in(tmp_path, "mr"))
    (tmp_path / "reviews.txt").write_text("so good\n")
    source = resolve_source(SourceSpec(path=str(tmp_path / "reviews.txt"), format="senteval"))
    with pytest.raises(SourceError, match=r"reviews\.txt: not a file of SentEval, expected .* one of MR/"):
        list(read_source(source, ReadReport("reviews"), max_bad_share=0))


@pytest.mark.usefixtures("toys")
def test_windows_1252_files_are_decoded(tmp_path):
    write_files(tmp_path, {"CR/custrev.pos": "naïve – fun\n".encode("cp1252"), "CR/custrev.neg": "no\n"})
    assert found_in(tmp_path, "cr").sentences().to_list() == ["no", "naïve – fun"]


@pytest.mark.usefixtures("toys")
@pytest.mark.parametrize("form", ["files", "tables"])
def test_blank_line_is_sorted_first_and_encoded_as_period(tmp_path, form):
    if form == "files":
        write_files(tmp_path, {"CR/custrev.pos": "good\n\n", "CR/custrev.neg": "\r\nbad one\n \n"})
    else:
        write_tables(tmp_path, "cr", {"all": [("", 0), ("bad one", 0), (" ", 0), ("good", 1), ("", 1)]})
    found = found_in(tmp_path, "cr")
    rows = rows_of(found)["all"]
    expected = [("", 0), ("bad one", 0), ("", 0), ("good", 1), ("", 1)]
    assert [(text.strip(), label) for text, label in rows.rows()] == expected
    assert senteval_order([rows["text"].to_list()], rows["class"].to_numpy()).tolist() == [0, 2, 4, 3, 1]
    assert found.sentences().to_list() == [".", "bad one", ".", "good", "."]
    assert sorted(unique_sentences([found])["text"]) == [".", "bad one", "good"]


def test_copy_without_blank_lines_is_refused_with_the_fix(tmp_path):
    write_tables(tmp_path, "cr", {"all": [(f"sentence {row}", row % 2) for row in range(3771)]})
    words = r"cr all has 3,771 rows, expected the 3,775 that papers report\. SentEval counts .*unpack .*senteval\.tar"
    with pytest.raises(SourceError, match=words):
        found_in(tmp_path, "cr").sentences()
    with pytest.raises(SourceError, match=words):
        list(fill_cache(tmp_path / "made", "cr", str(tmp_path)))


@pytest.mark.real_data
@pytest.mark.skipif(not MIRROR, reason="BSL_DATA_MIRROR names no mirror")
@pytest.mark.parametrize("name", [name for name in TRANSFER_SETS if name != "sst5"])
def test_real_set_has_the_declared_row_counts(name):
    found = rows_of(found_in(MIRROR, name))
    assert {split: rows.height for split, rows in found.items()} == DATASETS[name].rows


def test_senteval_order_sorts_by_word_count_then_class_and_pairs_have_difference_and_product():
    texts, second = ["a b", "c", "d", "e f", "g"], ["x", "y z", "w", "v u t", "s"]
    labels = np.array([0, 1, 0, 0, 0])
    for sides in ([texts], [texts, second]):
        expected = sorted(range(5), key=lambda row: (*(len(side[row].split()) for side in sides), labels[row]))
        assert senteval_order(sides, labels).tolist() == expected
    assert pair_features(np.array([[1.0, -2.0]]), np.array([[3.0, 4.0]])).tolist() == [[2.0, 6.0, 3.0, -8.0]]
