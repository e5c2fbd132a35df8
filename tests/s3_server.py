"""An S3 endpoint on loopback (moto), set in the environment while it serves."""

import threading
from contextlib import contextmanager

import pytest
from s3fs import S3FileSystem
from werkzeug.serving import make_server

from bsl.storage.artifacts.store import Store


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
