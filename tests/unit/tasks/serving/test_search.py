"""Files are embedded in order, also after kills; a corpus is searched for neighbours and near duplicates."""

import json

import numpy as np
import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.runtime.rows import unit_vectors
from bsl.storage.errors import SourceError
from bsl.storage.sources.sources import SourceSpec
from bsl.tasks.embedding import encode as encoding
from bsl.tasks.serving.search import embed_file, index
from bsl.tasks.stage.progress import listening
from tests import layouts
from tests.tiny_encoder import BACK_DE, ORIGINALS, tiny_encoder
from tests.typed_columns import write_typed

LINES = [*ORIGINALS, *BACK_DE, ORIGINALS[0]]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("encoder")
    SentenceEncoder(*tiny_encoder(folder / "bare")).save(folder / "saved")
    return str(folder / "saved")


@pytest.fixture
def lines(write):
    return SourceSpec(path=write("lines.txt", "\n".join(LINES)))


def killed_at(kill=None, seen=None):
    """Return a progress callback that records its calls and raises KeyboardInterrupt at `kill`."""

    def advance(done, total, detail):
        if seen is not None:
            seen.append((done, total))
        if done == kill:
            raise KeyboardInterrupt

    return advance


@pytest.fixture
def embedded(model, site, tmp_path):
    """Return a function that embeds a file and reads the result."""

    def call(spec, target=None, kill=None, seen=None, keep=()):
        target = target or tmp_path / "out.parquet"
        counts = embed_file(site, EncoderConfig(model=model), spec, target, "fp32", killed_at(kill, seen), keep)
        table = pl.read_parquet(target, glob=False)
        assert counts == (table.height, table["embedding"].null_count())
        return table

    return call


def test_embed_file_preserves_row_order_and_duplicates(model, embedded, lines, tmp_path):
    (tmp_path / "run[1]").mkdir()
    table = embedded(lines, tmp_path / "run[1]" / "out.parquet")
    assert table["text"].to_list() == LINES
    np.testing.assert_allclose(table["embedding"], SentenceEncoder.load(model).encode(LINES), atol=1e-6)
    assert [path.name for path in (tmp_path / "run[1]").iterdir()] == ["out.parquet"]


