"""Names of models."""

from storage.sources.model_sources import is_made_here


def test_encoder_names_of_runs_are_not_hub_ids_unless_local(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("checkpoint/3f", "report/latest", "report/lastest", "checkpoint/flow-1"):
        assert is_made_here(name)
    (tmp_path / "checkpoint" / "mine").mkdir(parents=True)
    for name in ("checkpoint/mine", "reports/latest", "embedded:bert-mini", "someone/checkpoint"):
        assert not is_made_here(name)
    (tmp_path / "checkpoint" / "mine" / "manifest.json").touch()
    assert is_made_here("checkpoint/mine")  # the store is the current folder
