"""A damaged or tampered artifact is refused with its fault, gives no content, and is made again when published."""

import json
import os
import shutil
from functools import partial

import pytest

from bsl.storage.artifacts.refs import ViewsRef
from bsl.storage.errors import ArtifactMissingError, CorruptArtifactError, NewerFormatError
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import PART, SHA, VIEWS, WHY, a_pipe, damage, folder_of, key, put, rewrite

ENTRY = {"size": 1, "sha256": SHA}
NAMES = ("../outside", "/etc/passwd", "a//b", "./a", "", "x" * 5000, "y/" * 600 + "z", "a\0b", "a\\b", MANIFEST)
LIES = {
    "no files": {"files": {}},
    "no tables": {"tables": {}},
    "a part is missing": {"files": {"views-00001.parquet": ENTRY}},
    "a part of no table": {"files": {PART: ENTRY, "pairs-00000.parquet": ENTRY}},
    "a table without parts": {"files": {"report.md": ENTRY}},
    "a file where a folder is": {"files": {PART: ENTRY, "a": ENTRY, "a/b": ENTRY}},
    "another kind": {"kind": "pairs"},
    "another key": {"key": key(2)},
    "a kind that is a path": {"kind": "../views"},
    "no time zone": {"created_at": "2026-01-01T00:00:00"},
    "a time that no clock shows": {"created_at": "9999-12-31T23:59:59+00:00"},
    "an endless duration": {"duration_s": "Infinity"},
    "a size beyond counting": {"files": {PART: {"size": 10**30, "sha256": SHA}}},
    "an input that is a path": {
        "provenance": WHY.model_dump() | {"inputs": {"x": {"kind": "../..", "key": "", "digest": ""}}}
    },
    "a field that nobody knows": {"surprise": 1},
    "no version": {"format": 0},
}
TEXTS = ("", "[" * 100_000, '{"format": 2}', "null", '{"format": 1e400}')


def second_name(store, ref, name):
    """Give the table's file a second name in the manifest."""
    entry = store.manifest(ref).files[PART].model_dump()
    rewrite(store, ref, files={PART: entry, name: entry})


def written(store, ref, text):
    (folder_of(store, ref) / MANIFEST).write_text(text)


def replaced(store, ref, name, spoil):
    spoil(folder_of(store, ref) / name)


def flipped(store, ref, position):
    path = folder_of(store, ref) / PART
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def a_folder(path):
    path.unlink()
    path.mkdir()


def a_loop(path):
    path.unlink()
    path.symlink_to(path)


def a_link_outside(path):
    path.symlink_to(path.rename(path.parents[3] / "elsewhere"))


def another_row_count(store, ref):
    tables = json.loads((folder_of(store, ref) / MANIFEST).read_text())["tables"]
    tables["views"]["rows"] = 3
    rewrite(store, ref, tables=tables)


def exchanged(store, ref):
    one, other = folder_of(store, ref), folder_of(store, put(store, 2, frame=VIEWS.head(1)))
    aside = one.rename(store.local / "aside")
    other.rename(one), aside.rename(other)


def a_file_at_its_path(store, ref):
    shutil.rmtree(folder_of(store, ref))
    folder_of(store, ref).write_text("not a folder")


DAMAGE = {
    **{f"name {name[:12]!a}": (partial(second_name, name=name), "not a manifest") for name in NAMES},
    **{lie: (partial(rewrite, **fields), "") for lie, fields in LIES.items()},
    **{
        f"manifest {text[:12]!a}": (
            partial(written, text=text),
            "Delete it (`bsl artifacts delete views/000000000000`)",
        )
        for text in TEXTS
    },
    **{
        f"{name} is {spoil.__name__}": (partial(replaced, name=name, spoil=spoil), "regular file")
        for name in (MANIFEST, PART)
        for spoil in (a_folder, a_pipe, a_loop, a_link_outside)
    },
    **{f"bit of byte {at}": (partial(flipped, position=at), "from the manifest") for at in (0, -1)},
    "older format": (partial(rewrite, format=2), "format 2, this version reads 3"),
    "another row count": (another_row_count, "table 'views' has 3 rows, its parts have 2"),
    "exchanged folders": (exchanged, "manifest of views/"),
    "no manifest": (lambda store, ref: (folder_of(store, ref) / MANIFEST).unlink(), "contains no views/"),
    "no table": (lambda store, ref: (folder_of(store, ref) / PART).unlink(), "missing, although the manifest"),
    "a file at its path": (a_file_at_its_path, "contains no views/"),
}


@pytest.mark.parametrize(("spoil", "fault"), DAMAGE.values(), ids=DAMAGE)
def test_damaged_artifact_is_refused_and_made_again(store, tmp_path, spoil, fault):
    ref = put(store)
    spoil(store, ref)
    assert fault in store.defect(ref)
    for use in (store.check, store.scan, store.fetch, lambda ref: store.export(ref, tmp_path / "out")):
        with pytest.raises((ArtifactMissingError, CorruptArtifactError)):
            use(ref)
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "outside").exists()
    # Listed by its folder, not by the name in its manifest.
    assert (ref.path in [each.path for each in store.refs()]) == os.path.lexists(folder_of(store, ref) / MANIFEST)
    put(store)
    assert damage(store, ref) is None
    assert store.scan(ref).collect().equals(VIEWS)


def test_manifest_of_a_newer_format_is_not_overwritten(store):
    ref = put(store)
    rewrite(store, ref, format=4)
    with pytest.raises(NewerFormatError, match=r"format 4, this version reads 3\. Upgrade"):
        store.manifest(ref)
    with pytest.raises(NewerFormatError):
        put(store)
    assert '"format": 4' in (folder_of(store, ref) / MANIFEST).read_text()


def test_links_are_neither_published_nor_read(store, tmp_path):
    def publish(make_link):
        with store.draft(ViewsRef(key=key(1)), WHY) as draft:
            draft.write(VIEWS)
            (draft.folder / "encoder").mkdir()
            (draft.folder / "encoder" / "config.json").write_text("{}")
            make_link(draft.folder / "passwd")

    with pytest.raises(CorruptArtifactError, match="neither a file nor a folder"):
        publish(lambda path: path.symlink_to("/etc/passwd"))
    assert store.refs() == []
    publish(lambda _: None)
    folder = folder_of(store, ViewsRef(key=key(1))) / "encoder"
    folder.symlink_to(folder.rename(tmp_path / "encoder"))
    assert "below a link, expected a regular file" in damage(store, ViewsRef(key=key(1)))
