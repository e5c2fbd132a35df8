"""`bsl doctor` reports everything that would end a run at its start."""

import fsspec
import pytest
import torch

from bsl.flows.recipes import recipe
from bsl.models.translation.config import MINI
from bsl.models.views.config import AugmentConfig, round_trip
from bsl.tasks.diagnostics.doctor import examine


def checks_of(site, subject, augment):
    run = recipe("tiny").model_copy(update={"augment": augment})
    return [check for check in examine(site, run) if check.subject.startswith(subject)]


@pytest.mark.parametrize(
    ("backend", "precision", "verdict", "found"),
    [
        ("ctranslate2", "bf16", "NO", "ctranslate2 does not support bf16 on cpu"),
        ("transformers", "auto", "ok", "de→en on transformers in fp32 on cpu: translated 3 sentences"),
        ("auto", "auto", "ok", "de→en on ctranslate2 in int8 on cpu: translated 3 sentences"),
    ],
)
def test_translator_checks_use_the_resolved_backend_and_precision(site, tmp_path, backend, precision, verdict, found):
    site = site.model_copy(update={"cache": str(tmp_path / "cache")})
    back = MINI["de-en"].model_copy(update={"backend": backend, "precision": precision})
    out, home = checks_of(site, "translator", AugmentConfig(translations=(round_trip(MINI["en-de"], back),)))
    assert out.verdict == "ok"
    assert (home.subject, home.verdict) == (f"translator {back.model}", verdict)
    assert home.found.startswith(found)


@pytest.mark.parametrize(("name", "verdict"), [("here", "ok"), ("hree", "NO")])
def test_mirror_has_a_row(site, tmp_path, name, verdict):
    (tmp_path / "here").mkdir()
    for address in (str(tmp_path / name), f"memory://{tmp_path}/{name}"):
        fsspec.filesystem("memory").makedirs(f"{tmp_path}/here", exist_ok=True)
        (row,) = checks_of(site.model_copy(update={"mirror": address}), "mirror", AugmentConfig())
        assert (row.subject, row.verdict) == (f"mirror {address}", verdict)
        assert ("no such folder" in row.found) == (verdict == "NO")


def test_device_check_detects_wrong_matrix_products(site, monkeypatch):
    (device,) = checks_of(site, "device", AugmentConfig())
    assert device.verdict == "ok"
    assert "matrix products are correct on cpu" in device.found
    multiply = torch.Tensor.__matmul__
    off = {torch.float32: 1.0, torch.float64: 0.0}  # float32: computed by the device; float64: expected
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda one, other: multiply(one, other) + off[one.dtype])
    (device,) = checks_of(site, "device", AugmentConfig())
    assert (device.verdict, device.found.partition(" (")[0]) == ("NO", "cpu computes wrong matrix products")
