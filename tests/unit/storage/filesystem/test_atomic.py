"""Files and folders appear whole or not at all."""

import hashlib
import os
import signal
import subprocess
import sys

import pytest

from bsl.storage.filesystem.atomic import atomic_write
from bsl.storage.filesystem.digests import file_sha256


def test_atomic_write_replaces_an_existing_file(tmp_path):
    path = tmp_path / "deep" / "file"
    for text in ("first", "second"):
        with atomic_write(path) as unfinished:
            unfinished.write_text(text)
            assert not path.exists() or path.read_text() == "first"
        assert path.read_text() == text
    assert [entry.name for entry in path.parent.iterdir()] == ["file"]
    assert file_sha256(path) == hashlib.sha256(b"second").hexdigest()


def test_keep_existing_preserves_the_existing_folder(tmp_path):
    path = tmp_path / "folder"
    for text in ("first", "second"):
        with atomic_write(path, keep_existing=True) as unfinished:
            (unfinished / "inner").mkdir(parents=True)
            (unfinished / "inner" / "file").write_text(text)
    assert (path / "inner" / "file").read_text() == "first"
    assert [entry.name for entry in tmp_path.iterdir()] == ["folder"]


@pytest.mark.parametrize("folder", [True, False])
def test_failed_atomic_write_leaves_no_files(tmp_path, folder):
    def fail(unfinished):
        if folder:
            unfinished.mkdir()
        (unfinished / "file" if folder else unfinished).write_text("half")
        raise ValueError("stopped")

    with pytest.raises(ValueError, match="stopped"), atomic_write(tmp_path / "path") as unfinished:
        fail(unfinished)
    assert list(tmp_path.iterdir()) == []


TERMINATED = """
import signal, sys
from pathlib import Path
from bsl.storage.filesystem.atomic import atomic_write
with atomic_write(Path(sys.argv[1]) / "whole"):
    with atomic_write(Path(sys.argv[1]) / "part") as unfinished:
        unfinished.write_text("half")
        signal.raise_signal(signal.SIGTERM)
"""


def test_terminated_atomic_write_leaves_no_files(tmp_path):
    """Regression: SIGTERM of `bsl export` left an encoder's weights beside the target for a day."""
    done = subprocess.run(
        [sys.executable, "-c", TERMINATED, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr, [*tmp_path.iterdir()]) == (-signal.SIGTERM, "", [])


def test_atomic_write_deletes_the_temporary_folders_of_killed_processes(tmp_path):
    old, young = tmp_path / ".making-old", tmp_path / ".making-young"
    for folder in (old, young):
        (folder / "name").mkdir(parents=True)
    for path in (old / "name", old):
        os.utime(path, (0, 0))
    with atomic_write(tmp_path / "made") as path:
        path.mkdir()
    assert sorted(path.name for path in tmp_path.iterdir()) == [young.name, "made"]
