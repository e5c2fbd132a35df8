"""`bsl ui`: the Prefect UI over the runs of this folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from flows.cli.terminal.options import Debug


def ui(
    *,
    port: Annotated[int, Parameter(help="port on this machine")] = 4200,
    debug: Debug = False,  # noqa: ARG001 - every verb has it
) -> int:
    """Serve the Prefect UI over the runs of this folder."""
    from flows.prefect_server.server import is_alone, named_server, use_server

    server = use_server()
    if address := named_server():
        print(f"{server} serves its own UI: {address.removesuffix('/api')}")
        return 0
    is_alone(inherited=True)  # so that no other command takes its runs for dead
    url = f"http://127.0.0.1:{port}"
    os.environ["PREFECT_SERVER_UI_API_URL"] = f"{url}/api"  # else the page asks the default port
    print(f"{server}\nruns and artifacts: {url}   (stop with Ctrl-C)", flush=True)
    prefect = str(Path(sys.executable).with_name("prefect"))
    os.execv(prefect, [prefect, "server", "start", "--host", "127.0.0.1", "--port", str(port)])
