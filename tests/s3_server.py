"""An S3 endpoint on loopback (moto), set in the environment while it serves; it can break requests."""

import socket
import threading
from contextlib import contextmanager

import pytest
from s3fs import S3FileSystem
from werkzeug.serving import make_server

from bsl.storage.artifacts.store import Store


class Moto:
    """moto's S3, which records the files that it sends, and breaks a request or all of them."""

    def __init__(self):
        from moto.server import DomainDispatcherApplication, create_backend_app  # slow to import

        self._inner = DomainDispatcherApplication(create_backend_app)
        self.sent: list[str] = []
        self.fail(-1, "")

    def fail(self, number, fault):
        """Break the request with this number from now on, or every request if there is no number."""
        self.seen, self.met, self._number, self._fault = 0, False, number, fault

    def files(self, act, *arguments):
        """Return the result of a call and the files that it reads, without listings."""
        self.sent.clear()
        result = act(*arguments)
        return result, {name for name in self.sent if "." in name}

    def __call__(self, environment, start):
        self.seen += 1
        if environment["REQUEST_METHOD"] == "GET":
            self.sent.append(environment["PATH_INFO"].rpartition("/")[2])
        if self._number is not None and self.seen - 1 != self._number:
            return self._inner(environment, start)
        listing = environment["REQUEST_METHOD"] == "GET" and environment["PATH_INFO"].strip("/").count("/") == 0
        if listing and self._fault in {"404", "cut", "other bytes"}:
            return self._inner(environment, start)  # no client can handle a store that lists its content wrongly
        self.met = True
        if self._fault == "closed":
            environment["werkzeug.socket"].shutdown(socket.SHUT_RDWR)
            return [b""]
        if self._fault.startswith(("4", "5")):
            if self._fault.endswith("done"):
                b"".join(self._inner(environment, lambda *_: None))
            start(f"{self._fault[:3]} Fault", [("Content-Length", "0")])
            return [b""]
        said: list = []
        content = b"".join(self._inner(environment, lambda *words: said.extend(words)))
        start(*said[:2])
        half = len(content) // 2
        return [content[:half] if self._fault == "cut" else content[:half] + bytes(b ^ 1 for b in content[half:])]


@contextmanager
def s3_served(application, bucket):
    """Serve an empty bucket and yield its URL."""
    server = make_server("127.0.0.1", 0, application, threaded=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("AWS_ENDPOINT_URL_S3", f"http://127.0.0.1:{server.port}")
        environment.setenv("AWS_ACCESS_KEY_ID", "test")
        environment.setenv("AWS_SECRET_ACCESS_KEY", "test")
        environment.setenv("AWS_DEFAULT_REGION", "us-east-1")
        S3FileSystem.clear_instance_cache()  # drops connections to another server
        files = Store(f"s3://{bucket}").fs
        if files.exists(bucket):  # moto's buckets are global to the process: another test file may have left this one
            files.rm(bucket, recursive=True)
        files.mkdir(bucket)
        yield f"s3://{bucket}"
    server.shutdown()
    S3FileSystem.clear_instance_cache()
