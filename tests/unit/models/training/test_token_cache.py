"""Token cache on disk: the tokenizer's ids, independent of chunks, written once."""

import numpy as np
import polars as pl
import pytest

from bsl.models.errors import TrainingError
from bsl.models.training import token_cache
from bsl.models.training.token_cache import TeacherVectors, open_teacher, open_token_cache
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, reader, tiny_encoder

PAIRS = pl.DataFrame({"text_1": ORIGINALS + BACK_DE + ORIGINALS, "text_2": BACK_DE + BACK_FR + BACK_FR, "pair_id": 1})


@pytest.fixture
def tokenizer(tmp_path):
    return tiny_encoder(tmp_path / "model")[1]


@pytest.mark.parametrize("chunk", [1, 5, 50_000])
def test_cached_rows_contain_the_tokens_of_both_views(tokenizer, tmp_path, monkeypatch, chunk):
    monkeypatch.setattr(token_cache, "CHUNK", chunk)
    # A file of several row groups, like an artifact's parts.
    PAIRS.write_parquet(tmp_path / "pairs.parquet", row_group_size=3)
    data = open_token_cache(tmp_path, pl.scan_parquet(tmp_path / "pairs.parquet"), reader(tokenizer, 24))
    assert len(data) == 12
    rows = np.array([7, 0, 11, 7])
    batch = data.take(rows)
    for view, column in ((batch.view_1, "text_1"), (batch.view_2, "text_2")):
        for number, row in zip(view, rows, strict=True):
            start, end = batch.tokens.offsets[number : number + 2]
            assert batch.tokens.ids[start:end].tolist() == tokenizer(PAIRS[column][int(row)])["input_ids"]
    together = batch.tokens.lengths_of(batch.view_1) + batch.tokens.lengths_of(batch.view_2)
    np.testing.assert_array_equal(data.lengths_of(rows), together)


def test_cache_file_is_reused_for_equal_content_only(tokenizer, tmp_path):
    first = open_token_cache(tmp_path, PAIRS.lazy(), reader(tokenizer, 24))
    path = next(tmp_path.glob("tokens-*"))
    written = path.stat().st_mtime_ns
    assert open_token_cache(tmp_path, PAIRS.lazy(), reader(tokenizer, 24)).digest == first.digest
    assert path.stat().st_mtime_ns == written
    others = [(PAIRS[::-1], 24), (PAIRS.rename({"text_1": "text_2", "text_2": "text_1"}), 24), (PAIRS, 5)]
    digests = {open_token_cache(tmp_path, pairs.lazy(), reader(tokenizer, length)).digest for pairs, length in others}
    assert len(digests | {first.digest}) == 4
    assert len(list(tmp_path.iterdir())) == 4 + 1  # four caches and the model, no leftovers


ALL = frozenset({"label", "score", "group", "sentence_id"})
LABELLED = PAIRS.with_columns(
    label=pl.int_range(12) % 3,
    score=pl.int_range(12) / 11,
    group=pl.lit(2**63, pl.UInt64),
    sentence_id=pl.int_range(12),
)


@pytest.fixture
def teacher():
    return TeacherVectors(np.arange(12, dtype=np.uint64), np.random.default_rng(0).random((12, 3), dtype=np.float32))


@pytest.mark.parametrize("chunk", [5, 50_000])
def test_batches_include_the_fields_required_by_the_objective(tokenizer, tmp_path, monkeypatch, teacher, chunk):
    monkeypatch.setattr(token_cache, "CHUNK", chunk)
    data = open_token_cache(tmp_path, LABELLED.lazy(), reader(tokenizer, 24), ALL, teacher)
    rows = np.array([7, 0, 11, 7])
    batch = data.take(rows)
    columns = batch.columns
    assert set(columns) == {"label", "score", "group", "teacher"}
    assert (columns["label"].dtype, columns["label"].tolist()) == (np.int64, [1, 0, 2, 1])
    np.testing.assert_array_equal(columns["score"], (rows / 11).astype(np.float32))
    assert (columns["group"].dtype, set(columns["group"].tolist())) == (np.uint64, {2**63})
    np.testing.assert_array_equal(columns["teacher"], teacher.vectors[rows])


def test_digest_changes_with_needed_fields_and_teacher_vectors_only(tokenizer, tmp_path, teacher):
    other = TeacherVectors(teacher.ids, teacher.vectors + 1)
    changes = [LABELLED.with_columns(pl.col(name).reverse()) for name in ("label", "score", "sentence_id")]
    digests = {
        open_token_cache(tmp_path, pairs.lazy(), reader(tokenizer, 24), ALL, vectors).digest
        for pairs, vectors in [(LABELLED, teacher), (LABELLED, other), *((change, teacher) for change in changes)]
    }
    assert len(digests) == 5
    plain, labelled = (open_token_cache(tmp_path, pairs.lazy(), reader(tokenizer, 24)) for pairs in (PAIRS, LABELLED))
    assert plain.digest == labelled.digest
    assert labelled.take(np.arange(3)).columns == {}


@pytest.mark.parametrize(
    ("needs", "pairs", "message"),
    [
        ("label", LABELLED.drop("text_2"), r"lack the columns \['text_2'\], expected \['text_1', 'text_2'\]"),
        (
            "label",
            LABELLED.with_columns(text_2=pl.when(pl.int_range(12) != 9).then("text_2")),
            "text_2 of pair 9 is null",
        ),
        ("score", LABELLED.with_columns(score=pl.when(pl.int_range(12) != 5).then("score")), "score of pair 5 is null"),
        ("label", LABELLED.drop("label"), "label of pair 0 is missing, but the objective or the order needs it"),
        ("group", LABELLED.with_columns(group=None), "group of pair 0 is null, but the objective or the order"),
        ("score", LABELLED.with_columns(score=pl.int_range(12) / 10), r"score of pair 11 is 1\.1, expected 0 to 1"),
        (
            "sentence_id",
            LABELLED.with_columns(sentence_id=2 * pl.int_range(12)),
            "no vector for sentence_id 12 of pair 6",
        ),
    ],
)
def test_missing_or_invalid_field_error_names_column_and_row(
    tokenizer, tmp_path, monkeypatch, teacher, needs, pairs, message
):
    monkeypatch.setattr(token_cache, "CHUNK", 4)
    with pytest.raises(TrainingError, match=message):
        open_token_cache(tmp_path, pairs.lazy(), reader(tokenizer, 24), frozenset({needs}), teacher)
    with pytest.raises(TrainingError, match="needs a teacher's vectors, but there is no teacher"):
        open_token_cache(tmp_path, LABELLED.lazy(), reader(tokenizer, 24), frozenset({"sentence_id"}))


def test_teacher_vectors_are_memory_mapped_and_need_sorted_ids(tmp_path, teacher):
    rows = pl.DataFrame({"sentence_id": teacher.ids, "embedding": teacher.vectors})
    mapped = open_teacher(tmp_path, "t", rows.lazy())
    assert isinstance(mapped.vectors, np.memmap)
    assert mapped.digest == teacher.digest == open_teacher(tmp_path, "t", rows.lazy()).digest
    np.testing.assert_array_equal(mapped.vectors_of(np.array([9, 2], dtype=np.uint64)), teacher.vectors[[9, 2]])
    with pytest.raises(TrainingError, match="ids are not sorted"):
        open_teacher(tmp_path, "other", rows.reverse().lazy())
