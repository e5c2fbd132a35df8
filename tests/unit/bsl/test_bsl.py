"""The package `bsl`: its names, its lazy imports, and every example of its docstrings and the documents."""

import doctest
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import bsl
import bsl.configs
import bsl.encoder
import bsl.runs
from bsl.models.encoder.config import EncoderConfig
from bsl.models.errors import EmptyCorpusError, EncoderError
from bsl.storage.assets.embedded import embedded_path
from bsl.storage.errors import ArtifactMissingError, SourceError

ROOT = Path(__file__).parents[3]
BLOCK = re.compile(r"^```python\n(.*?)^```", flags=re.MULTILINE | re.DOTALL)
NOT_FOR_ENCODING = {
    *("ctranslate2", "datasets", "fsspec", "matplotlib", "nltk", "onnx", "onnxruntime", "pandas", "polars"),
    *("prefect", "pyarrow", "pydantic_settings", "rich", "s3fs", "sentence_transformers", "sklearn"),
}
REVIEWS = [f"The {thing} is {word}." for thing in ("room", "food", "bar") for word in ("clean", "small", "warm", "old")]


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for variable in ("BSL_STORE", "BSL_DATA_MIRROR"):
        monkeypatch.delenv(variable, raising=False)
    return tmp_path


def test_public_names_are_complete_and_documented():
    names = "Classifier Result SentenceEncoder Store adapt compare embed_corpus evaluate recipe recipes run"
    assert sorted(bsl.__all__) == names.split()
    assert set(bsl.__all__) <= set(dir(bsl))
    assert all(getattr(bsl, name).__doc__ for name in bsl.__all__)


def test_encoder_loads_few_modules_without_prefect_or_flows():
    code = """
import gc, json, sys
from bsl import SentenceEncoder
vectors = SentenceEncoder.load("embedded:mini-sentence").encode(["a", "b"])
files = [name for name, module in sys.modules.items() if not hasattr(module, "__path__")]
packages = sorted({name.partition(".")[0] for name in sys.modules})
print(json.dumps([list(vectors.shape), gc.isenabled(), gc.get_freeze_count(), packages, files, list(sys.modules)]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    shape, collects, frozen, packages, files, modules = json.loads(done.stdout)
    assert shape == [2, 384]
    assert collects
    assert frozen == 0
    assert not NOT_FOR_ENCODING & set(packages)
    assert not {"bsl.flows", "bsl.tasks"} & set(modules)
    ours = [name for name in files if name.partition(".")[0] == "bsl"]
    assert len(ours) <= 37, ours
    assert done.stderr == ""  # no progress bar of transformers


@pytest.mark.parametrize("module", [bsl, bsl.encoder, bsl.configs, bsl.runs], ids=lambda module: module.__name__)
def test_docstring_examples_pass_doctest(module, own_folder):
    names = {name: getattr(bsl, name) for name in bsl.__all__}
    found = doctest.testmod(module, extraglobs=names)
    assert found.attempted
    assert found.failed == 0


@pytest.mark.parametrize("page", ["README.md", pytest.param("docs/python.md", marks=pytest.mark.slow)])
def test_document_examples_run_and_import_only_bsl(page, own_folder, capsys):
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = BLOCK.findall(text)
    assert blocks
    assert set(re.findall(r"^(?:from|import) (\w+)", "\n".join(blocks), flags=re.MULTILINE)) <= {"bsl", "pathlib"}
    (own_folder / "reviews.csv").write_text("text\n" + "\n".join(REVIEWS), encoding="utf-8")
    names: dict[str, object] = {}
    for block in blocks:
        if "reviews.csv" not in block:  # too little text to adapt to: tested below
            exec(compile(block, page, "exec"), names)
    assert "spearman" in capsys.readouterr().out


def test_saved_encoder_opens_in_sentence_transformers(tmp_path):
    encoder = bsl.SentenceEncoder.load(str(embedded_path("mini-sentence")))
    encoder.save(str(tmp_path / "saved"))
    theirs = SentenceTransformer(str(tmp_path / "saved"), device="cpu").encode(REVIEWS)
    np.testing.assert_allclose(encoder.encode(REVIEWS), theirs, rtol=1e-5, atol=1e-6)
    assert encoder.similarity(REVIEWS, REVIEWS).max() <= 1
    for form in ("classifier", "dims-64"):  # of the encoder that was saved before
        (tmp_path / "saved" / form).mkdir()
    with pytest.raises(EncoderError, match="saved: classifier, dims-64 belong to the encoder that was saved there"):
        bsl.SentenceEncoder.load("embedded:bert-mini").save(tmp_path / "saved")


def test_encoder_load_takes_other_settings_from_the_folder(tmp_path):
    """Regression: the defaults of the other settings were compared with the folder's, and refused."""
    normal = bsl.SentenceEncoder.load("embedded:mini-sentence", normalize=True)
    normal.save(str(tmp_path / "saved"))
    for given in ({"max_length": 16}, {"prompt": "query: "}):
        encoder = bsl.SentenceEncoder.load(str(tmp_path / "saved"), **given)
        assert encoder.config.normalize
    max_pooled = bsl.SentenceEncoder.load(str(tmp_path / "saved"), pooling="max")
    assert np.abs(max_pooled.encode(REVIEWS) - normal.encode(REVIEWS)).max() > 0.01


