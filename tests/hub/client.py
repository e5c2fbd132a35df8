"""Turns the Hub's clients of this process to the stand-in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from huggingface_hub import constants
from huggingface_hub.utils import close_session

from storage import hub_client

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from tests.hub.server import StandInHub


def use(hub: StandInHub, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As HF_ENDPOINT and HF_HOME would, had they been set before the client was imported; waits become short."""
    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(cache))
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_PROGRESS_BARS", True)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 2)
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(hub_client, "SECONDS_BETWEEN_TRIES", (0.01, 0.02, 0.03))
    monkeypatch.setattr(hub_client, "SECONDS_TO_CONNECT", (0.01, 0.01))
    monkeypatch.setattr(hub_client, "SECONDS_TO_ANSWER", 2.0)
    monkeypatch.setattr(hub_client, "_silent", {})
    close_session()  # connections that an earlier test left open


def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """As HF_HUB_OFFLINE=1."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    close_session()
