"""The ctranslate2 backend gives the translations of the reference backend, from a model converted once."""

import json
import shutil
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import polars as pl
import pytest
import torch
from transformers import MarianMTModel

from bsl.models.errors import TranslationError
from bsl.models.translation.config import Resources, TranslatorConfig
from bsl.models.translation.ctranslate import convert_once
from bsl.models.translation.loading import load_translator, resolve
from bsl.storage.assets.embedded import embedded_path
from tests.tiny_marian import SENTENCES, build_tiny_marian

TINY = TranslatorConfig(model="tiny", source_lang="en", target_lang="de", precision="fp32")
GERMAN = TranslatorConfig(
    model="marian-mini-en-mul", source_lang="en", target_lang="de", target_token=">>deu<<", precision="fp32"
)
ENGLISH = TranslatorConfig(model="marian-mini-mul-en", source_lang="de", target_lang="en", precision="fp32")
BACKENDS = ("transformers", "ctranslate2")


@pytest.fixture(scope="module")
def conversions(tmp_path_factory):
    return tmp_path_factory.mktemp("converted")


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@cache
def _loaded(folder, config, conversions, budget):
    return load_translator(folder, config, Resources("cpu", cores=1), conversions / folder.name, budget)


@pytest.fixture
def loaded(tiny, conversions):
    """Return a function that loads a translator with other settings, once a module."""

    def load(config, budget=None, **changes):
        folder = tiny if config is TINY else embedded_path(config.model)
        return _loaded(folder, config.model_copy(update={"backend": "ctranslate2"} | changes), conversions, budget)

    return load


def held_out(count, column="en"):
    return pl.read_parquet(embedded_path("held-out") / "tatoeba-de.parquet")[column].head(count).to_list()


