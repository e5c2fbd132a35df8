"""The saved listing of a commit is an aid: without it, or with a damaged one, the Hub is asked."""

import logging

import pytest

from bsl.storage.hub.listing import HubFile, save_listing, saved_listing

FILES = {"model.safetensors": HubFile(size=7, blob_id="a", lfs_sha256="b"), "config.json": HubFile(size=2, blob_id="c")}


def not_saved(folder):
    (folder / ".bsl").touch()  # a cache that cannot be written
    save_listing(folder, "commit", FILES)


def torn(folder):
    save_listing(folder, "commit", FILES)
    (folder / ".bsl" / "commit" / "files.json").write_text('{"model.safetensors": {"size"')


@pytest.mark.parametrize(("spoil", "said"), [(not_saved, "is not saved"), (torn, "is ignored")])
def test_listing_that_cannot_be_saved_or_read_is_none(tmp_path, caplog, spoil, said):
    caplog.set_level(logging.INFO)
    spoil(tmp_path)
    assert saved_listing(tmp_path, "commit") is None
    assert said in caplog.text
