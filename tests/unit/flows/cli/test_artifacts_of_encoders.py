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
    digest = digest or store.check(CHECKPOINT).digest
    made_from = {"checkpoints.0": InputEntry(kind="checkpoint", key=checkpoint, digest=digest)}
    with store.draft(
        ReportRef(key=f"{number:064x}"), Provenance(stage_version=1, config={}, inputs=made_from)
    ) as draft:
        (draft.folder / "model-card.md").write_text(text)


@pytest.fixture
def store(tmp_path):
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


def export(store, *arguments):
    return main(["artifacts", "export", "--store", store.url, *map(str, arguments)])


def test_export_uses_the_model_card_of_the_newest_report(store, tmp_path):
    for number, text in enumerate(("old", "new")):
        put_report(store, number, text)
    put_report(store, 8, "of another content", digest="d" * 64)
    put_report(store, 9, "of another checkpoint", "e" * 64)
    assert export(store, "checkpoint/cc", tmp_path / "out") == 0
    assert (tmp_path / "out" / "encoder" / "README.md").read_text() == "new"
    assert not list((tmp_path / "out" / "encoder").glob("*.onnx"))


def test_export_without_report_has_no_model_card(store, tmp_path):
    assert export(store, "checkpoint/cc", tmp_path / "out.zip") == 0
    names = zipfile.ZipFile(tmp_path / "out.zip").namelist()
    assert "encoder/modules.json" in names
    assert "encoder/README.md" not in names


@pytest.mark.usefixtures("one_graph")
def test_onnx_option_adds_the_graph_to_the_archive(store, tmp_path):
    pytest.importorskip("onnxscript")
    put_report(store, 1, "card")
    assert export(store, "checkpoint/cc", tmp_path / "out.zip", "--onnx") == 0
    assert {"encoder/sentence-embedding.onnx", "encoder/README.md"} <= set(
        zipfile.ZipFile(tmp_path / "out.zip").namelist()
    )


def test_onnx_option_requires_a_checkpoint(store, tmp_path, capsys):
    put_report(store, 1, "card")
    assert export(store, "report/", tmp_path / "out", "--onnx") == 1
    assert "--onnx needs a checkpoint (found" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_missing_onnxscript_prints_install_command(store, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)  # simulates a missing extra
    assert export(store, "checkpoint/cc", tmp_path / "out", "--onnx") == 1
    assert "bsl: ONNX export needs onnxscript. Install it: pip install" in capsys.readouterr().err


@pytest.fixture(autouse=True)
def _one_pass(monkeypatch):
    monkeypatch.setattr(measures, "_PASSES", 1)  # three passes are for a steady speed


def forms(store, *arguments):
    return main(["export", "--store", store.url, *map(str, arguments)])


@pytest.mark.usefixtures("one_graph")
def test_export_writes_and_measures_every_encoder_form(store, tmp_path, capsys):
    put_report(store, 1, "card")
    out = tmp_path / "out"
    assert forms(
        store, "checkpoint/cccc", out, "--onnx", "--int8", "--dims", "16,8", "--static", "--static-dims", 12,
        "--sentences", 200, "--max-loss", 5, "--min-cosine", 0.9,
    ) == 0  # fmt: skip
    printed = capsys.readouterr().out
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
    out = tmp_path / "out"
    assert forms(store, "checkpoint/cccc", out, "--int8", "--target", target, "--max-loss", 50, "--min-cosine", 0) == 0
    assert [path.name for path in (out / "onnx").iterdir()] == [GRAPHS[target]]
    readme = (out / "README.md").read_text()
    assert f'"onnx/{GRAPHS[target]}"' in readme
    assert ("weights have 7 bits" in readme) is (target == "avx2")


def test_int8_below_minimum_cosine_is_rejected_with_measurements(store, tmp_path, capsys):
    assert forms(store, "checkpoint/cccc", tmp_path / "out", "--int8", "--min-cosine", 1) == 1
    assert re.search(
        r"int8 loses -?\d+\.\d\d points .* cosine .* is \d\.\d{4} \(expected at least 1\.0", capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("form", ["--onnx", "--int8"])
def test_onnx_and_int8_of_static_table_are_rejected(store, tmp_path, capsys, form):
    encoder, tokenizer = tiny_encoder(tmp_path / "other")
    table = tabulate(
        SentenceEncoder(encoder, tokenizer), ORIGINALS, SentenceEncoder(encoder, tokenizer).encode(ORIGINALS), 8
    )
    table.save(tmp_path / "table")
    assert forms(store, tmp_path / "table", tmp_path / "out", form) == 1
    assert (
        "a static table cannot be exported as a graph (expected a transformer). Remove --onnx and --int8."
        in capsys.readouterr().err
    )


def test_export_of_model_folder_rejects_existing_output(store, tmp_path, capsys):
    assert forms(store, tmp_path / "in", tmp_path / "out") == 0  # a bare transformer
    assert saved_config(tmp_path / "out", "x").pooling == "mean"
    assert forms(store, tmp_path / "in", tmp_path / "out") == 1
    assert "already exists. Name a new folder" in capsys.readouterr().err
    assert forms(store, tmp_path / "in", tmp_path / "new", "--dims", "64,no") == 2
    assert "--dims: expected numbers of dimensions such as 256,128,64 (found 64,no)" in capsys.readouterr().err