def agreement(one, other):
    return sum(a.text == b.text for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize(("config", "column"), [(GERMAN, "en"), (ENGLISH, "de")])
def test_greedy_search_agrees_with_transformers_on_real_sentences(loaded, config, column):
    """At least 99 of 100 are equal; `bench_translation.py --parity` checks 2,000."""
    texts = held_out(100, column)
    found = loaded(config).translate(texts)
    assert agreement(loaded(config, backend="transformers").translate(texts), found) >= 99
    assert len({each.text for each in found}) > 90
    assert {each.score for each in found} == {None}


def test_beam_search_agrees_with_generate_on_most_sentences(loaded):
    """Not exactly equal: the two stop a search by different rules."""
    texts, settings = held_out(30), {"beam": 4, "no_repeat_ngram": 3}
    found = loaded(GERMAN, **settings).translate(texts)
    assert agreement(loaded(GERMAN, backend="transformers", **settings).translate(texts), found) >= 25
    assert all(each.score < 0 for each in found)


@pytest.mark.parametrize("limits", [{}, {"new_tokens_ratio": 0.5, "new_tokens_constant": 2}])
def test_token_caps_equal_those_of_transformers(loaded, limits):
    texts, reference = SENTENCES[::3], loaded(TINY, backend="transformers", **limits)
    found, expected = loaded(TINY, **limits).translate(texts), reference.translate(texts)
    assert sum(a.text == b.text and a.n_tokens == b.n_tokens for a, b in zip(expected, found, strict=True)) >= 132
    caps = [reference.cap(len(row)) for row in reference.vocabulary.encode(texts)]
    for translations in (found, expected):
        assert all(each.n_tokens <= cap for each, cap in zip(translations, caps, strict=True))
        if limits:  # they were reached
            assert sum(each.n_tokens == cap for each, cap in zip(translations, caps, strict=True)) > 20


def test_number_of_threads_does_not_change_translations(tiny, conversions):
    """Texts are equal, scores up to rounding: some processors sum in another order. Threads are not in the key."""
    config = TINY.model_copy(update={"beam": 2})
    found = []
    for given in ({"cores": 1}, {"cores": 2, "threads": 2}, {"cores": 1, "replicas": 3, "threads": 2}):
        translator = load_translator(tiny, config, Resources("cpu", **given), conversions / tiny.name, 64)
        found.append((translator.engine.ahead // 4, translator.translate(SENTENCES[:24])))
    assert [copies for copies, _ in found] == [1, 1, 3]
    first, *others = (translations for _, translations in found)
    for other in others:
        assert [(each.text, each.n_tokens) for each in other] == [(each.text, each.n_tokens) for each in first]
        scored = [(one.score, each.score) for one, each in zip(first, other, strict=True) if one.score is not None]
        assert len(scored) == sum(each.score is not None for each in other) > 0
        assert max(abs(one - each) for one, each in scored) <= 1e-5


def test_no_repeat_ngram_gives_equal_texts_in_both_backends(loaded):
    texts = SENTENCES[::8]
    found = loaded(TINY, no_repeat_ngram=3).translate(texts)
    assert agreement(loaded(TINY, backend="transformers", no_repeat_ngram=3).translate(texts), found) >= 48
    assert agreement(loaded(TINY).translate(texts), found) < 40  # random weights do repeat


_ENDS_EARLY = """
import gc, sys
from pathlib import Path
from bsl.models.translation.config import Resources, TranslatorConfig
from bsl.models.translation.loading import load_translator
from bsl.storage.assets.embedded import embedded_path

config = TranslatorConfig.model_validate_json(sys.argv[1])
translator = load_translator(embedded_path(config.model), config, Resources("cpu", cores=1), Path(sys.argv[2]))
source = translator.vocabulary.encode(["A man in a red coat walks his old dog past the closed shops of the town"])[0]
pending = [translator.engine.submit([source] * 100, [100] * 100) for _ in range(4)]
cycle = [translator]
cycle.append(cycle)
gc.freeze()  # as at the end of a command: the cycle is not collected, nor the translator's threads joined
"""


def test_a_process_may_end_while_batches_are_computed(conversions):
    config = GERMAN.model_copy(update={"backend": "ctranslate2", "precision": "int8"}).model_dump_json()
    subprocess.run([sys.executable, "-c", _ENDS_EARLY, config, str(conversions / GERMAN.model)], check=True)


@pytest.mark.parametrize("backend", BACKENDS)
def test_blank_and_punctuation_texts_are_returned_unchanged(loaded, backend):
    translator = loaded(TINY, backend=backend)
    passed = ["", " ", "...", "?!", "—", "***", "\N{NO-BREAK SPACE}"]
    first, *found, last = translator.translate(["Anna sings.", *passed, "Tom is asleep."])
    assert [(each.text, each.n_tokens) for each in found] == [(text, 0) for text in passed]
    assert [first, last] == translator.translate(["Anna sings.", "Tom is asleep."])
    assert translator.translate([]) == []


class _Payload:
    def __reduce__(self):
        return Path.touch, (Path("payload-ran"),)


@pytest.mark.parametrize("backend", BACKENDS)
def test_bin_weights_translate_like_safetensors_and_their_code_is_not_run(tmp_path, loaded, backend, monkeypatch):
    config = TINY.model_copy(update={"backend": backend})
    folder = build_tiny_marian(tmp_path / "bin", safetensors=False)
    ours = _loaded(folder, config, tmp_path / "converted", None)
    assert ours.translate(SENTENCES[:20]) == loaded(TINY, backend=backend).translate(SENTENCES[:20])
    monkeypatch.chdir(tmp_path)
    torch.save({"weights": _Payload()}, folder / "pytorch_model.bin")
    with pytest.raises(TranslationError, match="contain more than tensors"):
        load_translator(folder, config, Resources("cpu", cores=1), tmp_path / "other")
    assert not Path("payload-ran").exists()
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("config.json", "[" * 100_000),
        ("config.json", {"encoder_attention_heads": 0}),
        ("config.json", {"d_model": 64}),
        ("model.safetensors", 0.5),
        ("model.safetensors", None),
        ("vocab.json", 0.5),
        ("source.spm", 0.5),
        ("target.spm", None),
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_damaged_translator_folder_error_names_the_folder(tmp_path, tiny, backend, file, content):
    """A share of the file, changed settings, other content, or no file."""
    path = Path(shutil.copytree(tiny, tmp_path / "model")) / file
    whole = path.read_bytes()
    path.unlink()
    if isinstance(content, float):
        path.write_bytes(whole[: int(len(whole) * content)])
    elif content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(json.loads(whole) | content))
    with pytest.raises(TranslationError, match=str(tmp_path)):
        load_translator(
            path.parent, TINY.model_copy(update={"backend": backend}), Resources("cpu", cores=1), tmp_path / "converted"
        )
    assert not (tmp_path / "converted").exists()


def test_nonzero_pad_embedding_is_rejected_for_ctranslate2(tmp_path):
    folder = build_tiny_marian(tmp_path / "model")
    model = MarianMTModel.from_pretrained(folder)
    with torch.no_grad():
        model.get_decoder().embed_tokens.weight[model.config.pad_token_id] = 1.0
    model.save_pretrained(folder)
    with pytest.raises(TranslationError, match=r"not zero\. Set backend: transformers"):
        convert_once(folder, tmp_path / "converted")


@pytest.mark.slow
def test_concurrent_conversions_create_one_model(tmp_path, tiny):
    target = tmp_path / "cache" / tiny.name
    # In processes, like workers: transformers' loading is not thread-safe.
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as workers:
        for done in [workers.submit(convert_once, tiny, target) for _ in range(2)]:
            done.result()
    assert list(target.parent.iterdir()) == [target]
    stamp = target.stat().st_mtime_ns
    convert_once(tiny, target)
    assert target.stat().st_mtime_ns == stamp
    assert _loaded(tiny, TINY, target.parent, None).translate(SENTENCES[:3])


@pytest.mark.parametrize(
    ("asked", "device", "found"),
    [
        ({}, "cpu", ("ctranslate2", "int8")),
        ({"precision": "fp32"}, "cpu", ("ctranslate2", "fp32")),
        ({"precision": "bf16"}, "cpu", ("transformers", "bf16")),
        ({"backend": "transformers"}, "cpu", ("transformers", "fp32")),
        ({}, "mps", ("transformers", "fp16")),
    ],
)
def test_auto_resolves_backend_and_precision_for_the_device(asked, device, found):
    settled = resolve(TINY.model_copy(update={"precision": "auto"} | asked), device)
    assert (settled.backend, settled.precision) == found
    assert resolve(settled, device) == settled


def test_unsupported_precision_is_rejected():
    with pytest.raises(TranslationError, match="transformers does not support int8 on cpu; it supports: fp32, bf16"):
        resolve(TINY.model_copy(update={"backend": "transformers", "precision": "int8"}), "cpu")
