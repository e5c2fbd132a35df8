"""Commands about this machine: `bsl doctor RECIPE`, `bsl bench gpu|cpu`, `bsl ui`, `bsl completion`."""

from __future__ import annotations

import os
import re
import socket
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from flows.cli.terminal.log_lines import be_quiet
from flows.cli.terminal.options import Changes, Debug, Output, Site
from flows.cli.terminal.overrides import configured
from flows.cli.terminal.printing import print_json, print_line, print_table
from flows.prefect_server.server import check_server, use_server
from flows.run_context import run_context_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tasks.diagnostics.benchmark.results import Check as BenchCheck
    from tasks.diagnostics.benchmark.results import Rate
    from tasks.diagnostics.doctor import Check


_LAST_PORT: Final = 65535
_DIGEST: Final = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b")  # only the first 12 digits are shown


def doctor(
    recipe: Annotated[str, Parameter(help="name of a recipe, as in `bsl recipes`")] = "tiny",
    /,
    *,
    settings: Changes = (),
    place: Site = Site(),
    output: Output = Output(),
) -> int:
    """Check devices, disk, store, server, models and data of a recipe."""
    server = use_server()
    if not output.debug:
        be_quiet()
    site = run_context_of(place.given)
    config = configured(recipe, settings)
    from tasks.diagnostics.doctor import examine

    checks = [*examine(site, config), *_server_checks(server)]
    if output.json:
        print_json([asdict(check) for check in checks])
    else:
        rows = [
            {"": check.verdict, "subject": check.subject, "found": _DIGEST.sub(r"\1…", check.found)} for check in checks
        ]
        print_table(f"recipe {recipe}", rows)
        for remedy in dict.fromkeys(check.remedy for check in checks if check.remedy):
            print_line(f"• {remedy}")
    return 1 if any(check.verdict == "NO" for check in checks) else 0


def _server_checks(server: str) -> list[Check]:
    """Check that the server of PREFECT_API_URL answers and that its work pool has a worker."""
    import prefect

    from tasks.diagnostics.doctor import Check, look_at_pool

    installed = f"prefect {prefect.__version__}"
    address = os.environ.get("PREFECT_API_URL")
    if not address:
        return [Check("server", "ok", f"{installed}, {server}")]
    try:
        version = check_server(address)
    except OSError as error:
        return [Check("server", "NO", str(error))]
    return [Check("server", "ok", f"{server}, prefect {version}; installed: {installed}"), look_at_pool()]


def bench(
    what: Annotated[
        Literal["gpu", "cpu"], Parameter(help="device to measure; at most 10 minutes for a GPU, 5 for a CPU")
    ],
    /,
    *,
    device: Annotated[str, Parameter(help="GPU to measure: cuda, cuda:1 …")] = "cuda",
    quick: Annotated[bool, Parameter(help="use small shapes: the checks are valid, the rates are not")] = False,
    output: Output = Output(),
) -> int:
    """Check and measure a GPU or a processor: parity, rates, share of its limits."""
    from tasks.diagnostics.benchmark.bench import bench as measured
    from tasks.diagnostics.benchmark.bench import described

    chosen = "cpu" if what == "cpu" else device
    return show_rows(described(chosen), measured(chosen, quick=quick), json=output.json)


def show_rows(title: str, rows: Iterable[BenchCheck | Rate], *, json: bool) -> int:
    """Print each row when it is measured, and the tables at the end or after an error; return 1 if a check failed."""
    from tasks.diagnostics.benchmark.results import Check as BenchCheck
    from tasks.diagnostics.benchmark.results import markdown, spelled

    found: list[BenchCheck | Rate] = []
    try:
        for row in rows:
            found.append(row)
            print(spelled(row), file=sys.stderr, flush=True)
    finally:
        if json:
            print_json([asdict(row) for row in found])
        else:
            print(markdown(title, found), flush=True)
    return 1 if any(isinstance(row, BenchCheck) and row.verdict == "MISSED" for row in found) else 0


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"], Parameter(help='for bash: eval "$(bsl completion bash)" in ~/.bashrc')
    ],
    /,
    *,
    debug: Debug = False,  # noqa: ARG001 - every command has it
) -> None:
    """Print the script that completes commands and options in your shell."""
    from flows.cli.main import app

    print(app.generate_completion(shell=shell))


def ui(
    *,
    port: Annotated[int, Parameter(help="port on this machine")] = 4200,
    debug: Debug = False,  # noqa: ARG001 - every command has it
) -> None:
    """Serve the Prefect UI with the runs of this folder."""
    from flows.prefect_server.server import is_alone, named_server, use_server

    server = use_server()
    if address := named_server():
        print(f"{server} has its own UI: {address.removesuffix('/api')}")
        return
    _check_port(port)
    is_alone(inherited=True)  # with this lock, no other command marks its runs as Crashed
    url = f"http://127.0.0.1:{port}"
    os.environ["PREFECT_SERVER_UI_API_URL"] = f"{url}/api"  # else the page calls the default port
    print(f"{server}\nruns and artifacts: {url}   (stop with Ctrl-C)", flush=True)
    prefect = str(Path(sys.executable).with_name("prefect"))
    os.execv(prefect, [prefect, "server", "start", "--host", "127.0.0.1", "--port", str(port)])


def _check_port(port: int) -> None:
    """Check that a server can listen at a port of this machine.

    Raises:
        ValueError: The port is no port number, in use, or not permitted.
    """
    if not 1 <= port <= _LAST_PORT:
        raise ValueError(f"--port {port}: expected a number from 1 to {_LAST_PORT}")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the server does: a port is free after its end
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise ValueError(f"--port {port}: {error.strerror}. Choose another port, such as 4201") from error
