"""A page names the commit of the code."""

import subprocess

from bsl.tasks.reporting import provenance
from bsl.tasks.reporting.provenance import HERE, commit


def test_commit_names_head_and_marks_changed_tracked_files(tmp_path, monkeypatch):
    assert (HERE / "tasks" / "reporting" / "provenance.py").is_file()
    monkeypatch.setattr(provenance, "HERE", tmp_path)
    assert commit().startswith("unknown: not a clone") or len(commit()) == 40

    def git(*words):
        call = ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", "-C", str(tmp_path), *words]
        return subprocess.run(call, check=True, capture_output=True, text=True).stdout.strip()

    git("init", "-q")
    (tmp_path / "a.py").write_text("1")
    git("add", "-A")
    git("commit", "-qm", "first")
    (tmp_path / "new.txt").write_text("untracked files change nothing")
    assert commit() == git("rev-parse", "HEAD")
    (tmp_path / "a.py").write_text("2")
    assert commit() == f"{git('rev-parse', 'HEAD')} with changes"
