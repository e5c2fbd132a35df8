"""Fixtures of the tests of assets/: the Prefect server of the flow tests."""

from tests.flows.conftest import migrated, prefect_server

__all__ = ["migrated", "prefect_server"]
