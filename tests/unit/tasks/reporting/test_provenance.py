"""A page names the commit of the code."""

import subprocess

import pytest

from bsl.tasks.reporting import provenance
from bsl.tasks.reporting.provenance import commit


@pytest.fixture
def clone(tmp_path, monkeypatch):
    def git(*words: str) -> str:
        who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        call = ["git", *who, "-C", str(tmp_path), *words]
        return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "a.py").write_text("1")
    git("add", "-A")
    git("commit", "-qm", "first")
    monkeypatch.setattr(provenance, "HERE", tmp_path)
    return git("rev-parse", "HEAD"), tmp_path


def test_commit_names_head_and_marks_changed_tracked_files(clone):
    head, folder = clone
    assert commit() == head
    (folder / "new.txt").write_text("untracked files change nothing")
    assert commit() == head
    (folder / "a.py").write_text("2")
    assert commit() == f"{head} with changes"


def test_commit_is_unknown_outside_a_git_clone(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "HERE", tmp_path)
    assert commit().startswith("unknown: not a clone") or len(commit()) == 40


def test_provenance_root_contains_the_source_tree():
    assert (provenance.HERE / "tasks" / "reporting" / "provenance.py").is_file()
