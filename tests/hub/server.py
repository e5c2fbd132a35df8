"""A Hub on loopback: speaks as much of the Hugging Face Hub's protocol as its clients ask of it, and fails on demand.

GET  /api/{models,datasets}/<id>[/revision/<rev>]      commit, card, files with size, git oid and LFS sha256
GET  /api/…/<id>/tree/<rev>[/<folder>]                 files of a folder, or all with recursive=true
POST /api/…/<id>/paths-info/<rev>                      some files
HEAD, GET [/datasets]/<id>/resolve/<rev>/<file>        ETag, X-Repo-Commit; a redirect for what lies in LFS
HEAD, GET /cdn/<sha256>                                content, whole or a range
"""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from dataclasses import dataclass, field
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Kind = Literal["models", "datasets"]
LFS = (".safetensors", ".bin", ".parquet", ".tar", ".gz", ".spm", ".model", ".onnx")
_INFO = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/revision/([^/]+))?")
_TREE = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)/tree/([^/]+)/?(.*)")
_PATHS = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)/paths-info/([^/]+)")
_RESOLVE = re.compile(r"(/datasets)?/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_CDN = re.compile(r"/cdn/([0-9a-f]{64})")


@dataclass(frozen=True)
class File:
    """One file of one commit."""

    content: bytes
    lfs: bool

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def oid(self) -> str:
        """As git names a blob."""
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.oid

    def described(self, name: str) -> dict[str, Any]:
        """As a tree lists it."""
        lfs = {"oid": self.sha256, "size": len(self.content), "pointerSize": 134}
        entry = {"type": "file", "path": name, "size": len(self.content), "oid": self.oid}
        return entry | ({"lfs": lfs} if self.lfs else {})

    def sibling(self, name: str, *, blobs: bool) -> dict[str, Any]:
        """As a repository's information lists it."""
        if not blobs:
            return {"rfilename": name}
        lfs = {"sha256": self.sha256, "size": len(self.content), "pointerSize": 134}
        entry = {"rfilename": name, "size": len(self.content), "blobId": self.oid}
        return entry | ({"lfs": lfs} if self.lfs else {})


@dataclass
class Repository:
    """A repository with its commits.

    Attributes:
        commits: Commit → files by path.
        refs: Branch or tag → commit.
        card: The front matter of its README, as the Hub parses it.
        gated: Whether its terms must be accepted first.
    """

    commits: dict[str, dict[str, File]]
    refs: dict[str, str]
    card: dict[str, Any] = field(default_factory=dict)
    gated: bool = False


@dataclass
class Fault:
    """What goes wrong with requests whose line (`GET /path`) a pattern fits.

    Attributes:
        status: The answer, if it is an error.
        times: How often; None for always.
        headers: Of an error's answer.
        seconds: Waited before the answer.
        cut: Bytes of the body after which the connection breaks.
        corrupt: Whether bytes of the body are exchanged.
    """

    pattern: str
    status: int | None = None
    times: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: int | None = None
    corrupt: bool = False

    def fits(self, line: str) -> bool:
        return self.times != 0 and re.search(self.pattern, line) is not None


class StandInHub:
    """The server, its repositories and its faults.

    Attributes:
        log: Every request, as `METHOD path`.
        sent: Bytes of files that were sent, by `METHOD path`.
    """

    def __init__(self) -> None:
        self.repositories: dict[tuple[Kind, str], Repository] = {}
        self.blobs: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.log: list[str] = []
        self.sent: dict[str, int] = {}
        self._server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, port: int = 0) -> None:
        """Listen, on the port given or any free one."""
        handler = type("Handler", (_Handler,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self) -> None:
        """Refuse connections from now on; those that are open are answered as by a machine that is going down."""
        if self._server is not None:
            self.faults.insert(0, Fault(".", cut=0))
            self._server.shutdown()
            self._server.server_close()
            self._server = None

    def add(
        self,
        kind: Kind,
        name: str,
        files: Mapping[str, bytes],
        commit: str | None = None,
        *,
        card: Mapping[str, Any] | None = None,
        gated: bool = False,
        main: bool = True,
    ) -> str:
        """A commit of a repository, by default the newest of `main`; gives its id."""
        made = {path: File(content, path.endswith(LFS)) for path, content in files.items()}
        self.blobs |= {file.sha256: file.content for file in made.values() if file.lfs}
        listing = "".join(f"{path} {file.oid}\n" for path, file in sorted(made.items()))
        commit = commit or hashlib.sha1(listing.encode()).hexdigest()
        repository = self.repositories.setdefault((kind, name), Repository({}, {}))
        repository.commits[commit] = made
        repository.gated = gated
        repository.card |= card or {}
        if main:
            repository.refs["main"] = commit
        return commit

    def fail(self, pattern: str, status: int | None = None, **how: Any) -> Fault:
        """Let requests fail; the fault can be taken out of `faults` again."""
        fault = Fault(pattern, status, **how)
        self.faults.insert(0, fault)
        return fault

    def requests(self, pattern: str = "") -> list[str]:
        """Requests so far that a pattern fits."""
        return [line for line in self.log if re.search(pattern, line)]


class _Handler(BaseHTTPRequestHandler):
    hub: StandInHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: Any) -> None:
        """Nothing on the terminal."""

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        line = f"{self.command} {unquote(self.path)}"
        self.hub.log.append(line)
        self._fault = next((fault for fault in self.hub.faults if fault.fits(line)), None)
        if self._fault is not None and self._fault.times is not None:
            self._fault.times -= 1
        if self._fault is not None:
            time.sleep(self._fault.seconds)
            if self._fault.status is not None:
                self._error(self._fault.status, "", "the stand-in was told to fail", self._fault.headers)
                return
        address = urlsplit(self.path)
        path, query = unquote(address.path), {name: values[0] for name, values in parse_qs(address.query).items()}
        if found := _CDN.fullmatch(path):
            self._content(File(self.hub.blobs[found[1]], lfs=True), {})
        elif found := _TREE.fullmatch(path):
            self._tree(found, recursive=query.get("recursive", "").lower() == "true")
        elif found := _PATHS.fullmatch(path):
            self._paths(found, body)
        elif found := _RESOLVE.fullmatch(path):
            self._resolve(found)
        elif found := _INFO.fullmatch(path):
            self._info(found, blobs=query.get("blobs", "").lower() == "true")
        else:
            self._error(404, "", f"no such page {path}")

    def _commit(self, kind: Kind, name: str, revision: str, *, content: bool) -> tuple[str, dict[str, File]] | None:
        """The commit that is meant and its files; None if an error was sent."""
        repository = self.hub.repositories.get((kind, name))
        if repository is None:  # the Hub does not tell the absent from the private
            self._error(401, "RepoNotFound", "Invalid username or password.")
            return None
        if repository.gated and content:
            allowed = self.headers.get("Authorization") is not None
            self._error(
                403 if allowed else 401, "GatedRepo", f"Access to {name} is restricted. Visit the page to ask for it."
            )
            return None
        commit = repository.refs.get(revision, revision)
        if commit not in repository.commits:
            self._error(404, "RevisionNotFound", f"Invalid rev id: {revision}")
            return None
        return commit, repository.commits[commit]

    def _info(self, found: re.Match[str], *, blobs: bool) -> None:
        kind: Any = found[1]
        meant = self._commit(kind, found[2], found[3] or "main", content=False)
        if meant is None:
            return
        commit, files = meant
        repository = self.hub.repositories[kind, found[2]]
        information = {
            "id": found[2],
            "sha": commit,
            "private": False,
            "gated": "auto" if repository.gated else False,
            "disabled": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "lastModified": "2026-01-01T00:00:00.000Z",
            "siblings": [file.sibling(name, blobs=blobs) for name, file in sorted(files.items())],
        }
        self._json(information | ({"cardData": repository.card} if repository.card else {}))

    def _tree(self, found: re.Match[str], *, recursive: bool) -> None:
        meant = self._commit(found[1], found[2], found[3], content=True)  # type: ignore[arg-type]
        if meant is None:
            return
        prefix = f"{found[4].rstrip('/')}/" if found[4] else ""
        inside = {name: file for name, file in meant[1].items() if name.startswith(prefix)}
        entries = [
            file.described(name)
            for name, file in sorted(inside.items())
            if recursive or "/" not in name.removeprefix(prefix)
        ]
        folders = sorted({prefix + name.removeprefix(prefix).split("/")[0] for name in inside} - set(inside))
        self._json([{"type": "directory", "path": name, "oid": "0" * 40, "size": 0} for name in folders] + entries)

    def _paths(self, found: re.Match[str], body: bytes) -> None:
        meant = self._commit(found[1], found[2], found[3], content=True)  # type: ignore[arg-type]
        if meant is not None:
            wanted = json.loads(body)["paths"]
            self._json([meant[1][name].described(name) for name in wanted if name in meant[1]])

    def _resolve(self, found: re.Match[str]) -> None:
        kind: Kind = "datasets" if found[1] else "models"
        meant = self._commit(kind, found[2], found[3], content=True)
        if meant is None:
            return
        commit, files = meant
        file = files.get(found[4])
        if file is None:
            self._error(404, "EntryNotFound", f"Entry {found[4]} not found", {"X-Repo-Commit": commit})
        elif file.lfs:
            linked = {
                "X-Repo-Commit": commit,
                "X-Linked-Size": str(len(file.content)),
                "X-Linked-Etag": f'"{file.sha256}"',
                # Another host than the Hub, as in life.
                "Location": f"http://localhost:{self.hub.port}/cdn/{file.sha256}",
            }
            self._send(302, linked, b"")
        else:
            self._content(file, {"X-Repo-Commit": commit})

    def _content(self, file: File, headers: Mapping[str, str]) -> None:
        """All of it, or the range that is asked for."""
        size, start, end = len(file.content), 0, len(file.content)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked:
            start, end = int(asked[1]), min(int(asked[2]) + 1 if asked[2] else size, size)
            headers = {**headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"}
        headers = {**headers, "ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
        self._send(206 if asked else 200, headers, file.content[start:end])

    def _json(self, value: object) -> None:
        self._send(200, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def _error(self, status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> None:
        named = {"X-Error-Code": code, "X-Error-Message": message} if code else {}
        body = json.dumps({"error": message}).encode()
        self._send(status, {**named, "Content-Type": "application/json", **(headers or {})}, body)

    def _send(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        fault = self._fault
        if fault is not None and fault.corrupt and body and status < 300:
            body = bytes([body[0] ^ 255]) + body[1:]
        length = len(body)
        if fault is not None and fault.cut is not None:
            body, self.close_connection = body[: fault.cut], True
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(length))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
            line = f"{self.command} {urlsplit(self.path).path}"
            self.hub.sent[line] = self.hub.sent.get(line, 0) + len(body)


def served(hub: StandInHub) -> Iterator[StandInHub]:
    """A hub that is stopped in the end."""
    try:
        yield hub
    finally:
        hub.stop()
