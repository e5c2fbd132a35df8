"""Hostile arguments, settings and artifacts are refused with a clear message, and never executed."""

import json

import pytest
from pydantic import ValidationError

from bsl.flows.cli.artifacts import age
from bsl.flows.cli.main import main
from bsl.flows.cli.terminal.overrides import changes_of, configured
from bsl.flows.run_context import run_context_of
from bsl.storage.artifacts.manifest import Provenance
from bsl.storage.artifacts.store import Store
from bsl.storage.filesystem.names import MANIFEST
from bsl.tasks.stage.run_context import RunContext
from tests.hostile import folder_of, put, rewrite


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "run[1]"))
    monkeypatch.chdir(tmp_path)
    return Store(str(tmp_path / "run[1]"))


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000], ids=["lists", "objects"])
def test_deeply_nested_value_is_rejected(value, capsys):
    with pytest.raises(ValueError, match="nested too deeply"):
        changes_of([f"training.lr={value}"])
    assert main(["doctor", "tiny", "--set", f"training.lr={value}"]) == 2
    assert "nested too deeply" in capsys.readouterr().err


def test_deeply_nested_field_path_is_rejected():
    with pytest.raises(ValueError, match="expected FIELD=VALUE"):
        configured("tiny", [f"{'a.' * 10_000}b=1"])


@pytest.mark.parametrize("value", ["Infinity", '"inf"', "1e999"])
@pytest.mark.parametrize(
    "setting",
    [
        "training.lr={}",
        'augment.filters=[{{"name": "language", "odds": {}}}]',
        'augment.filters=[{{"name": "length", "ratio": {}}}]',
    ],
)
def test_infinite_number_is_rejected(setting, value):
    with pytest.raises(ValueError, match=r"finite number|less than|finite|not text"):
        configured("tiny", [setting.format(value)])


def test_text_with_lone_surrogate_is_rejected():
    """For example the undecodable bytes of a command line."""
    with pytest.raises(ValueError, match=r"title.* [uU]nicode"):
        configured("tiny", ["title=a\udcffb"])


def test_number_of_five_thousand_digits_is_rejected():
    with pytest.raises(ValueError, match=r"training\.seed"):
        configured("tiny", [f"training.seed={'9' * 5000}"])


@pytest.mark.parametrize("text", ["999999d", "36501d", "9" * 5000 + "h", "-1d", "1.5h", "٣d", "", "d"])
def test_invalid_gc_age_is_rejected(text, store, capsys):
    with pytest.raises(ValueError, match="expected hours or days up to 36500d"):
        age(text)
    assert main(["artifacts", "gc", f"--older-than={text}"]) == 2
    assert "expected hours or days" in capsys.readouterr().err


@pytest.mark.parametrize("run", ["[/]", "[red]x[/red]", "[link=http://evil]x[/link]", "\x1b[2Jx", "a\u202eb"])
def test_markup_in_a_manifest_is_printed_literally(store, run, capsys):
    put(store, why=Provenance(stage_version=1, config={}, run=run))
    assert main(["artifacts", "ls"]) == 0
    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "run[1]" in "".join(shown.split())
    assert run.replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")[:6] in shown
    assert main(["artifacts", "gc"]) == 0


def test_manifest_with_naive_time_blocks_garbage_collection(store, capsys):
    rewrite(store, put(store, 1), created_at="2026-01-01T00:00:00")
    put(store, 2)
    assert main(["artifacts", "ls"]) == 0
    assert "views/000000000000" in capsys.readouterr().out
    assert main(["artifacts", "gc", "--older-than", "0h", "--delete"]) == 1
    assert "nothing is deleted" in capsys.readouterr().err
    assert len(store.refs()) == 2
    assert main(["artifacts", "verify"]) == 1


def test_export_rejects_manifest_with_path_traversal(store, tmp_path, capsys):
    ref = put(store)
    manifest = folder_of(store, ref) / MANIFEST
    record = json.loads(manifest.read_text())
    record["files"]["../../../../outside"] = next(iter(record["files"].values()))
    manifest.write_text(json.dumps(record))
    (tmp_path / "secret").write_text("secret")
    assert main(["artifacts", "export", "views/0", str(tmp_path / "out.zip")]) == 1
    assert "not a manifest" in capsys.readouterr().err
    assert not (tmp_path / "out.zip").exists()


# Secrets

SECRET = "planted-secret"


def test_password_in_store_variable_is_rejected_and_not_printed(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BSL_STORE", f"ftp://user:{SECRET}@host/store")
    for call in (["artifacts", "ls"], ["artifacts", "gc"], ["doctor", "tiny"]):
        assert main(call) == 2
    told = "".join(capsys.readouterr())
    assert "FSSPEC_FTP_PASSWORD" in told
    assert SECRET not in told
    assert not any(SECRET in path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())


def test_password_in_source_or_mirror_url_is_rejected_unprinted():
    with pytest.raises(ValueError, match="contains a password") as refusal:
        configured("tiny", [f'ingest.sources=[{{"path": "ftp://user:{SECRET}@host/a.txt"}}]'])
    assert SECRET not in str(refusal.value)
    with pytest.raises(ValidationError) as refused:
        RunContext(mirror=f"sftp://u:{SECRET}@h/m")
    assert SECRET not in str(refused.value)


def test_empty_store_address_is_rejected():
    with pytest.raises(ValueError, match="at least 1 character"):
        run_context_of({"store": ""})
