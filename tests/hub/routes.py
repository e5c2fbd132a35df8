"""Answer requests to the Hub on loopback: the part of the Hugging Face Hub's protocol that its clients use.

GET  /api/{models,datasets}/<id>[/revision/<rev>]      commit, card, files with size, git oid and LFS sha256
GET  /api/…/<id>/tree/<rev>[/<folder>]                 files of a folder, or all with recursive=true
POST /api/…/<id>/paths-info/<rev>                      some files
HEAD, GET [/datasets]/<id>/resolve/<rev>/<file>        ETag, X-Repo-Commit; a redirect for a file in LFS
HEAD, GET /cdn/<sha256>                                content, whole or a range
"""

from __future__ import annotations

import json
import re
import time
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.hub.uploads import written

if TYPE_CHECKING:
    from tests.hub.server import Kind, StandInHub

_INFO = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/revision/([^/]+))?")
_TREE = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)/tree/([^/]+)/?(.*)")
_PATHS = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)/paths-info/([^/]+)")
_RESOLVE = re.compile(r"(/datasets)?/([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_CDN = re.compile(r"/cdn/([0-9a-f]{64})")


class Routes(BaseHTTPRequestHandler):
    hub: StandInHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Log nothing."""

    def _answer(self):
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
        if written(self, path, body):
            return
        if found := _CDN.fullmatch(path):
            self._content(self.hub.blobs[found[1]], {})
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

    do_HEAD = do_GET = do_POST = do_PUT = _answer

    def _commit(self, kind, name, revision, *, content):
        """Return the requested commit and its files; None if an error was sent."""
        repository = self.hub.repositories.get((kind, name))
        if repository is None or (
            repository.private and not self.headers.get("Authorization")
        ):  # the Hub answers alike for missing and private repositories
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

    def _info(self, found, *, blobs):
        kind: Any = found[1]
        meant = self._commit(kind, found[2], found[3] or "main", content=False)
        if meant is None:
            return
        commit, files = meant
        repository = self.hub.repositories[kind, found[2]]
        information = {
            "id": found[2],
            "sha": commit,
            "private": repository.private,
            "gated": "auto" if repository.gated else False,
            "disabled": False,
            "tags": [],
            "downloads": 0,
            "likes": 0,
            "lastModified": "2026-01-01T00:00:00.000Z",
            "siblings": [file.sibling(name, blobs=blobs) for name, file in sorted(files.items())],
        }
        self._json(information | ({"cardData": repository.card} if repository.card else {}))

    def _tree(self, found, *, recursive):
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

    def _paths(self, found, body):
        meant = self._commit(found[1], found[2], found[3], content=True)  # type: ignore[arg-type]
        if meant is not None:
            wanted = json.loads(body)["paths"]
            self._json([meant[1][name].described(name) for name in wanted if name in meant[1]])

    def _resolve(self, found):
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
                # Another host than the Hub's, as on the real Hub.
                "Location": f"http://localhost:{self.hub.port}/cdn/{file.sha256}",
            }
            self._send(302, linked, b"")
        else:
            self._content(file, {"X-Repo-Commit": commit})

    def _content(self, file, headers):
        """Send the whole file, or the requested range."""
        size, start, end = len(file.content), 0, len(file.content)
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if asked:
            start, end = int(asked[1]), min(int(asked[2]) + 1 if asked[2] else size, size)
            headers = {**headers, "Content-Range": f"bytes {start}-{end - 1}/{size}"}
        headers = {**headers, "ETag": f'"{file.etag}"', "Accept-Ranges": "bytes"}
        self._send(206 if asked else 200, headers, file.content[start:end])

    def _json(self, value):
        self._send(200, {"Content-Type": "application/json"}, json.dumps(value).encode())

    def _error(self, status, code, message, headers=None):
        named = {"X-Error-Code": code, "X-Error-Message": message} if code else {}
        body = json.dumps({"error": message}).encode()
        self._send(status, {**named, "Content-Type": "application/json", **(headers or {})}, body)

    def _send(self, status, headers, body):
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
