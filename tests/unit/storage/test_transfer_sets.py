"""Transfer sets read alike from tables and from SentEval's files, and what is wrong with one is said with its row."""

import numpy as np
import polars as pl
import pytest

from models.evaluation.probe.problem import pair_features, senteval_order
from storage.declarations import DATASETS
from storage.errors import SourceError
from storage.transfer import TRANSFER_SETS
from tasks.evaluation.transfer import read_transfer_set, resolve_transfer_set
from tasks.site import Site

MRPC_HEADER = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"
# Set → its files as SentEval's script leaves them, and the same rows as tables: texts, then the label as spelled there.
ROWS = {
    "subj": (
        {"SUBJ/subj.subjective": "a moving film .\nsly and sad\n", "SUBJ/subj.objective": "he goes home .\n\n"},
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


def write_files(folder, files, encoding="utf-8"):
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content.encode(encoding))


def write_tables(folder, name, splits):
    declared = TRANSFER_SETS[name]
    for split, rows in splits.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        frame = pl.DataFrame(rows, schema=[*DATASETS[name].texts, declared.label], orient="row")
        frame.write_parquet(folder / name / f"{split}.parquet")


@pytest.mark.parametrize("name", list(ROWS))
def test_both_forms_give_the_same_rows(tmp_path, name):
    files, tables = ROWS[name]
    write_files(tmp_path / "senteval", files)
    write_tables(tmp_path / "mirror", name, tables)
    site = Site(mirror=str(tmp_path / "mirror"))
    table = read_transfer_set(resolve_transfer_set(site, name))
    original = read_transfer_set(resolve_transfer_set(site, name, str(tmp_path / "senteval")))
    assert list(table) == list(original) == list(tables)
    for split, rows in tables.items():
        assert table[split].equals(original[split])
        numbers = [TRANSFER_SETS[name].classes.index(str(row[-1])) for row in rows]
        assert table[split]["class"].to_list() == numbers


def test_objective_is_class_1_of_subj_as_in_senteval(tmp_path):
    write_tables(tmp_path, "subj", ROWS["subj"][1])
    found = read_transfer_set(resolve_transfer_set(Site(mirror=str(tmp_path)), "subj"))["all"]
    assert dict(found.rows()) == {"he goes home .": 1, "a moving film .": 0, "sly and sad": 0}


def test_files_as_first_distributed_are_windows_latin(tmp_path):
    write_files(tmp_path, {"CR/custrev.pos": "naïve – fun\n", "CR/custrev.neg": "no\n"}, encoding="cp1252")
    found = resolve_transfer_set(Site(), "cr", str(tmp_path)).sentences()
    assert found.to_list() == ["no", "naïve – fun"]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        ({"text": ["a", "b"], "label": [0, 7]}, "mr all: row 2 has the label '7', expected one of 0, 1"),
        ({"text": ["a"], "score": [0]}, "column 'label' is missing"),
        ({"text": ["a"], "label": [None]}, "mr all: row 1 has the label None"),
        ({"text": [], "label": []}, "mr all holds no record"),
    ],
)
def test_a_table_that_is_not_the_set_is_refused(tmp_path, frame, words):
    (tmp_path / "mr").mkdir()
    schema = {"text": pl.String, next(name for name in frame if name != "text"): pl.Int8}
    pl.DataFrame(frame, schema=schema).write_parquet(tmp_path / "mr" / "all.parquet")
    with pytest.raises(SourceError, match=words):
        read_transfer_set(resolve_transfer_set(Site(mirror=str(tmp_path)), "mr"))


def test_a_line_of_another_form_is_named(tmp_path):
    files = dict(ROWS["trec"][0])
    files["TREC/TREC_10.label"] = "HUM:ind Who ?\nno colon\n"
    write_files(tmp_path, files)
    with pytest.raises(SourceError, match=r"TREC_10.label, line 2: 'no colon' has not the form"):
        read_transfer_set(resolve_transfer_set(Site(), "trec", str(tmp_path)))


def test_a_set_that_nobody_has_is_named(tmp_path):
    with pytest.raises(SourceError, match="'mr' was not found"):
        resolve_transfer_set(Site(mirror=str(tmp_path)), "mr")
    with pytest.raises(SourceError, match="names no transfer set; expected one of mr, cr"):
        resolve_transfer_set(Site(), "imdb")


def test_rows_are_sorted_by_words_then_class_then_as_they_came():
    texts, labels = ["a b", "c", "d", "e f", "g"], np.array([0, 1, 0, 0, 0])
    expected = sorted(range(5), key=lambda row: (len(texts[row].split()), labels[row]))
    assert senteval_order([texts], labels).tolist() == expected
    second = ["x", "y z", "w", "v u t", "s"]
    expected = sorted(range(5), key=lambda row: (len(texts[row].split()), len(second[row].split()), labels[row]))
    assert senteval_order([texts, second], labels).tolist() == expected


def test_a_pair_is_its_distance_and_its_product():
    features = pair_features(np.array([[1.0, -2.0]]), np.array([[3.0, 4.0]]))
    assert features.tolist() == [[2.0, 6.0, 3.0, -8.0]]
