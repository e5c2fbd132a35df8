import pytest

from assets.__main__ import main


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ('{"encoder":', "--config settings.json: expected a JSON object of settings"),
        ('{"encodr": {"held_out": 9}}', "encodr"),
    ],
)
def test_build_rejects_faulty_settings_in_one_line(tmp_path, capsys, monkeypatch, settings, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:1/api")  # never reached
    (tmp_path / "settings.json").write_text(settings)
    assert main(["build", "--config", "settings.json", "--store", "store"]) == 1
    said = capsys.readouterr().err
    assert said.startswith("assets: ")
    assert message in said
    assert said.count("\n") == 1
