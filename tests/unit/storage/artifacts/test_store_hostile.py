"""A tampered store: false manifests, irregular files, and a store that does not answer."""

import itertools
import json
import shutil
import tempfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from s3fs import S3FileSystem

from bsl.storage.artifacts.refs import ViewsRef
from bsl.storage.artifacts.store import Store
from bsl.storage.errors import CorruptArtifactError, StorageError, StoreReadError
from bsl.storage.filesystem.names import MANIFEST
from tests.hostile import PART, SHA, VIEWS, WHY, a_pipe, as_nobody, damage, folder_of, key, put, rewrite

NAMES = [
    "../outside", "a/../../outside", "/etc/passwd", "a//b", "./a", "a/.", "", "a/", "x" * 5000, "y/" * 600 + "z",
    "a\0b", "a\nb", "a\\b", "\x1b[2J", MANIFEST,
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name[:12]) for name in NAMES])
def test_manifest_with_an_unsafe_file_name_is_corrupt(store, tmp_path, name):
    ref = put(store)
    entry = store.manifest(ref).files[PART].model_dump()
    rewrite(store, ref, files={PART: entry, name: entry})
    with pytest.raises(CorruptArtifactError, match="not a manifest"):
        store.manifest(ref)
    with pytest.raises(CorruptArtifactError):
        store.fetch(ref)
    with pytest.raises(CorruptArtifactError):
        store.export(ref, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "outside").exists()
    put(store)  # a run makes the artifact again
    assert store.defect(ref) is None


ENTRY = {"size": 1, "sha256": SHA}
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


@pytest.mark.parametrize("lie", LIES)
def test_inconsistent_manifest_is_corrupt_and_is_replaced(store, lie):
    ref = put(store)
    rewrite(store, ref, **LIES[lie])
    assert store.defect(ref) is not None
    with pytest.raises(CorruptArtifactError):
        store.check(ref)
    assert [each.path for each in store.refs()] == [ref.path]  # listed by its folder, not by the name in its manifest
    put(store)
    assert store.scan(ref).collect().equals(VIEWS)


def test_wrong_row_count_in_the_manifest_is_detected(store):
    ref = put(store)
    tables = json.loads((folder_of(store, ref) / MANIFEST).read_text())["tables"]
    tables["views"]["rows"] = 3
    rewrite(store, ref, tables=tables)
    assert "table 'views' has 3 rows, its parts have 2" in store.defect(ref)


@pytest.mark.parametrize("text", ["", "{", "[" * 100_000, '{"format": 2}', "null", "\0", '{"format": 1e400}'])
def test_invalid_manifest_text_raises_corrupt_artifact_error(store, text):
    ref = put(store)
    (folder_of(store, ref) / MANIFEST).write_text(text)
    with pytest.raises(CorruptArtifactError, match="Delete the artifact and run its stage again"):
        store.manifest(ref)


def test_swapped_artifact_folders_are_detected_and_replaced(store):
    first, second = put(store, 1), put(store, 2, frame=VIEWS.head(1))
    one, other, aside = folder_of(store, first), folder_of(store, second), store.local / "aside"
    one.rename(aside), other.rename(one), aside.rename(other)
    for ref in (first, second):
        assert "manifest of views/" in damage(store, ref)
    put(store, 1)
    assert store.scan(first).collect().height == 2


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def a_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path)


def a_link_outside(path: Path) -> None:
    moved = path.parents[3] / "elsewhere"
    path.rename(moved)
    path.symlink_to(moved)


SPOILT = [*itertools.product([a_folder, a_pipe, a_loop, a_link_outside], [MANIFEST, PART]), (Path.unlink, PART)]


@pytest.mark.parametrize(("spoil", "name"), SPOILT)
def test_irregular_or_missing_file_damages_an_artifact_until_it_is_republished(store, spoil, name):
    ref = put(store)
    spoil(folder_of(store, ref) / name)
    assert ("missing, although the manifest" if spoil is Path.unlink else "regular file") in damage(store, ref)
    assert len(store.refs()) == 1
    put(store)
    assert store.defect(ref) is None


def test_symlinked_folder_inside_an_artifact_is_damage(store, tmp_path):
    ref = ViewsRef(key=key(1))
    with store.draft(ref, WHY) as draft:
        draft.write(VIEWS)
        (draft.folder / "encoder").mkdir()
        (draft.folder / "encoder" / "config.json").write_text("{}")
    (folder_of(store, ref) / "encoder").rename(tmp_path / "encoder")
    (folder_of(store, ref) / "encoder").symlink_to(tmp_path / "encoder")
    assert "below a link, expected a regular file" in damage(store, ref)


def test_file_at_an_artifact_path_is_replaced_on_publish(store):
    ref = put(store)
    shutil.rmtree(folder_of(store, ref))
    folder_of(store, ref).write_text("not a folder")
    put(store)
    assert store.defect(ref) is None


def publish_a_link(store: Store) -> None:
    with store.draft(ViewsRef(key=key(1)), WHY) as draft:
        draft.write(VIEWS)
        (draft.folder / "passwd").symlink_to("/etc/passwd")


def test_draft_with_a_symlink_is_not_published(store):
    with pytest.raises(CorruptArtifactError, match="neither a file nor a folder"):
        publish_a_link(store)
    assert store.refs() == []


# A store that does not answer


@pytest.fixture
def open_store():
    """Return a store that another user may enter; pytest's own folders may deny that."""
    folder = Path(tempfile.mkdtemp(prefix="bsl-test-"))
    folder.chmod(0o755)
    yield Store(str(folder / "store"))
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    "closed", ["views", "", f"views/{key(1)}", f"views/{key(1)}/{MANIFEST}", f"views/{key(1)}/{PART}"]
)
def test_unreadable_store_folder_raises_store_read_error(open_store, closed):
    ref = put(open_store)
    place = open_store.local / closed
    place.chmod(0)
    try:
        with as_nobody(), pytest.raises(StoreReadError, match=r"reading is not permitted\. Correct the permissions"):
            [open_store.check(listed) for listed in open_store.refs()]
        with as_nobody(), pytest.raises(StorageError):
            put(open_store)
    finally:
        place.chmod(0o755)
    assert open_store.defect(ref) is None


@pytest.fixture(params=[403, 503])
def refusing(request, monkeypatch):
    """Serve an object store that answers every request with the same status."""

    class Refusing(BaseHTTPRequestHandler):
        def refuse(self) -> None:
            body = b"<Error><Code>Refused</Code><Message>no</Message></Error>"
            self.send_response(request.param)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = refuse

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    S3FileSystem.clear_instance_cache()  # drops connections to another server
    yield "s3://bucket/store"
    server.shutdown()
    server.server_close()
    S3FileSystem.clear_instance_cache()


def test_object_store_that_denies_requests_raises_store_read_error(refusing, tmp_path):
    store, local = Store(refusing, tmp_path), Store(str(tmp_path / "local"))
    ref = put(local)
    made = local.manifest(ref)
    for act in (
        lambda: store.refs(),
        lambda: store.manifest(ref),
        lambda: store.defect(ref),
        lambda: store.last_used(made),
        lambda: put(store),
    ):
        with pytest.raises(StoreReadError, match="cannot read"):
            act()


def test_store_url_with_a_password_is_rejected_and_redacted():
    with pytest.raises(ValueError, match="FSSPEC_FTP_PASSWORD") as refusal:
        Store("ftp://user:planted-secret@host/store")
    assert "planted-secret" not in str(refusal.value)
