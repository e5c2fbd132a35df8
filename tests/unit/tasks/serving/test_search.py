"""Files are embedded in order, also after kills; a corpus is searched for neighbours and near duplicates."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.storage.artifacts.garbage_collection import collectable
from bsl.storage.errors import SourceError
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.embedding import encode as encoding
from bsl.tasks.serving.search import embed_file, index
from bsl.tasks.stage.progress import listening
from tests.hostile import made_long_ago
from tests.tiny_encoder import BACK_DE, ORIGINALS, tiny_encoder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    network, tokenizer = tiny_encoder(folder / "bare")
    SentenceEncoder(network, tokenizer).save(folder / "saved")
    return str(folder / "saved"), lambda texts: SentenceEncoder(network, tokenizer).encode(texts)


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join([*ORIGINALS, *BACK_DE, ORIGINALS[0]]))
    return SourceSpec(path=str(path))


def advance(done, total, detail):
    pass


class Lengths(encoding.ResumableEncoding):
    """Encoding whose vectors are text lengths."""

    part = 2

    def __call__(self, texts, on_progress=None):
        return np.array([[len(text)] for text in texts], dtype=np.float32)


def test_embed_file_preserves_row_order_and_duplicates(model, site, lines, tmp_path):
    name, vectors_of = model
    assert embed_file(site, name, lines, tmp_path / "out.parquet", "fp32", advance) == 9
    table = pl.read_parquet(tmp_path / "out.parquet")
    texts = [*ORIGINALS, *BACK_DE, ORIGINALS[0]]
    assert table["text"].to_list() == texts
    np.testing.assert_allclose(table["embedding"].to_numpy(), vectors_of(texts), atol=1e-6)
    assert [path.name for path in tmp_path.glob("*out*")] == ["out.parquet"]


def killed_at(kill, seen):
    """Return a progress callback that records its calls and raises KeyboardInterrupt at `kill`."""

    def advance(done, total, detail):
        seen.append((done, total))
        if done == kill:
            raise KeyboardInterrupt

    return advance


def test_killed_embed_file_resumes_from_finished_parts(model, site, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "CPU_PART", 4)
    target, heard = tmp_path / "out.parquet", []
    with pytest.raises(KeyboardInterrupt):
        embed_file(site, model[0], lines, target, "fp32", killed_at(9, heard))
    parts = sorted(tmp_path.glob(".out.parquet.*.parts/*"))
    assert [path.name for path in parts] == ["000000.parquet", "000001.parquet"]
    assert heard == [(0, 9), (4, 9), (4, 9), (8, 9), (8, 9), (9, 9)]
    heard.clear()
    assert embed_file(site, model[0], lines, target, "fp32", killed_at(None, heard)) == 9
    assert heard == [(8, 9), (9, 9)]  # resumes at the last part
    embed_file(site, model[0], lines, tmp_path / "whole.parquet", "fp32", advance)
    assert pl.read_parquet(target).equals(pl.read_parquet(tmp_path / "whole.parquet"))


def test_embed_file_ignores_parts_of_a_different_size(model, site, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "CPU_PART", 2)
    target = tmp_path / "out.parquet"
    with pytest.raises(KeyboardInterrupt):
        embed_file(site, model[0], lines, target, "fp32", killed_at(9, []))
    monkeypatch.setattr(encoding, "CPU_PART", 100)
    assert embed_file(site, model[0], lines, target, "fp32", advance) == 9
    assert pl.read_parquet(target)["text"].to_list() == [*ORIGINALS, *BACK_DE, ORIGINALS[0]]


def test_killed_index_resumes_from_finished_parts(model, site, lines, monkeypatch):
    """The result has the bytes of an uninterrupted index."""
    monkeypatch.setattr(encoding, "CPU_PART", 3)
    heard = []
    monkeypatch.setattr("bsl.tasks.embedding.embed.progress_of", lambda what: killed_at(8, heard))
    with pytest.raises(KeyboardInterrupt):
        index(site, model[0], lines, "fp32")
    assert heard[-2:] == [(6, 8), (8, 8)]
    heard.clear()
    monkeypatch.setattr("bsl.tasks.embedding.embed.progress_of", lambda what: killed_at(None, heard))
    resumed = index(site, model[0], lines, "fp32")
    assert heard == [(6, 8), (8, 8)]
    other = site.model_copy(update={"store": f"{site.store}-other"})
    straight = index(other, model[0], lines, "fp32")
    vectors = [dict(zip(made.texts, made.vectors.tolist(), strict=True)) for made in (resumed, straight)]
    assert vectors[0] == vectors[1]


def test_parts_with_changed_texts_are_recomputed(tmp_path):
    frames = [pl.DataFrame({"text": texts}) for texts in (["a", "b"], ["c"])]
    lengths = Lengths(None, None, None, "fp32")
    first = list(lengths.parts(frames, 3, tmp_path, advance))
    again = list(lengths.parts([frames[0], pl.DataFrame({"text": ["ccc"]})], 3, tmp_path, advance))
    assert again[0].equals(first[0])
    assert [row[0] for row in again[1]["embedding"].to_list()] == [3.0]


def test_index_includes_long_text_and_counts_excluded_texts(model, site, tmp_path):
    path, long = tmp_path / "lines.txt", f"{ORIGINALS[0]} {'and snow ' * 400}long"
    path.write_bytes("\n".join([*BACK_DE * 30, *BACK_DE[:2], "", long, ORIGINALS[1]]).encode() + b"\n\xff\n")
    corpus = index(site, model[0], SourceSpec(path=str(path)), "fp32")
    assert long in corpus.texts
    assert len(corpus.texts) == 6
    assert corpus.taken.startswith("6 of 126 texts read; excluded: 118 repeated, 1 empty, 1 unreadable (the first: ")
    assert "lines.txt, line 126: not UTF-8" in corpus.taken


def test_folder_with_several_formats_is_a_single_corpus(model, site, lines, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(ORIGINALS))
    (folder / "b.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in BACK_DE))
    spec = SourceSpec(path=str(folder))
    assert set(index(site, model[0], spec, "fp32").texts) == {*ORIGINALS, *BACK_DE}
    assert embed_file(site, model[0], spec, tmp_path / "out.parquet", "fp32", advance) == 8
    assert pl.read_parquet(tmp_path / "out.parquet")["text"].to_list() == [*BACK_DE, *ORIGINALS]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl"])
def test_embed_file_reads_a_null_as_an_empty_cell(model, site, tmp_path, suffix):
    rows = pl.DataFrame({"text": [*ORIGINALS[:2], None, *ORIGINALS[2:]], "n": range(5)})
    path = tmp_path / f"in.{suffix}"
    {"parquet": rows.write_parquet, "csv": rows.write_csv, "jsonl": rows.write_ndjson}[suffix](path)
    assert embed_file(site, model[0], SourceSpec(path=str(path)), tmp_path / "o.parquet", "fp32", advance) == 5
    assert pl.read_parquet(tmp_path / "o.parquet")["text"].to_list() == [*ORIGINALS[:2], "", *ORIGINALS[2:]]


def test_cut_texts_are_counted_in_one_line(model, site, tmp_path):
    texts = [*ORIGINALS, " ".join(ORIGINALS * 50), "x " * 3000]
    (tmp_path / "in.txt").write_text("\n".join(texts))
    told = []
    with listening(lambda event, value: told.append(value) if event == "tells" else None):
        spec = SourceSpec(path=str(tmp_path / "in.txt"))
        index(site, model[0], spec, "fp32")
        embed_file(site, model[0], spec, tmp_path / "o.parquet", "fp32", advance)
    limit = SentenceEncoder.load(model[0]).config.length
    note = f"2 of {len(texts)} texts are longer than {limit} tokens; their ends are ignored. Split them into passages"
    assert [line.startswith(note) for line in told] == [True, True]


def test_embed_file_accepts_a_folder_with_glob_characters(model, site, lines, tmp_path):
    (tmp_path / "run[1]").mkdir()
    embed_file(site, model[0], lines, tmp_path / "run[1]" / "out.parquet", "fp32", advance)
    assert len(pl.read_parquet(tmp_path / "run[1]" / "out.parquet", glob=False)) == 9


def test_embed_file_with_two_text_columns_requires_a_name(model, site, tmp_path):
    pl.DataFrame({"premise": ORIGINALS, "hypothesis": BACK_DE, "label": [0] * 4}).write_parquet(tmp_path / "in.parquet")
    spec = SourceSpec(path=str(tmp_path / "in.parquet"))
    with pytest.raises(SourceError, match=r"premise, hypothesis contain text \(expected one"):
        embed_file(site, model[0], spec, tmp_path / "out.parquet", "fp32", advance)
    embed_file(
        site, model[0], spec.model_copy(update={"columns": ("hypothesis",)}), tmp_path / "o.parquet", "fp32", advance
    )
    assert pl.read_parquet(tmp_path / "o.parquet")["text"].to_list() == BACK_DE


def test_search_finds_the_sentence_itself_and_pairs_the_nearest(model, site, lines):
    corpus = index(site, model[0], lines, "fp32")
    assert len(corpus.texts) == 8  # duplicates removed
    ((score, text), *_), *_ = corpus.search([ORIGINALS[1]], 3)
    assert (text, round(score, 5)) == (ORIGINALS[1], 1)
    (score, first, second), *_ = corpus.pairs(1, -1)
    unit = corpus.vectors
    products = np.triu(unit @ unit.T, 1) - np.tril(np.ones((8, 8)))
    assert score == pytest.approx(products.max(), abs=1e-6)
    assert {first, second} == {corpus.texts[int(row)] for row in divmod(int(products.argmax()), 8)}


def test_used_index_survives_garbage_collection(model, site, lines):
    store = site.open_store()
    index(site, model[0], lines, "fp32")
    made_long_ago(store)
    assert len(collectable(store, timedelta(days=30), datetime.now(UTC))) == 2
    index(site, model[0], lines, "fp32")
    assert collectable(store, timedelta(days=30), datetime.now(UTC) + timedelta(days=1)) == []


def test_search_command_prints_json_and_commands_report_usage_errors(model, site, lines, capsys, monkeypatch):
    monkeypatch.setenv("BSL_STORE", site.store)
    assert main(["search", model[0], str(lines.path), ORIGINALS[0], "--top", "1", "--device", "cpu", "--json"]) == 0
    said = capsys.readouterr()
    ((score, text),) = json.loads(said.out)[ORIGINALS[0]]
    assert (round(score, 5), text) == (1, ORIGINALS[0])
    assert "lines.txt: 8 of 9 texts read; excluded: 1 repeated\n" in said.err
    for query in ([], [" "], ["dinner", ""]):
        assert main(["search", model[0], str(lines.path), *query]) == 2
        assert "expected a query" in capsys.readouterr().err
    assert main(["embed", model[0], str(lines.path), "vectors.csv"]) == 2
    assert "vectors.csv: expected a name that ends in .parquet" in capsys.readouterr().err


def test_embed_file_ignores_its_output_in_source_folder(model, site, tmp_path, monkeypatch):
    """The output of a killed call is not read as text when the call is repeated."""
    monkeypatch.setattr(encoding, "CPU_PART", 2)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("\n".join(ORIGINALS))
    spec, target = SourceSpec(path=str(tmp_path / "in")), tmp_path / "in" / "out.parquet"
    with pytest.raises(KeyboardInterrupt):
        embed_file(site, model[0], spec, target, "fp32", killed_at(4, []))
    assert embed_file(site, model[0], spec, target, "fp32", advance) == 4
    assert pl.read_parquet(target)["text"].to_list() == ORIGINALS


def test_columns_are_copied_beside_vectors_and_shown_beside_hits(model, site, tmp_path):
    texts = [*ORIGINALS, ORIGINALS[0]]
    table = pl.DataFrame({"id": [f"t-{n}" for n in range(len(texts))], "text": texts})
    table.write_csv(tmp_path / "texts.csv")
    source = SourceSpec(path=str(tmp_path / "texts.csv"), columns=("text",))
    embed_file(site, model[0], source, tmp_path / "out.parquet", "fp32", advance, ("id",))
    assert pl.read_parquet(tmp_path / "out.parquet").select("id", "text").equals(table)
    found = index(site, model[0], source, "fp32", ("id",))
    assert {text: found.beside[text]["id"] for text in found.texts} == {
        text: f"t-{n}" for n, text in enumerate(ORIGINALS)
    }
    for name, cause in (("idd", "did you mean 'id'"), ("text", "has this column anyway")):
        with pytest.raises(SourceError, match=cause):
            embed_file(site, model[0], source, tmp_path / "no.parquet", "fp32", advance, (name,))
