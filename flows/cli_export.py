"""What `bsl artifacts export` adds to a checkpoint: its model card, and an ONNX graph if asked for."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from storage.collect import readable_manifests
from storage.errors import ArtifactMissingError
from storage.refs import ArtifactRef
from storage.store import Store

GRAPH = "sentence-embedding.onnx"


@contextlib.contextmanager
def additions(store: Store, ref: ArtifactRef, *, onnx: bool) -> Iterator[Path | None]:
    """A folder with what is to be laid over an artifact's copy, or None; it lasts for the block.

    Raises:
        ArtifactMissingError: a graph is asked for of something that is no checkpoint.
        EncoderError: the encoder cannot be written as a graph, or the packages for it are not installed.
    """
    from tasks.train import ENCODER  # late, as all that imports Prefect: listing a store shall not wait for it

    if ref.kind != "checkpoint":
        if onnx:
            raise ArtifactMissingError(f"{ref} has no encoder, expected a checkpoint for --onnx; name checkpoint/<key>")
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="bsl-export-") as name:
        folder = Path(name)
        (folder / ENCODER).mkdir()
        if (card := _card(store, ref)) is not None:
            shutil.copyfile(card, folder / ENCODER / "README.md")
        if onnx:
            _write_graph(store.fetch(ref) / ENCODER, folder / ENCODER / GRAPH)
        yield folder


def _card(store: Store, ref: ArtifactRef) -> Path | None:
    """The model card in the newest report on a checkpoint."""
    from tasks.report import CARD

    reports = [
        manifest
        for manifest in readable_manifests(store, "report")
        if ref.key in {entry.key for entry in manifest.provenance.inputs.values()} and CARD in manifest.files
    ]
    newest_first = sorted(reports, key=lambda manifest: manifest.created_at, reverse=True)
    # A report whose inputs were made anew with another content speaks of another encoder.
    sound = next((manifest.ref for manifest in newest_first if store.defect(manifest.ref) is None), None)
    return None if sound is None else store.fetch(sound) / CARD


def _write_graph(encoder: Path, path: Path) -> None:
    from models.encoder.onnx import export_onnx
    from models.encoder.saved import saved_config
    from models.encoder.transformer import load_encoder

    config = saved_config(encoder, str(encoder))
    assert config is not None  # every checkpoint's encoder says how it pools
    network, _ = load_encoder(encoder, config)
    export_onnx(network, path)
