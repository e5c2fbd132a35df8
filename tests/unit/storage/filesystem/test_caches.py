"""Local copies are written where it is possible; else the message names folder, cause and variable.

tests/differential/test_environment.py has users without a home and a name.
"""

import errno
import logging
import os
import tempfile
from pathlib import Path

import pytest

from bsl.storage.errors import StoreWriteError
from bsl.storage.filesystem import caches
from bsl.storage.filesystem.caches import cache_folder, copy_folder, filling
from tests.hostile import as_nobody


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Return a folder that every user may read, as home, temporary folder and place of the cache."""
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents[:3]:
        parent.chmod(parent.stat().st_mode | 0o055)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, mode in (("home", 0o555), ("temporary", 0o1777)):
        (tmp_path / name).mkdir()
        (tmp_path / name).chmod(mode)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    caches._default_folder.cache_clear()
    yield tmp_path
    caches._default_folder.cache_clear()


def test_default_is_the_cache_folder_of_the_user(place, monkeypatch):
    (place / "home").chmod(0o755)
    assert cache_folder(None) == place / "home" / ".cache" / "bsl"
    monkeypatch.setenv("XDG_CACHE_HOME", str(place / "xdg"))
    assert cache_folder(None) == place / "xdg" / "bsl"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # to be ignored, by the XDG specification
    assert cache_folder(None) == place / "home" / ".cache" / "bsl"
    monkeypatch.setenv("HOME", str(place / "another"))
    assert cache_folder(None) == place / "another" / ".cache" / "bsl"
    assert cache_folder(place / "given") == place / "given"


def test_folder_that_cannot_be_written_is_replaced_by_a_private_temporary_one(place, monkeypatch, caplog):
    caplog.set_level(logging.WARNING)
    for xdg in ("", str(place / "home" / "xdg"), "/dev/null/cache"):
        monkeypatch.setenv("XDG_CACHE_HOME", xdg)
        with as_nobody():
            folder = cache_folder(None)
            assert folder == place / "temporary" / f"bsl-cache-{os.geteuid()}"
            assert folder.stat().st_mode & 0o077 == 0
            with filling(folder / "copy"):
                (folder / "copy").mkdir(exist_ok=True)
    assert f"local copies are written to {place / 'temporary'}" in caplog.text
    assert "set BSL_CACHE to a folder" in caplog.text


def test_copy_in_a_folder_that_can_only_be_read_is_used(place):
    copy = place / "home" / ".cache" / "bsl" / "models" / "abc"
    (place / "home").chmod(0o755)
    copy.mkdir(parents=True)
    copy.parent.chmod(0o555)
    (place / "home" / ".cache" / "bsl").chmod(0o555)
    with as_nobody():
        assert copy_folder(None, "models", "abc") == copy
        assert copy_folder(None, "models", "def") == cache_folder(None) / "models" / "def"


def test_temporary_folder_of_another_user_is_refused(place):
    if os.geteuid() != 0:
        pytest.skip("only root can make a folder of another user")
    foreign = place / "temporary" / "bsl-cache-65534"
    foreign.mkdir(mode=0o777)
    foreign.chmod(0o777)
    with as_nobody(), pytest.raises(StoreWriteError, match=r"belongs to another user\. Set BSL_CACHE"):
        cache_folder(None)


@pytest.mark.parametrize("given", ["home/new", "home"])
def test_given_folder_that_cannot_be_written_is_an_error_with_cause_and_variable(place, given):
    with (
        as_nobody(),
        pytest.raises(StoreWriteError, match=rf"{given} \(BSL_CACHE\): writing is not permitted\. Choose a writable"),
        filling(place / given / "copy"),
    ):
        pytest.fail("a block that would write")


def test_home_folder_is_unchanged_or_that_of_the_user(monkeypatch):
    monkeypatch.setenv("HOME", "/nonexistent")
    caches.have_home()
    assert os.environ["HOME"] == "/nonexistent"
    monkeypatch.setenv("HOME", "")
    caches.have_home()
    assert "HOME" not in os.environ  # the entry in /etc/passwd counts


def test_user_without_a_home_folder_has_temporary_ones(place, monkeypatch):
    def no_entry(_):
        raise RuntimeError("no entry in /etc/passwd")

    monkeypatch.setattr(Path, "home", classmethod(no_entry))
    assert cache_folder(None) == place / "temporary" / f"bsl-cache-{os.geteuid()}"
    monkeypatch.setenv("HOME", "")
    caches.have_home()
    assert os.environ["HOME"] == str(place / "temporary" / f"bsl-home-{os.geteuid()}")


def test_full_disk_of_a_given_cache_is_named(tmp_path):
    with pytest.raises(StoreWriteError, match=r"copy \(BSL_CACHE\): the disk is full"), filling(tmp_path / "copy"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