def test_encoder_load_applies_settings():
    cls = bsl.SentenceEncoder.load("embedded:bert-mini", pooling="cls", max_length=16)
    assert (cls.config.pooling, cls.config.length) == ("cls", 16)
    whole = bsl.SentenceEncoder.load("embedded:bert-mini", EncoderConfig(model="x", pooling="cls", max_length=16))
    assert (cls.encode(REVIEWS) == whole.encode(REVIEWS)).all()


def load(*given, **settings):
    return lambda: bsl.SentenceEncoder.load(*given, **settings)


def mini():
    return bsl.SentenceEncoder.load("embedded:bert-mini")


NOT_ON_HUB = (ValueError, "not on the Hub, so it has no revision v1")


@pytest.mark.parametrize(
    ("call", "error", "told"),
    [
        (load("embedded:bert-mini", poling="cls"), ValueError, r"poling: unknown field\. Did you mean 'pooling'\?"),
        (load("x", EncoderConfig(model="x"), pooling="cls"), TypeError, "config and pooling: give only one of them"),
        (load("embedded:bert-mini", revision="v1"), *NOT_ON_HUB),
        (load("./bert", revision="v1"), *NOT_ON_HUB),
        (load(Path("bert"), revision="v1"), *NOT_ON_HUB),
        (load("report/latest", revision="v1"), *NOT_ON_HUB),
        (load(Path("bert")), SourceError, "/bert: no such folder"),  # the Hub is never asked for a path
        (load("report/lastest"), ArtifactMissingError, "'report/lastest' matches nothing"),
        (lambda: bsl.adapt([]), ValueError, "no text is given"),
        (lambda: bsl.adapt(Path("reveiws.csv")), SourceError, r"reveiws\.csv: no such file"),
        (lambda: bsl.adapt([Path("reviews.csv")]), EmptyCorpusError, "Give more text: 20 documents"),
        (lambda: bsl.compare("report/latest"), ArtifactMissingError, "contains no report"),
        (lambda: bsl.run("tiny", stor="x"), TypeError, r"unknown runtime setting 'stor'\. Did you mean 'store'\? Set"),
        (lambda: bsl.recipe("tinny"), ValueError, "Did you mean 'tiny'"),
        (lambda: bsl.recipe("tiny", {"training": {"max_step": 1}}), ValueError, "max_steps"),
        (
            lambda: bsl.recipe("tiny", "max_steps"),
            TypeError,
            r"changes is a str \('max_steps'\), expected a dictionary",
        ),
        (lambda: bsl.run("tiny", [5]), TypeError, r"changes is a list \(\[5\]\), expected a dictionary"),
        (lambda: bsl.adapt(REVIEWS, changes="lr"), TypeError, "changes is a str"),
        (lambda: bsl.embed_corpus(bool, None), TypeError, "config is a NoneType"),
        (lambda: bsl.embed_corpus("embedded:bert-mini", "tiny-distil"), TypeError, r"SentenceEncoder\.load\(NAME\)"),
        (lambda: bsl.Store(None), TypeError, "the store is a NoneType"),
        (load(None), TypeError, "the encoder is a NoneType"),
        (lambda: mini().encode(["a"], batch_size=1.5), ValueError, "batch_size is 1.5, expected a whole number"),
        (lambda: mini().encode(["a"], batch_tokens=0), ValueError, "batch_tokens is 0, expected a whole number"),
        (lambda: mini().save(None), TypeError, "the folder is a NoneType"),
        (lambda: mini().save(""), EncoderError, "not a folder to save in"),
        (lambda: mini().save("reviews.csv"), EncoderError, r"reviews\.csv: not a folder to save in"),
        (lambda: bsl.Encoder, AttributeError, r"no attribute 'Encoder'\. Public names: Classifier, Result, Sentence"),
    ],
)
def test_wrong_call_is_refused_with_its_remedy(call, error, told, own_folder):
    (own_folder / "reviews.csv").write_text("text\n" + "\n".join(REVIEWS), encoding="utf-8")
    assert bsl.Store(Path("store")).refs() == []
    with pytest.raises(error, match=told):
        call()
