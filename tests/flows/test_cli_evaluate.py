"""`bsl evaluate` prints scores, intervals and missing sets, with a set of the papers' tables and with another."""

import pytest

from flows.cli.main import main
from tests.tiny_encoder import write_tiny


@pytest.mark.usefixtures("named_server")
@pytest.mark.parametrize("split", ["dev", "test"])
def test_evaluate_prints_scores_missing_sets_and_export_command(tmp_path, capsys, split):
    model = str(write_tiny(tmp_path / "tiny"))
    call = [
        "evaluate",
        model,
        "--max-length",
        "24",
        "--suite",
        f"embedded:stsb/{split}",
        "stsb-mt/test",
        "--device",
        "cpu",
    ]
    assert main([*call, "--store", str(tmp_path / "store")]) == 0
    out = capsys.readouterr().out
    assert f"stsb {split}" in out
    assert f"{tmp_path.name}/tiny" in out
    assert "missing: stsb-mt/test: " in out
    assert ("Semantic textual similarity" in out) == (split == "test")  # no paper's table has a dev column
    assert "bsl artifacts export evaluation/" in out
