"""`bsl doctor` reports everything that would end a run at its start."""

from pathlib import Path

import pytest
import torch

from bsl.flows.recipes import recipe
from bsl.models.translation.config import MINI
from bsl.models.views.config import AugmentConfig, round_trip
from bsl.tasks.diagnostics.doctor import examine
from bsl.tasks.stage.run_context import RunContext


@pytest.mark.parametrize(
    ("backend", "precision", "verdict", "found"),
    [
        ("ctranslate2", "bf16", "NO", "ctranslate2 does not support bf16 on cpu"),
        ("transformers", "auto", "ok", "de→en on transformers in fp32 on cpu: translated 3 sentences"),
        ("auto", "auto", "ok", "de→en on ctranslate2 in int8 on cpu: translated 3 sentences"),
    ],
)
def test_translator_checks_use_the_resolved_backend_and_precision(
    tmp_path: Path, backend, precision, verdict, found
) -> None:
    back = MINI["de-en"].model_copy(update={"backend": backend, "precision": precision})
    augment = AugmentConfig(translations=(round_trip(MINI["en-de"], back),))
    run = recipe("tiny").model_copy(update={"augment": augment})
    site = RunContext(store=str(tmp_path / "store"), cache=str(tmp_path / "cache"), device="cpu")
    checks = [check for check in examine(site, run) if check.subject.startswith("translator")]
    assert len(checks) == 2
    assert checks[0].verdict == "ok"
    assert (checks[1].subject, checks[1].verdict) == (f"translator {back.model}", verdict)
    assert checks[1].found.startswith(found)


def test_augment_backend_setting_applies_to_every_translator(tmp_path: Path) -> None:
    augment = AugmentConfig(translations=(round_trip(MINI["en-de"], MINI["de-en"]),), backend="transformers", beam=1)
    run = recipe("tiny").model_copy(update={"augment": augment})
    site = RunContext(store=str(tmp_path / "store"), cache=str(tmp_path / "cache"), device="cpu")
    found = [check.found for check in examine(site, run) if check.subject.startswith("translator")]
    assert [told.partition(":")[0] for told in found] == [
        f"{way} on transformers in fp32 on cpu" for way in ("en→de", "de→en")
    ]


def test_device_check_detects_wrong_matrix_products(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site = RunContext(store=str(tmp_path / "store"), device="cpu")
    run = recipe("tiny").model_copy(update={"augment": AugmentConfig()})
    [device] = [check for check in examine(site, run) if check.subject == "device"]
    assert device.verdict == "ok"
    assert "matrix products are correct on cpu" in device.found
    multiply = torch.Tensor.__matmul__
    off = {torch.float32: 1.0, torch.float64: 0.0}  # float32: computed by the device; float64: expected
    monkeypatch.setattr(torch.Tensor, "__matmul__", lambda one, other: multiply(one, other) + off[one.dtype])
    [device] = [check for check in examine(site, run) if check.subject == "device"]
    assert (device.verdict, device.found.partition(" (")[0]) == ("NO", "cpu computes wrong matrix products")
