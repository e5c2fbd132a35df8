"""An errand as a flow run of its own, for runner `pool`: deployment `bsl-errand/any`."""

from __future__ import annotations

from typing import Any

from prefect import flow
from prefect.runtime import flow_run

from flows.site import site_of
from tasks.site import Site
from tasks.stage.logs import show_logs
from tasks.stage.spread import Errand, run_errand


def _run_name() -> str:
    return f"{flow_run.parameters['sent']['title']}-{str(flow_run.id)[:8]}"


@flow(name="bsl-errand", flow_run_name=_run_name)
def do_errand(sent: dict[str, Any], site: Site | None = None) -> None:
    """Make one shard, fold or seed of another run, which waits for it.

    Args:
        sent: What to do, as that run says it.
        site: What it shares with its workers; the rest by this worker's environment.
    """
    show_logs()
    run_errand(Errand.model_validate(sent), site_of(site))
