"""`bsl artifacts` lists, shows, verifies, exports and deletes artifacts."""

import json

import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import ArtifactRef, PairsRef, ViewsRef
from bsl.storage.artifacts.schemas import PAIRS, TRANSLATIONS
from bsl.storage.artifacts.store import Store

REF = ViewsRef(key=f"{7:064x}")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    store = Store(str(tmp_path / "store"))
    with store.draft(REF, Provenance(stage_version=1, config={"seed": 3})) as draft:
        frame = pl.DataFrame({"sentence_id": [1], "method": ["original"], "text": ["A cat."]})
        draft.write(frame.cast({"sentence_id": pl.UInt64}))
    return store


def test_ls_lists_every_artifact(store, capsys):
    assert main(["artifacts", "ls"]) == 0
    assert str(REF) in capsys.readouterr().out


def test_misspelt_artifact_kind_error_suggests_the_nearest(store, capsys):
    for words in (["ls", "chekpoint"], ["show", "chekpoint/latest"], ["show", "view/0"]):
        assert main(["artifacts", *words]) == 1
        said = capsys.readouterr()
        assert said.out == ""
        wrong, meant = ("view", "views") if words[-1] == "view/0" else ("chekpoint", "checkpoint")
        assert f"bsl: unknown artifact kind '{wrong}'. " in said.err
        assert f"Did you mean '{meant}'? Known kinds: checkpoint, " in said.err


def test_ls_of_empty_store_prints_its_address(store, tmp_path, capsys):
    assert main(["artifacts", "ls", "checkpoint"]) == 0
    assert capsys.readouterr().out.startswith(f"no checkpoint at {store.url}. ")
    missing = str(tmp_path / "misspelt")
    for action in ("ls", "verify"):
        assert main(["artifacts", action, "--store", missing]) == 0
        assert capsys.readouterr().out.startswith(f"no artifacts at {missing}. ")
    assert main(["artifacts", "ls", "--store", missing, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_show_accepts_a_key_prefix(store, capsys):
    assert main(["artifacts", "show", "views/000"]) == 0
    out = capsys.readouterr().out
    assert '"seed": 3' in out
    assert "A cat." in out


@pytest.mark.parametrize("columns", ["40", "200"])
def test_show_fits_tables_to_the_width_of_the_terminal(store, capsys, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    assert main(["artifacts", "show", "views/000"]) == 0
    lines = capsys.readouterr().out.partition("shape: ")[2].splitlines()[1:]
    assert all(len(line) <= int(columns) for line in lines)
    assert {line[0] for line in lines} <= set("┌│╞└")


def test_verify_fails_on_a_damaged_artifact(store, capsys):
    assert main(["artifacts", "verify"]) == 0
    part = next((store.local / REF.path).glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    assert main(["artifacts", "verify"]) == 1
    assert f"DAMAGED {REF}" in capsys.readouterr().out
    assert main(["artifacts", "verify", str(REF)]) == 1
    assert "\n1 artifact, 1 damaged\n" in capsys.readouterr().out


def test_verify_distinguishes_intact_stale_and_newer_artifacts(store, capsys):
    made = InputEntry(kind="views", key=REF.key, digest="d" * 64)
    with store.draft(
        PairsRef(key=f"{8:064x}"), Provenance(stage_version=1, config={}, inputs={"views": made})
    ) as draft:
        draft.write(pl.DataFrame(schema=PAIRS))
    newer = store.local / "corpus" / f"{9:064x}" / "manifest.json"
    newer.parent.mkdir(parents=True)
    newer.write_text('{"format": 99}')
    assert main(["artifacts", "verify"]) == 0
    out = capsys.readouterr().out
    assert f"intact  {REF}\n" in out
    assert "stale   pairs/000000000000: pairs/000000000000: its input views/000000000000 was made again" in out
    assert "newer   corpus/000000000000: " in out
    assert "Upgrade bsl-pipeline" in out


def test_ls_lists_unknown_kind_present_in_the_store(store, capsys):
    ref = ArtifactRef(kind="toys", key=f"{5:064x}")
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        (draft.folder / "toy.md").write_text("a toy")
    assert main(["artifacts", "ls", "toys"]) == 0
    assert str(ref) in capsys.readouterr().out


def test_ls_and_show_accept_translation_memory_parts(store, capsys):
    ref = ArtifactRef(kind="translations/0123abcd", key=f"{5:064x}")
    with store.draft(ref, Provenance(stage_version=1, config={"beam": 4})) as draft:
        draft.write(pl.DataFrame(schema=TRANSLATIONS))
    assert main(["artifacts", "ls", "translations"]) == 0
    assert str(ref) in capsys.readouterr().out
    assert main(["artifacts", "show", "translations/000"]) == 0
    assert '"beam": 4' in capsys.readouterr().out


def test_ls_and_show_print_untruncated_artifact_names(store, capsys):
    kind = f"translations/{'a' * 60}"
    ref = ArtifactRef(kind=kind, key=f"{5:064x}")
    with store.draft(ref, Provenance(stage="translate", stage_version=1, config={})) as draft:
        draft.write(pl.DataFrame(schema=TRANSLATIONS))
    assert main(["artifacts", "ls"]) == 0
    assert str(ref) in capsys.readouterr().out
    assert main(["artifacts", "ls", "translations", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert (row["artifact"], row["stage"], row["rows"]) == (ref.path, "translate", 0)
    assert main(["artifacts", "show", "views/latest"]) == 0
    assert f'"key": "{REF.key}"' in capsys.readouterr().out
    assert main(["artifacts", "show", "corpus/latest"]) == 1
    message = capsys.readouterr().err
    assert f"{store.local.absolute()} contains no corpus, so there is no latest one" in message
    assert "--store, or BSL_STORE" in message


def test_ls_lists_artifacts_despite_a_damaged_manifest(store, capsys):
    (store.local / "views" / f"{8:064x}").mkdir()
    (store.local / "views" / f"{8:064x}" / "manifest.json").write_text("{")
    assert main(["artifacts", "ls"]) == 0
    assert str(REF) in capsys.readouterr().out


def test_gc_without_delete_option_deletes_nothing(store, capsys):
    assert main(["artifacts", "gc", "--older-than", "0h"]) == 0
    assert "1 artifact and 0 leftovers can be deleted" in capsys.readouterr().out
    assert store.defect(REF) is None
    assert main(["artifacts", "gc", "--older-than", "0h", "--delete"]) == 0
    assert store.refs() == []


def test_export_rejects_existing_folder_and_unknown_key(store, tmp_path, capsys):
    assert main(["artifacts", "export", "views/0", str(tmp_path / "out")]) == 0
    assert (tmp_path / "out" / "manifest.json").exists()
    assert main(["artifacts", "export", "views/0", str(tmp_path / "out")]) == 1
    assert main(["artifacts", "export", "views/f", str(tmp_path / "other")]) == 1
    assert "matches nothing" in capsys.readouterr().err
