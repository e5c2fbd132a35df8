"""`bsl artifacts export` of a checkpoint writes the encoder, the model card of the newest report, and optional ONNX."""

import re
import shutil
import sys
import zipfile

import pytest

from bsl.flows.cli.main import main
from bsl.models.encoder.int8 import GRAPHS, target_here
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.serving import onnx_export
from bsl.models.serving.reduction import tabulate
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import CheckpointRef, ReportRef
from bsl.storage.artifacts.store import Store
from bsl.tasks.serving import measures
from tests.folder_config import saved_config
from tests.tiny_encoder import ORIGINALS, tiny_encoder

CHECKPOINT = CheckpointRef(key="c" * 64)


def put_report(store: Store, number: int, text: str, checkpoint: str = CHECKPOINT.key, digest: str = "") -> None:
    entry = InputEntry(kind="checkpoint", key=checkpoint, digest=digest or store.check(CHECKPOINT).digest)
    why = Provenance(stage_version=1, config={}, inputs={"checkpoints.0": entry})
    with store.draft(ReportRef(key=f"{number:064x}"), why) as draft:
        (draft.folder / "model-card.md").write_text(text)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(measures, "_PASSES", 1)  # three passes are for a steady speed
    store = Store(str(tmp_path / "store"))
    encoder, tokenizer = tiny_encoder(tmp_path / "in", pooling="cls", layers=1)
    with store.draft(CHECKPOINT, Provenance(stage_version=1, config={})) as draft:
        SentenceEncoder(encoder, tokenizer).save(draft.folder / "encoder")
    return store


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    return tmp_path_factory.mktemp("graph") / "encoder.onnx"


@pytest.fixture
def one_graph(graph, monkeypatch):
    """Export the encoder of several tests once; torch takes five seconds for it."""
    export_onnx = onnx_export.export_onnx

    def export_once(encoder, path):
        if not graph.exists():
            export_onnx(encoder, graph)
        shutil.copy(graph, path)

    monkeypatch.setattr(onnx_export, "export_onnx", export_once)


def bsl(store, words):
    return main([*words.split(), "--store", store.url])


def test_export_uses_the_model_card_of_the_newest_report(store, tmp_path):
    assert bsl(store, "artifacts export checkpoint/cc bare.zip") == 0
    names = zipfile.ZipFile("bare.zip").namelist()
    assert "encoder/modules.json" in names
    assert "encoder/README.md" not in names
    for number, text in enumerate(("old", "new")):
        put_report(store, number, text)
    put_report(store, 8, "of another content", digest="d" * 64)
    put_report(store, 9, "of another checkpoint", "e" * 64)
    assert bsl(store, "artifacts export checkpoint/cc out") == 0
    assert (tmp_path / "out" / "encoder" / "README.md").read_text() == "new"
    assert not list((tmp_path / "out" / "encoder").glob("*.onnx"))


@pytest.mark.usefixtures("one_graph")
def test_onnx_option_adds_the_graph_to_the_archive(store):
    pytest.importorskip("onnxscript")
    put_report(store, 1, "card")
    assert bsl(store, "artifacts export checkpoint/cc out.zip --onnx") == 0
    names = zipfile.ZipFile("out.zip").namelist()
    assert {"encoder/sentence-embedding.onnx", "encoder/README.md"} <= set(names)


@pytest.mark.usefixtures("one_graph")
def test_export_writes_and_measures_every_encoder_form(store, tmp_path, capsys):
    put_report(store, 1, "card")
    forms = "--onnx --int8 --dims 16,8 --static --static-dims 12 --sentences 200 --max-loss 5 --min-cosine 0.9"
    assert bsl(store, f"export checkpoint/cccc out {forms}") == 0
    printed, out = capsys.readouterr().out, tmp_path / "out"
    readme = (out / "README.md").read_text()
    assert readme.startswith("card")
    for place, width in [(".", 32), ("onnx/model.onnx", 32), ("dims-16", 16), ("dims-8", 8), ("static", 12)]:
        path = out if place == "." else out / place
        encoder = SentenceEncoder.load(path, saved_config(path, "x"))
        assert encoder.encode(ORIGINALS).shape == (4, width)
        assert f"| {place} |" in readme
    assert (out / "onnx" / GRAPHS[target_here()]).is_file()
    assert readme.count("[") >= 11  # an interval for each form, and for its loss
    assert "ONNX, int8" in printed


@pytest.mark.slow
@pytest.mark.parametrize("target", ["avx2", "vnni"])
def test_int8_target_option_selects_the_graph(store, tmp_path, target):
    options = f"--int8 --target {target} --max-loss 50 --min-cosine 0"
    assert bsl(store, f"export checkpoint/cccc out {options}") == 0
    assert [path.name for path in (tmp_path / "out" / "onnx").iterdir()] == [GRAPHS[target]]
    readme = (tmp_path / "out" / "README.md").read_text()
    assert f'"onnx/{GRAPHS[target]}"' in readme
    assert ("weights have 7 bits" in readme) is (target == "avx2")


INT8 = r"int8 loses -?\d+\.\d\d points .* cosine .* is \d\.\d{4} \(expected at least 1\.0"
TABLE = r"a static table cannot be exported as a graph \(expected a transformer\)\. Remove --onnx and --int8\."
LAYERS = r"bsl: layers: pooling first-last reads several layers, .* Remove --onnx and --int8\."


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("artifacts export report/ out --onnx", r"--onnx needs a checkpoint \(found"),
        ("artifacts export checkpoint/cc out --onnx", "bsl: ONNX export needs onnxscript. Install it: pip install"),
        ("export checkpoint/cccc out --int8 --sentences 200 --min-cosine 1", INT8),
        ("export table out --onnx", TABLE),
        ("export table out --int8", TABLE),
        ("export layers out --onnx", LAYERS),
        ("export layers out --int8", LAYERS),
    ],
)
def test_impossible_form_is_refused_and_nothing_is_written(store, tmp_path, capsys, monkeypatch, request, call, told):
    if "--min-cosine" in call:
        request.getfixturevalue("one_graph")
    if "checkpoint/cc " in call:
        monkeypatch.setitem(sys.modules, "onnxscript", None)  # simulates a missing extra
    put_report(store, 1, "card")
    encoder = SentenceEncoder(*tiny_encoder(tmp_path / "other"))
    tabulate(encoder, ORIGINALS, encoder.encode(ORIGINALS), 8).save(tmp_path / "table")
    SentenceEncoder(*tiny_encoder(tmp_path / "several", pooling="first-last")).save(tmp_path / "layers")
    assert bsl(store, call) == 1
    assert re.search(told, capsys.readouterr().err)
    assert not (tmp_path / "out").exists()


def test_bare_transformer_is_exported_with_its_pooling(store, tmp_path):
    assert bsl(store, "export in out") == 0
    assert saved_config(tmp_path / "out", "x").pooling == "mean"
