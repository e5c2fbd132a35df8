"""Causes of the operating system are named with a remedy."""

import errno
import os

import pytest

from bsl.storage.errors import StoreWriteError
from bsl.storage.filesystem.os_errors import check_umask, explain_full_disk, writing


@pytest.fixture(autouse=True)
def _same_umask():
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_umask_that_takes_rights_of_the_owner_is_refused():
    for mask in (0o000, 0o022, 0o077):
        os.umask(mask)
        check_umask()
        assert os.umask(mask) == mask
    for mask in (0o100, 0o277, 0o777):
        os.umask(mask)
        with pytest.raises(StoreWriteError, match=rf"umask {mask:o}: .*Run `umask 022`"):
            check_umask()


def test_size_limit_is_named_like_a_full_disk():
    for number, cause in ((errno.EFBIG, "ulimit -f"), (errno.ENOSPC, "the disk is full")):
        for block in (writing, explain_full_disk):
            with pytest.raises(StoreWriteError, match=cause), block("x"):
                raise OSError(number, os.strerror(number))
