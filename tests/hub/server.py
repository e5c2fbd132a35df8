"""A Hub on loopback: repositories with commits, and faults on demand; `routes.py` answers the requests."""

import hashlib
import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from http.server import ThreadingHTTPServer
from typing import Any, Literal

from tests.hub.routes import Routes
from tests.hub.uploads import BIG

Kind = Literal["models", "datasets"]


@dataclass(frozen=True)
class File:
    """One file of one commit."""

    content: bytes
    lfs: bool

    @cached_property
    def sha256(self):
        return hashlib.sha256(self.content).hexdigest()

    @cached_property
    def oid(self):
        """Git's id of the blob."""
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()

    @property
    def etag(self):
        return self.sha256 if self.lfs else self.oid

    def described(self, name):
        lfs = {"oid": self.sha256, "size": len(self.content), "pointerSize": 134}
        entry = {"type": "file", "path": name, "size": len(self.content), "oid": self.oid}
        return entry | ({"lfs": lfs} if self.lfs else {})

    def sibling(self, name, *, blobs):
        if not blobs:
            return {"rfilename": name}
        lfs = {"sha256": self.sha256, "size": len(self.content), "pointerSize": 134}
        entry = {"rfilename": name, "size": len(self.content), "blobId": self.oid}
        return entry | ({"lfs": lfs} if self.lfs else {})


@dataclass
class Repository:
    """A repository with its commits."""

    commits: dict[str, dict[str, File]]
    refs: dict[str, str]
    card: dict[str, Any] = field(default_factory=dict)
    gated: bool = False
    private: bool = False


@dataclass
class Fault:
    """Fault of the requests whose line (`GET /path`) matches a pattern."""

    pattern: str
    status: int | None = None
    times: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0
    cut: int | None = None
    corrupt: bool = False

    def fits(self, line):
        return self.times != 0 and re.search(self.pattern, line) is not None


class StandInHub:
    """The server, its repositories and its faults."""

    def __init__(self) -> None:
        self.repositories: dict[tuple[Kind, str], Repository] = {}
        self.blobs: dict[str, File] = {}
        self.uploaded: dict[str, bytes] = {}
        self.faults: list[Fault] = []
        self.log: list[str] = []
        self.sent: dict[str, int] = {}
        self._server: ThreadingHTTPServer | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self, port: int = 0) -> None:
        handler = type("Handler", (Routes,), {"hub": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.port = int(self._server.server_address[1])
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    def stop(self):
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
        private: bool = False,
        main: bool = True,
    ) -> str:
        """Add a commit to a repository, by default the newest of `main`, and return its id."""
        readme = {"README.md": f"---\n{json.dumps(card)}\n---\n".encode()} if card else {}  # JSON is YAML
        made = {path: File(content, path.endswith(BIG)) for path, content in {**files, **readme}.items()}
        self.blobs |= {file.sha256: file for file in made.values() if file.lfs}
        listing = "".join(f"{path} {file.oid}\n" for path, file in sorted(made.items()))
        commit = commit or hashlib.sha1(listing.encode()).hexdigest()
        repository = self.repositories.setdefault((kind, name), Repository({}, {}))
        repository.commits[commit] = made
        repository.gated, repository.private = gated, private
        repository.card |= card or {}
        if main:
            repository.refs["main"] = commit
        return commit

    def fail(self, pattern, status=None, **how):
        """Make matching requests fail until the returned fault is removed from `faults`."""
        fault = Fault(pattern, status, **how)
        self.faults.insert(0, fault)
        return fault

    def requests(self, pattern=""):
        return [line for line in self.log if re.search(pattern, line)]


def served(hub):
    try:
        yield hub
    finally:
        hub.stop()
