"""An encoder in use: files to vectors, in order and across kills; search and pairs over a corpus."""

import json
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from flows.cli.main import main
from models.encoder.encode import encode
from models.encoder.export import export_sentence_transformers
from storage.collect import collectable
from storage.errors import SourceError, StoreWriteError
from storage.sources import SourceSpec
from tasks import use
from tasks.site import Site
from tasks.use import embed_file, index
from tests.hostile import made_long_ago
from tests.tiny_encoder import BACK_DE, ORIGINALS, tiny_encoder


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    network, tokenizer = tiny_encoder(folder / "bare")
    export_sentence_transformers(network, tokenizer, folder / "saved")
    return str(folder / "saved"), lambda texts: encode(network, tokenizer, texts)


@pytest.fixture
def site(tmp_path):
    return Site(store=str(tmp_path / "store"), device="cpu", threads=1)


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join([*ORIGINALS, *BACK_DE, ORIGINALS[0]]))
    return SourceSpec(path=str(path))


def advance(done, total, detail):
    pass


def test_a_file_is_embedded_in_its_order_with_what_it_repeats(model, site, lines, tmp_path):
    name, vectors_of = model
    assert embed_file(site, name, lines, tmp_path / "out.parquet", "fp32", advance) == 9
    table = pl.read_parquet(tmp_path / "out.parquet")
    texts = [*ORIGINALS, *BACK_DE, ORIGINALS[0]]
    assert table["text"].to_list() == texts
    np.testing.assert_allclose(table["embedding"].to_numpy(), vectors_of(texts), atol=1e-6)
    assert [path.name for path in tmp_path.glob("out*")] == ["out.parquet"]


def test_a_killed_call_goes_on_where_it_was(model, site, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(use, "CHUNK", 4)

    def killed(done, total, detail):
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed_file(site, model[0], lines, tmp_path / "out.parquet", "fp32", killed)
    parts = sorted(tmp_path.glob("out.parquet.*.parts/*"))
    assert [path.name for path in parts] == ["000000.parquet", "000001.parquet"]
    made = [path.stat().st_mtime_ns for path in parts]
    seen = []
    embed_file(site, model[0], lines, tmp_path / "whole.parquet", "fp32", advance)
    embed_file(
        site,
        model[0],
        lines,
        tmp_path / "out.parquet",
        "fp32",
        lambda done, *_: seen.append([path.stat().st_mtime_ns for path in parts]),
    )
    assert seen == [made] * 3
    assert pl.read_parquet(tmp_path / "out.parquet").equals(pl.read_parquet(tmp_path / "whole.parquet"))


def test_a_record_without_text_is_refused_for_rows_would_shift(model, site, tmp_path):
    pl.DataFrame({"text": [*ORIGINALS[:2], None, *ORIGINALS[2:]]}).write_parquet(tmp_path / "in.parquet")
    with pytest.raises(SourceError, match=r"in.parquet.*3: column 'text' is null.*would not stand beside their rows"):
        embed_file(
            site, model[0], SourceSpec(path=str(tmp_path / "in.parquet")), tmp_path / "o.parquet", "fp32", advance
        )
    assert not (tmp_path / "o.parquet").exists()


def test_a_folder_with_marks_of_patterns_in_its_name_is_a_folder(model, site, lines, tmp_path):
    (tmp_path / "run[1]").mkdir()
    embed_file(site, model[0], lines, tmp_path / "run[1]" / "out.parquet", "fp32", advance)
    assert len(pl.read_parquet(tmp_path / "run[1]" / "out.parquet", glob=False)) == 9


def test_a_target_that_is_there_is_left(model, site, lines, tmp_path):
    (tmp_path / "out.parquet").write_text("mine")
    with pytest.raises(StoreWriteError, match="there already"):
        embed_file(site, model[0], lines, tmp_path / "out.parquet", "fp32", advance)


def test_two_columns_of_text_want_a_name(model, site, tmp_path):
    pl.DataFrame({"premise": ORIGINALS, "hypothesis": BACK_DE, "label": [0] * 4}).write_parquet(tmp_path / "in.parquet")
    spec = SourceSpec(path=str(tmp_path / "in.parquet"))
    with pytest.raises(SourceError, match="premise, hypothesis hold text, expected one"):
        embed_file(site, model[0], spec, tmp_path / "out.parquet", "fp32", advance)
    embed_file(
        site, model[0], spec.model_copy(update={"columns": ("hypothesis",)}), tmp_path / "o.parquet", "fp32", advance
    )
    assert pl.read_parquet(tmp_path / "o.parquet")["text"].to_list() == BACK_DE


def test_a_sentence_finds_itself_and_its_likes(model, site, lines):
    corpus = index(site, model[0], lines, "fp32")
    assert len(corpus.texts) == 8  # each once
    ((score, text), *_), *_ = corpus.search([ORIGINALS[1]], 3)
    assert (text, round(score, 5)) == (ORIGINALS[1], 1)
    (score, first, second), *_ = corpus.pairs(1, -1)
    unit = corpus.vectors
    products = np.triu(unit @ unit.T, 1) - np.tril(np.ones((8, 8)))
    assert score == pytest.approx(products.max(), abs=1e-6)
    assert {first, second} == {corpus.texts[int(row)] for row in divmod(int(products.argmax()), 8)}


def test_an_index_that_is_searched_every_day_is_not_collected(model, site, lines):
    store = site.open_store()
    index(site, model[0], lines, "fp32")
    made_long_ago(store)
    assert len(collectable(store, timedelta(days=30), datetime.now(UTC))) == 2
    index(site, model[0], lines, "fp32")
    assert collectable(store, timedelta(days=30), datetime.now(UTC) + timedelta(days=1)) == []


def test_the_command_line_answers_in_json(model, site, lines, capsys, monkeypatch):
    monkeypatch.setenv("BSL_STORE", site.store)
    assert main(["search", model[0], str(lines.path), ORIGINALS[0], "--top", "1", "--device", "cpu", "--json"]) == 0
    ((score, text),) = json.loads(capsys.readouterr().out)[ORIGINALS[0]]
    assert (round(score, 5), text) == (1, ORIGINALS[0])
    assert main(["search", model[0], str(lines.path)]) == 2
    assert "expected a query" in capsys.readouterr().err
