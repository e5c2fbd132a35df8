"""`bsl artifacts` lists, shows, verifies, exports and deletes artifacts, also damaged and hostile ones."""

import json

import polars as pl
import pytest

from bsl.flows.cli.main import main
from bsl.storage.artifacts.leases import begin_lease, release, write_lease
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import ArtifactRef, PairsRef, ViewsRef
from bsl.storage.artifacts.schemas import PAIRS, SCORES, SWEEP, TRANSLATIONS
from bsl.storage.artifacts.store import Store
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import folder_of, put, rewrite

REF = ViewsRef(key=f"{7:064x}")


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("BSL_STORE", str(tmp_path / "run[1]"))
    monkeypatch.chdir(tmp_path)
    store = Store(str(tmp_path / "run[1]"))
    put(store, 7, Provenance(stage_version=1, config={"seed": 3}))
    return store


@pytest.fixture
def artifacts(store, capsys):
    """Return a function that runs an action and returns its exit code, output and errors."""

    def call(words, *more):
        code = main(["artifacts", *words.split(), *more])
        return (code, *capsys.readouterr())

    return call


def translated(store, name, **config):
    ref = ArtifactRef(kind=f"translations/{name}", key=f"{5:064x}")
    with store.draft(ref, Provenance(stage="translate", stage_version=1, config=config)) as draft:
        draft.write(pl.DataFrame(schema=TRANSLATIONS))
    return ref


def test_misspelt_artifact_kind_error_suggests_the_nearest(artifacts):
    for words in ("ls chekpoint", "show chekpoint/latest", "show view/0"):
        code, out, err = artifacts(words)
        assert (code, out) == (1, "")
        wrong, meant = ("view", "views") if words == "show view/0" else ("chekpoint", "checkpoint")
        assert f"bsl: unknown artifact kind '{wrong}'. " in err
        assert f"Did you mean '{meant}'? Known kinds: checkpoint, " in err


def test_ls_of_empty_store_prints_its_address(store, artifacts, tmp_path):
    code, out, _ = artifacts("ls checkpoint")
    assert (code, out.startswith(f"no checkpoint at {store.url}. ")) == (0, True)
    missing = str(tmp_path / "misspelt")
    for action in ("ls", "verify"):
        code, out, _ = artifacts(action, "--store", missing)
        assert (code, out.startswith(f"no artifacts at {missing}. ")) == (0, True)
    assert artifacts("ls --json", "--store", missing) == (0, "[]\n", "")


def test_ls_and_show_print_complete_names_of_any_kind(store, artifacts):
    """Names are never cut, those of a translation memory have three parts, and another version may add kinds."""
    long, toy = translated(store, "a" * 60, beam=4), ArtifactRef(kind="toys", key=f"{5:064x}")
    with store.draft(toy, Provenance(stage_version=1, config={})) as draft:
        (draft.folder / "toy.md").write_text("a toy")
    _, out, _ = artifacts("ls")
    assert all(str(ref) in out for ref in (REF, long, toy))
    assert str(toy) in artifacts("ls toys")[1]
    (row,) = json.loads(artifacts("ls translations --json")[1])
    assert (row["artifact"], row["stage"], row["rows"]) == (long.path, "translate", 0)
    assert '"beam": 4' in artifacts(f"show translations/{'a' * 60}/000")[1] + artifacts("show translations/000")[1]
    _, out, _ = artifacts("show views/000")
    assert '"seed": 3' in out
    assert "A cat sits." in out
    assert f'"key": "{REF.key}"' in artifacts("show views/latest")[1]
    shown = json.loads(artifacts("show views/latest --json")[1])
    assert (shown["manifest"]["key"], len(shown["first"]["views"])) == (REF.key, 2)
    code, _, err = artifacts("show corpus/latest")
    assert code == 1
    assert f"{store.local.absolute()} contains no corpus, so there is no latest one" in err
    assert "--store, or BSL_STORE" in err


def test_show_prints_scores_and_a_result_of_another_version(store, artifacts):
    score = {"model": "x", "dataset": "stsb", "subset": "all", "split": "test", "metric": "spearman", "protocol": "all"}
    scores, sweep = ArtifactRef(kind="scores", key=f"{5:064x}"), ArtifactRef(kind="sweep", key=f"{6:064x}")
    with store.draft(scores, Provenance(stage_version=1, config={"seed": 4})) as draft:
        draft.write(pl.DataFrame([{name: score.get(name) for name in SCORES} | {"value": 0.5}], schema=SCORES))
    with store.draft(sweep, Provenance(stage_version=1, config={"seed": 5})) as draft:
        draft.write(pl.DataFrame(schema=SWEEP))
    assert "stsb test: spearman, all" in artifacts("show scores/latest")[1]
    code, out, _ = artifacts("show sweep/latest")
    assert (code, '"seed": 5' in out, "figures" in out.partition("{")[0]) == (0, True, True)


