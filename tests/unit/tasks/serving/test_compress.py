"""The forms of an encoder are written completely or not at all."""

import pytest
from safetensors import SafetensorError

from bsl.storage.errors import StoreWriteError
from bsl.tasks.serving.compress import export_variants
from bsl.tasks.serving.config import CompressionConfig


def test_full_disk_is_named_and_leaves_nothing(site, tmp_path, monkeypatch):
    """Regression: the error of safetensors, which is no OSError, ended in a traceback."""

    def full_disk(*_):
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr("bsl.models.encoder.weights.save_file", full_disk)
    target = tmp_path / "full" / "forms"
    with pytest.raises(
        StoreWriteError, match=r"cannot write to .*/full/forms: the disk is full\. Free space or choose"
    ):
        export_variants(site, "embedded:mini-sentence", None, target, CompressionConfig())
    assert list(target.parent.iterdir()) == []