@pytest.mark.parametrize("suffix", ["parquet", "csv", "jsonl", "txt"])
def test_rows_without_text_stay_with_a_null_vector(model, embedded, tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(encoding, "CPU_PART", 3)  # the first part has no text at all
    given = ["", " ", "\u200b", *ORIGINALS, "", "\t", ORIGINALS[0]]
    if suffix in {"parquet", "jsonl"}:
        given[0] = given[8] = None
    frame, path = pl.DataFrame({"id": range(len(given)), "text": given}), tmp_path / f"in.{suffix}"
    match suffix:
        case "parquet":
            frame.write_parquet(path)
        case "csv":
            frame.write_csv(path)
        case "jsonl":
            frame.write_ndjson(path)
        case _:
            path.write_text("\n".join(given))
    heard = []
    table = embedded(SourceSpec(path=str(path)), seen=heard)
    assert table["text"].to_list() == given
    known = [place for place, text in enumerate(given) if text in ORIGINALS]
    assert table["embedding"].is_not_null().arg_true().to_list() == known
    expected = SentenceEncoder.load(model).encode([given[place] for place in known])
    np.testing.assert_allclose(table["embedding"].gather(known), expected, atol=1e-6)
    assert heard[-1] == (len(known), len(known))


def test_embed_command_counts_rows_without_text(model, site, write, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("BSL_STORE", site.store)
    path = write("in.txt", f"\n{ORIGINALS[0]}\n \n")
    assert main(["embed", model, path, str(tmp_path / "a.parquet"), "--device", "cpu"]) == 0
    assert "1 sentences; rows without text, with a null as vector: 2: " in capsys.readouterr().out
    assert main(["embed", model, path, str(tmp_path / "b.parquet"), "--device", "cpu", "--json"]) == 0
    counts = json.loads(capsys.readouterr().out)
    assert (counts["sentences"], counts["rows"], counts["empty"]) == (1, 3, 2)
    assert main(["embed", model, write("none.txt", "\n \n"), str(tmp_path / "c.parquet")]) == 1
    assert "contains no sentence" in capsys.readouterr().err


def test_prompts_of_queries_and_of_the_corpus_are_those_of_the_encoder(site, write, tmp_path, capsys, monkeypatch):
    encoder = SentenceEncoder(*tiny_encoder(tmp_path / "bare"), {"query": "a dog ", "passage": "a cat "})
    encoder.save(tmp_path / "saved")
    spec, heard = SourceSpec(path=write("lines.txt", "\n".join(ORIGINALS))), []
    with listening(lambda event, value: heard.append(value) if event == "tells" else None):
        corpus = index(site, str(tmp_path / "saved"), spec, "fp32", answers_queries=True)
        plain = index(site, str(tmp_path / "saved"), spec, "fp32")
    assert [line for line in heard if "prompt" in line] == [
        "queries get the prompt 'a dog '",
        "texts of the corpus get the prompt 'a cat '",
        "texts get no prompt; the encoder has prompts named passage, query",
    ]
    for found, document, query in ((corpus, "a cat ", "a dog "), (plain, "", "")):
        texts = found.texts.to_list()
        for vectors, prompt in ((found.vectors, document), (found.encode(texts), query)):
            np.testing.assert_allclose(vectors, unit_vectors(encoder.with_prompt(prompt).encode(texts)), atol=1e-5)
    monkeypatch.setenv("BSL_STORE", site.store)
    target = tmp_path / "out.parquet"
    assert main(["embed", str(tmp_path / "saved"), spec.path, str(target), "--prompt", "query", "--device", "cpu"]) == 0
    assert "texts get the prompt 'a dog '\n" in capsys.readouterr().err
    found = pl.read_parquet(target)["embedding"].to_numpy()
    np.testing.assert_allclose(found, encoder.with_prompt("a dog ").encode(ORIGINALS), atol=0.05)  # perhaps in bf16


@pytest.mark.parametrize(
    ("prompts", "default", "said"),
    [
        ({"query": "a ", "passage": "the "}, "query", ["queries get the prompt 'a '", "corpus get the prompt 'the '"]),
        ({"document": "the "}, None, ["queries get no prompt; the encoder has", "corpus get the prompt 'the '"]),
        ({"document": "the "}, "document", ["queries get no prompt; the encoder has", "corpus get the prompt 'the '"]),
        ({"sts": "the "}, "sts", ["texts get the prompt 'the '"]),
        ({}, None, []),
    ],
)
def test_each_role_is_said_with_its_prompt(site, write, tmp_path, prompts, default, said):
    SentenceEncoder(*tiny_encoder(tmp_path / "bare")).save(tmp_path / "saved")
    settings = {"prompts": prompts, "default_prompt_name": default}
    layouts.write(tmp_path / "saved", {"config_sentence_transformers.json": settings})
    spec, heard = SourceSpec(path=write("lines.txt", "\n".join(ORIGINALS))), []
    with listening(lambda event, value: heard.append(value) if event == "tells" else None):
        index(site, str(tmp_path / "saved"), spec, "fp32", answers_queries=True)
    lines = [line for line in heard if "prompt" in line]
    assert len(lines) == len(said)
    assert all(words in line for words, line in zip(said, lines, strict=True))


def test_given_prompt_that_may_be_a_misspelt_name_is_said_with_the_names(site, embedded, lines, model, tmp_path):
    encoder = SentenceEncoder.load(model)
    SentenceEncoder(encoder.network, encoder.own_tokenizer, {"query": "a "}).save(tmp_path / "named")
    heard = []
    with listening(lambda event, value: heard.append(value) if event == "tells" else None):
        config = EncoderConfig(model=str(tmp_path / "named"), prompt="quey")
        embed_file(site, config, lines, tmp_path / "out.parquet", "fp32", killed_at())
    assert "texts get the prompt 'quey'; the encoder has prompts named query" in heard


def test_killed_embed_file_resumes_from_finished_parts_of_the_same_size(embedded, lines, tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "CPU_PART", 4)
    heard = []
    with pytest.raises(KeyboardInterrupt):
        embedded(lines, kill=9, seen=heard)
    assert sorted(path.name for path in tmp_path.glob(".out.parquet.*.parts/*")) == ["000000.parquet", "000001.parquet"]
    assert heard == [(0, 9), (4, 9), (4, 9), (8, 9), (8, 9), (9, 9)]
    resumed = embedded(lines, seen=(heard := []))
    assert heard == [(8, 9), (9, 9)]  # resumes at the last part
    with pytest.raises(KeyboardInterrupt):
        embedded(lines, tmp_path / "whole.parquet", kill=9)
    monkeypatch.setattr(encoding, "CPU_PART", 100)
    whole = embedded(lines, tmp_path / "whole.parquet", seen=(heard := []))
    assert heard == [(0, 9), (9, 9)]
    assert whole["text"].equals(resumed["text"])
    np.testing.assert_allclose(whole["embedding"], resumed["embedding"], atol=1e-6)


def test_embed_file_ignores_its_output_in_source_folder(embedded, tmp_path, monkeypatch):
    """The output of a killed call is not read as text when the call is repeated."""
    monkeypatch.setattr(encoding, "CPU_PART", 2)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("\n".join(ORIGINALS))
    spec, target = SourceSpec(path=str(tmp_path / "in")), tmp_path / "in" / "out.parquet"
    with pytest.raises(KeyboardInterrupt):
        embedded(spec, target, kill=4)
    assert embedded(spec, target)["text"].to_list() == ORIGINALS


def test_killed_index_resumes_from_finished_parts(model, site, lines, monkeypatch):
    """The result has the bytes of an uninterrupted index."""
    monkeypatch.setattr(encoding, "CPU_PART", 3)
    heard = []
    monkeypatch.setattr("bsl.tasks.embedding.embed.progress_of", lambda what: killed_at(8, heard))
    with pytest.raises(KeyboardInterrupt):
        index(site, model, lines, "fp32")
    assert heard[-2:] == [(6, 8), (8, 8)]
    heard.clear()
    monkeypatch.setattr("bsl.tasks.embedding.embed.progress_of", lambda what: killed_at(None, heard))
    resumed = index(site, model, lines, "fp32")
    assert heard == [(6, 8), (8, 8)]
    straight = index(site.model_copy(update={"store": f"{site.store}-other"}), model, lines, "fp32")
    vectors = [dict(zip(made.texts, made.vectors.tolist(), strict=True)) for made in (resumed, straight)]
    assert vectors[0] == vectors[1]


def test_index_includes_long_text_and_counts_excluded_texts(model, site, write):
    long = f"{ORIGINALS[0]} {'and snow ' * 400}long"
    content = "\n".join([*BACK_DE * 30, *BACK_DE[:2], "", long, ORIGINALS[1]]).encode() + b"\n\xff\n"
    corpus = index(site, model, SourceSpec(path=write("lines.txt", content)), "fp32")
    assert long in corpus.texts
    assert len(corpus.texts) == 6
    assert corpus.taken.startswith("6 of 126 texts read; excluded: 118 repeated, 1 empty, 1 unreadable (the first: ")
    assert "lines.txt, line 126: not UTF-8" in corpus.taken


def test_folder_with_several_formats_is_a_single_corpus(model, site, embedded, tmp_path):
    folder = tmp_path / "mixed"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(ORIGINALS))
    (folder / "b.jsonl").write_text("\n".join(json.dumps({"text": text}) for text in BACK_DE))
    assert set(index(site, model, SourceSpec(path=str(folder)), "fp32").texts) == {*ORIGINALS, *BACK_DE}
    assert embedded(SourceSpec(path=str(folder)))["text"].to_list() == [*BACK_DE, *ORIGINALS]


def test_cut_texts_and_those_of_another_script_are_counted_in_one_line_each(model, site, embedded, write):
    encoder = SentenceEncoder.load(model)
    length = encoder.config.length
    full = " ".join(["dog"] * (length - 2))
    assert encoder.tokenizer(full)["input_ids"][length - 1 :] == [encoder.tokenizer.sep_token_id]
    spec, told = (
        SourceSpec(path=write("in.txt", "\n".join(["今日は", "明日は", "昨日は", full, " ".join(ORIGINALS * 50)]))),
        [],
    )
    with listening(lambda event, value: told.append(value) if event == "tells" else None):
        index(site, model, spec, "fp32")
        embedded(spec)
    for note in (f"1 of 5 texts are longer than {length} tokens", "3 of the first 5 texts consist mostly of words"):
        assert sum(note in line for line in told) == 2


def test_texts_of_few_characters_but_many_tokens_count_as_cut(site, write, tmp_path):
    folder, heard = layouts.write(tmp_path / "decoder", layouts.layout(layouts.decoder(tmp_path), length=24)), []
    spec = SourceSpec(path=write("in.txt", "\n".join(["日本語の文章です", "Prices fell."])))
    with listening(lambda event, value: heard.append(value) if event == "tells" else None):
        index(site, str(folder), spec, "fp32")
        prompt = {"prompts": {"document": "日本語の文章です: "}}
        layouts.write(folder, {"config_sentence_transformers.json": prompt})
        index(site, str(folder), spec, "fp32", answers_queries=True)
    counts = [line.partition(" texts")[0] for line in heard if "longer than 24 tokens" in line]
    assert counts == ["1 of 2", "2 of 2"]


def test_embed_file_with_two_text_columns_requires_a_name(embedded, tmp_path):
    pl.DataFrame({"premise": ORIGINALS, "hypothesis": BACK_DE, "label": [0] * 4}).write_parquet(tmp_path / "in.parquet")
    spec = SourceSpec(path=str(tmp_path / "in.parquet"))
    with pytest.raises(SourceError, match=r"premise, hypothesis contain text \(expected one"):
        embedded(spec)
    assert embedded(spec.model_copy(update={"columns": ("hypothesis",)}))["text"].to_list() == BACK_DE


def test_search_finds_the_sentence_itself_and_pairs_the_nearest(model, site, lines):
    corpus = index(site, model, lines, "fp32")
    assert len(corpus.texts) == 8  # duplicates removed
    ((score, text), *_), *_ = corpus.search([ORIGINALS[1]], 3)
    assert (text, round(score, 5)) == (ORIGINALS[1], 1)
    (score, first, second), *_ = corpus.pairs(1, -1)
    products = np.triu(corpus.vectors @ corpus.vectors.T, 1) - np.tril(np.ones((8, 8)))
    assert score == pytest.approx(products.max(), abs=1e-6)
    assert {first, second} == {corpus.texts[int(row)] for row in divmod(int(products.argmax()), 8)}


def test_order_of_equal_hits_and_of_a_pair_is_the_same_in_each_call(model, site, lines):
    """Regression: Polars joins in any order, so that a pair's sentences changed places."""
    assert len({tuple(index(site, model, lines, "fp32").texts) for _ in range(6)}) == 1


def test_search_command_prints_json_and_refuses_an_empty_query(model, site, lines, capsys, monkeypatch):
    monkeypatch.setenv("BSL_STORE", site.store)
    assert main(["search", model, lines.path, ORIGINALS[0], "--top", "1", "--device", "cpu", "--json"]) == 0
    said = capsys.readouterr()
    ((score, text),) = json.loads(said.out)[ORIGINALS[0]]
    assert (round(score, 5), text) == (1, ORIGINALS[0])
    assert "lines.txt: 8 of 9 texts read; excluded: 1 repeated\n" in said.err
    assert main(["search", model, lines.path, "dinner", ""]) == 2
    assert "expected a query" in capsys.readouterr().err


def test_dates_times_and_decimals_are_copied_with_their_type_and_shown_as_iso_text(model, site, embedded, tmp_path):
    folder = tmp_path / "parts"
    folder.mkdir()
    given, plain = write_typed(folder / "a.parquet", pl.Series(ORIGINALS[:2]))
    source = SourceSpec(path=str(folder), columns=("body",))
    assert embedded(source, keep=tuple(given.columns)).select(given.columns).equals(given)
    found = index(site, model, source, "fp32", tuple(given.columns))
    assert [found.beside[text] for text in ORIGINALS[:2]] == plain.to_dicts()
    for name in ("raw", "tags"):
        with pytest.raises(SourceError, match=f"column '{name}' after --keep has lists, other nested values or bytes"):
            embedded(source, tmp_path / "no.parquet", keep=(name,))
    texts = plain.with_columns(body=pl.Series(ORIGINALS[2:4]))
    texts.write_parquet(folder / "b.parquet")  # of other types
    both = embedded(source, tmp_path / "both.parquet", keep=tuple(given.columns))
    assert both.select(given.columns).cast(pl.String).equals(pl.concat([plain, plain]))


def test_columns_are_copied_beside_vectors_and_shown_beside_hits(model, site, embedded, tmp_path):
    table = pl.DataFrame({"id": [f"t-{n}" for n in range(5)], "text": [*ORIGINALS, ORIGINALS[0]]})
    table.write_csv(tmp_path / "texts.csv")
    source = SourceSpec(path=str(tmp_path / "texts.csv"), columns=("text",))
    assert embedded(source, keep=("id",)).select("id", "text").equals(table)
    found = index(site, model, source, "fp32", ("id",))
    beside = {text: found.beside[text]["id"] for text in found.texts}
    assert beside == {text: f"t-{n}" for n, text in enumerate(ORIGINALS)}
    for name, cause in (("idd", "did you mean 'id'"), ("text", "has this column anyway")):  # before any vector
        with pytest.raises(SourceError, match=cause):
            embedded(source, tmp_path / "no.parquet", keep=(name,))
