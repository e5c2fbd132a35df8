"""`bsl evaluate` prints scores, intervals and missing sets, with a set of the papers' tables and with another."""

import pytest

from bsl.flows.cli.main import main
from tests.tiny_encoder import write_tiny


@pytest.mark.usefixtures("named_server")
@pytest.mark.parametrize("split", ["dev", "test"])
def test_evaluate_prints_scores_missing_sets_and_export_command(tmp_path, capsys, split):
    assert called(tmp_path, f"embedded:stsb/{split}", "stsb-mt/test") == 1  # a named set is missing
    out = capsys.readouterr().out
    assert f"stsb {split}" in out
    assert f"{tmp_path.name}/tiny" in out
    assert "missing: stsb-mt/test: " in out
    assert ("Semantic textual similarity" in out) == (split == "test")  # no paper's table has a dev column
    assert "bsl artifacts export evaluation/" in out


@pytest.mark.usefixtures("named_server")
def test_evaluate_scores_the_available_sets_of_a_suite_although_the_hub_does_not_answer(tmp_path, capsys, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")  # nobody listens
    assert called(tmp_path, "sts17", "embedded:stsb/test") == 0
    out = capsys.readouterr().out
    assert "stsb test" in out
    assert "missing: sts17-en-en/test, sts17-es-es/test" in out
    assert "the Hub does not answer" in out


def called(tmp_path, *suite: str) -> int:
    model = str(write_tiny(tmp_path / "tiny"))
    call = ["evaluate", model, "--max-length", "24", "--suite", *suite, "--device", "cpu"]
    return main([*call, "--store", str(tmp_path / "store")])
