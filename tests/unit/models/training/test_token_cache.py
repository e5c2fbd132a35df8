"""Token cache on disk: the tokenizer's ids, independent of chunks, written once."""

import numpy as np
import polars as pl
import pytest

from bsl.models.errors import TrainingError
from bsl.models.training import token_cache
from bsl.models.training.token_cache import TeacherVectors, open_teacher, open_token_cache
from tests.tiny_encoder import BACK_DE, BACK_FR, ORIGINALS, reader, tiny_encoder

PAIRS = pl.DataFrame({"text_1": ORIGINALS + BACK_DE + ORIGINALS, "text_2": BACK_DE + BACK_FR + BACK_FR, "pair_id": 1})
ALL = frozenset({"label", "score", "group", "sentence_id"})
ROW = pl.int_range(12)
LABELLED = PAIRS.with_columns(label=ROW % 3, score=ROW / 11, group=pl.lit(2**63, pl.UInt64), sentence_id=ROW)
TEACHER = TeacherVectors(np.arange(12, dtype=np.uint64), np.random.default_rng(0).random((12, 3), dtype=np.float32))


@pytest.fixture
def tokenizer(tmp_path):
    return tiny_encoder(tmp_path / "model")[1]


@pytest.fixture
def opened(tmp_path, tokenizer):
    def call(pairs, needs=frozenset(), teacher=TEACHER, length=24):
        return open_token_cache(tmp_path, pairs.lazy(), reader(tokenizer, length), frozenset(needs), teacher)

    return call


@pytest.mark.parametrize("chunk", [1, 5, 50_000])
def test_batches_have_the_tokens_of_both_views_and_the_fields_that_the_objective_needs(
    opened, tokenizer, tmp_path, monkeypatch, chunk
):
    monkeypatch.setattr(token_cache, "CHUNK", chunk)
    # A file of several row groups, like an artifact's parts.
    LABELLED.write_parquet(tmp_path / "pairs.parquet", row_group_size=3)
    data, rows = opened(pl.scan_parquet(tmp_path / "pairs.parquet"), ALL), np.array([7, 0, 11, 7])
    assert len(data) == 12
    batch = data.take(rows)
    for view, column in ((batch.view_1, "text_1"), (batch.view_2, "text_2")):
        for number, row in zip(view, rows, strict=True):
            start, end = batch.tokens.offsets[number : number + 2]
            assert batch.tokens.ids[start:end].tolist() == tokenizer(PAIRS[column][int(row)])["input_ids"]
    together = batch.tokens.lengths_of(batch.view_1) + batch.tokens.lengths_of(batch.view_2)
    np.testing.assert_array_equal(data.lengths_of(rows), together)
    columns = batch.columns
    assert set(columns) == {"label", "score", "group", "teacher"}
    assert (columns["label"].dtype, columns["label"].tolist()) == (np.int64, [1, 0, 2, 1])
    np.testing.assert_array_equal(columns["score"], (rows / 11).astype(np.float32))
    assert (columns["group"].dtype, set(columns["group"].tolist())) == (np.uint64, {2**63})
    np.testing.assert_array_equal(columns["teacher"], TEACHER.vectors[rows])


def test_cache_file_is_reused_for_equal_content_only(opened, tmp_path):
    first = opened(PAIRS)
    path = next(tmp_path.glob("tokens-*"))
    written = path.stat().st_mtime_ns
    assert opened(LABELLED).digest == first.digest  # its other columns are not needed
    assert opened(LABELLED).take(np.arange(3)).columns == {}
    assert path.stat().st_mtime_ns == written
    others = [(PAIRS[::-1], 24), (PAIRS.rename({"text_1": "text_2", "text_2": "text_1"}), 24), (PAIRS, 5)]
    digests = {opened(pairs, length=length).digest for pairs, length in others}
    assert len(digests | {first.digest}) == 4
    assert len(list(tmp_path.iterdir())) == 4 + 1  # four caches and the model, no leftovers


def test_digest_changes_with_labels_scores_ids_and_teacher_vectors(opened):
    changes = [LABELLED.with_columns(pl.col(name).reverse()) for name in ("label", "score", "sentence_id")]
    other = TeacherVectors(TEACHER.ids, TEACHER.vectors + 1)
    digests = {opened(pairs, ALL).digest for pairs in (LABELLED, *changes)} | {opened(LABELLED, ALL, other).digest}
    assert len(digests) == 5


@pytest.mark.parametrize(
    ("needs", "pairs", "message"),
    [
        ("label", LABELLED.drop("text_2"), r"lack the columns \['text_2'\], expected \['text_1', 'text_2'\]"),
        ("label", LABELLED.with_columns(text_2=pl.when(ROW != 9).then("text_2")), "text_2 of pair 9 is null"),
        ("score", LABELLED.with_columns(score=pl.when(ROW != 5).then("score")), "score of pair 5 is null"),
        ("label", LABELLED.drop("label"), "label of pair 0 is missing, but the objective or the order needs it"),
        ("group", LABELLED.with_columns(group=None), "group of pair 0 is null, but the objective or the order"),
        ("score", LABELLED.with_columns(score=ROW / 10), r"score of pair 11 is 1\.1, expected 0 to 1"),
        ("sentence_id", LABELLED.with_columns(sentence_id=2 * ROW), "no vector for sentence_id 12 of pair 6"),
    ],
)
def test_missing_or_invalid_field_error_names_column_and_row(opened, monkeypatch, needs, pairs, message):
    monkeypatch.setattr(token_cache, "CHUNK", 4)
    with pytest.raises(TrainingError, match=message):
        opened(pairs, {needs})


def test_teacher_vectors_are_memory_mapped_and_need_sorted_ids(opened, tmp_path):
    rows = pl.DataFrame({"sentence_id": TEACHER.ids, "embedding": TEACHER.vectors})
    mapped = open_teacher(tmp_path, "t", rows.lazy())
    assert isinstance(mapped.vectors, np.memmap)
    assert mapped.digest == TEACHER.digest == open_teacher(tmp_path, "t", rows.lazy()).digest
    np.testing.assert_array_equal(mapped.vectors_of(np.array([9, 2], dtype=np.uint64)), TEACHER.vectors[[9, 2]])
    with pytest.raises(TrainingError, match="ids are not sorted"):
        open_teacher(tmp_path, "other", rows.reverse().lazy())
    with pytest.raises(TrainingError, match="needs a teacher's vectors, but there is no teacher"):
        opened(LABELLED, {"sentence_id"}, None)


def test_texts_that_the_tokenizer_hardly_knows_are_refused(opened, tmp_path):
    foreign = pl.DataFrame({"text_1": ["今日", "明日", *ORIGINALS[:1]], "text_2": ["昨日", "今朝", *ORIGINALS[1:2]]})
    with pytest.raises(TrainingError, match=r"4 of 6 texts consist mostly of words that .* such as '今日'"):
        opened(foreign)
    assert not [*tmp_path.glob("tokens-*")]
    assert len(opened(pl.concat([foreign, foreign[2:]]))) == 4  # as many are known