@pytest.mark.parametrize("columns", ["40", "200"])
def test_show_fits_tables_to_the_width_of_the_terminal(artifacts, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    lines = artifacts("show views/000")[1].partition("shape: ")[2].splitlines()[1:]
    assert all(len(line) <= int(columns) for line in lines)
    assert {line[0] for line in lines} <= set("┌│╞└")


def test_verify_fails_on_a_damaged_artifact(store, artifacts):
    assert artifacts("verify")[0] == 0
    part = next(folder_of(store, REF).glob("*.parquet"))
    part.write_bytes(part.read_bytes()[:-1] + b"?")
    code, out, _ = artifacts("verify")
    assert (code, f"DAMAGED {REF}" in out) == (1, True)
    code, out, _ = artifacts("verify", str(REF))
    assert (code, "\n1 artifact, 1 damaged\n" in out) == (1, True)
    (found,) = json.loads(artifacts("verify --json")[1])
    assert (found["subject"], found["verdict"]) == (REF.path, "DAMAGED")


def test_verify_distinguishes_intact_stale_and_newer_artifacts(store, artifacts):
    inputs = {"views": InputEntry(kind="views", key=REF.key, digest="d" * 64)}
    with store.draft(PairsRef(key=f"{8:064x}"), Provenance(stage_version=1, config={}, inputs=inputs)) as draft:
        draft.write(pl.DataFrame(schema=PAIRS))
    newer = store.local / "corpus" / f"{9:064x}" / MANIFEST
    newer.parent.mkdir(parents=True)
    newer.write_text('{"format": 99}')
    code, out, _ = artifacts("verify")
    assert code == 0
    assert f"intact  {REF}\n" in out
    assert "stale   pairs/000000000000: pairs/000000000000: its input views/000000000000 was made again" in out
    assert "newer   corpus/000000000000: " in out
    assert "Upgrade bsl-pipeline" in out


def test_ls_lists_artifacts_despite_a_damaged_manifest(store, artifacts):
    folder_of(store, ViewsRef(key=f"{8:064x}")).mkdir()
    (folder_of(store, ViewsRef(key=f"{8:064x}")) / MANIFEST).write_text("{")
    code, out, _ = artifacts("ls")
    assert (code, str(REF) in out) == (0, True)


def test_gc_deletes_only_with_its_option_and_only_if_all_times_are_known(store, artifacts):
    rewrite(store, put(store, 1), created_at="2026-01-01T00:00:00")
    assert artifacts("ls")[0] == 0
    code, _, err = artifacts("gc --older-than 0h --delete")
    assert (code, "nothing is deleted" in err) == (1, True)
    assert len(store.refs()) == 2
    assert artifacts("verify")[0] == 1
    (folder_of(store, ViewsRef(key=f"{1:064x}")) / MANIFEST).unlink()
    assert "1 artifact and " in artifacts("gc --older-than 0h")[1]
    assert store.defect(REF) is None
    listed = json.loads(artifacts("gc --older-than 0h --json")[1])
    assert ([row["artifact"] for row in listed["artifacts"]], listed["deleted"]) == ([REF.path], False)
    assert artifacts("gc --older-than 0h --delete")[0] == 0
    assert store.refs() == []
    assert artifacts("gc --older-than 0h") == (0, "0 artifacts and 0 leftovers can be deleted\n", "")


def test_delete_removes_unreadable_artifacts_and_names_what_was_made_from_them(store, artifacts):
    inputs = {"views": InputEntry(kind="views", key=REF.key, digest="d" * 64)}
    with store.draft(PairsRef(key=f"{8:064x}"), Provenance(stage_version=1, config={}, inputs=inputs)) as draft:
        draft.write(pl.DataFrame(schema=PAIRS))
    (folder_of(store, REF) / MANIFEST).write_text("{")
    assert f"Delete it (`bsl artifacts delete {REF}`)" in artifacts("gc")[2]
    begin_lease(store, "other")
    write_lease(store, "other", [REF.path])
    assert "a running command, so nothing is deleted" in artifacts(f"delete {REF}")[2]
    release(store, "other")
    assert "matches nothing" in artifacts(f"delete {REF} views/f")[2]
    assert len(store.refs()) == 2
    code, out, _ = artifacts(f"delete {REF}")
    assert (code, out) == (0, f"deleted {REF}\nmade from it, and still there: pairs/000000000000\n")
    assert json.loads(artifacts("delete pairs/0 --json")[1])["made_from_them"] == []
    assert store.refs() == []


@pytest.mark.parametrize("run", ["[/]", "[red]x[/red]", "[link=http://evil]x[/link]", "\x1b[2Jx", "a\u202eb"])
def test_markup_in_a_manifest_is_printed_literally(store, artifacts, run):
    put(store, why=Provenance(stage_version=1, config={}, run=run))
    _, shown, _ = artifacts("ls")
    assert not {"\x1b", "\u202e"} & {*shown}
    assert "run[1]" in "".join(shown.split())
    assert run.replace("\x1b", r"\x1b").replace("\u202e", r"\u202e")[:6] in shown
    assert artifacts("gc")[0] == 0


def test_export_rejects_existing_folder_unknown_key_and_path_traversal(store, artifacts, tmp_path):
    out = str(tmp_path / "out")
    assert artifacts("export views/0", out)[0] == 0
    assert (tmp_path / "out" / MANIFEST).exists()
    assert artifacts("export views/0", out)[0] == 1
    assert "matches nothing" in artifacts("export views/f", str(tmp_path / "other"))[2]
    record = json.loads((folder_of(store, REF) / MANIFEST).read_text())
    (tmp_path / "secret").write_text("secret")
    rewrite(store, REF, files={**record["files"], "../../../../secret": next(iter(record["files"].values()))})
    code, _, err = artifacts("export views/0", f"{out}.zip")
    assert (code, "not a manifest" in err) == (1, True)
    assert not (tmp_path / "out.zip").exists()
