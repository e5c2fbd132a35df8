"""Redirect the Hub clients of this process to the stand-in Hub."""

from types import SimpleNamespace

import datasets
from huggingface_hub import constants, file_download
from huggingface_hub.utils import close_session

from bsl.storage.hub import faults, repositories


def use(hub, home, monkeypatch):
    """Set what HF_ENDPOINT and HF_HOME would set if the clients were imported later; shorten the clients' waits."""
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(home / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 2)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", hub.url)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", home / "datasets")
    monkeypatch.setattr(file_download, "time", SimpleNamespace(sleep=lambda _: None))  # a second before it asks again
    monkeypatch.setattr(faults, "SECONDS_BETWEEN_TRIES", (0.01, 0.02, 0.03))
    monkeypatch.setattr(faults, "SECONDS_TO_CONNECT", (0.01, 0.01))
    monkeypatch.setattr(repositories, "SECONDS_TO_ANSWER", 2.0)
    monkeypatch.setattr(faults, "_silent", {})
    close_session()  # closes connections of an earlier test


def offline(monkeypatch):
    """Set what HF_HUB_OFFLINE=1 would set."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    close_session()
