"""Commands about this machine: `bsl doctor RECIPE`, `bsl ui`, `bsl completion`."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter
from cyclopts.validators import Number

from bsl.flows.cli.terminal.log_lines import be_quiet, leave_to_prefect, printable
from bsl.flows.cli.terminal.options import NOT_GIVEN, Changes, Debug, Output, Site
from bsl.flows.cli.terminal.overrides import configured
from bsl.flows.cli.terminal.printing import print_line, print_rows

if TYPE_CHECKING:
    from bsl.tasks.diagnostics.finding import Finding


_DIGEST: Final = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,}\b")  # only the first 12 digits are shown
_REGISTERED: Final = {  # lines after cyclopts' script, which in bash and zsh completes no file names but those of paths
    "bash": "complete -o default -F _bsl bsl",
    "zsh": """\
_bsl_or_files() {
  local insert=$compstate[insert]  # a message, in place of matches, empties it
  _cyclopts_bsl "$@"
  (( compstate[nmatches] )) || { compstate[insert]=$insert; _files }
}
compdef _bsl_or_files bsl""",
}


def doctor(
    recipe: Annotated[str, Parameter(help="name of a recipe, as in `bsl recipes`")] = "tiny",
    /,
    *,
    settings: Changes = (),
    place: Site = NOT_GIVEN,
    output: Output = Output(),
) -> int:
    """Check devices, disk, store, server, models and data of a recipe."""
    from bsl.flows.prefect_server.server import use_server
    from bsl.flows.run_context import run_context_of

    server = use_server()
    if output.debug:
        leave_to_prefect()
    else:
        be_quiet()
    site = run_context_of(place)
    config = configured(recipe, settings)
    from bsl.tasks.diagnostics.doctor import examine
    from bsl.tasks.diagnostics.finding import exit_code

    checks = [*examine(site, config), *_server_checks(server)]
    rows = [{name: _DIGEST.sub(r"\1…", cell) for name, cell in check.cells.items()} for check in checks]
    print_rows(f"recipe {recipe}", rows, output, [asdict(check) for check in checks])
    for remedy in dict.fromkeys(check.remedy for check in checks if check.remedy and not output.json):
        print_line(f"• {remedy}")
    return exit_code(checks)


def _server_checks(server: str) -> list[Finding]:
    """Check that the server of PREFECT_API_URL answers and that its work pool has a worker."""
    import prefect

    from bsl.flows.prefect_server.server import check_server
    from bsl.tasks.diagnostics.doctor import look_at_pool
    from bsl.tasks.diagnostics.finding import Finding

    installed = f"prefect {prefect.__version__}"
    address = os.environ.get("PREFECT_API_URL")
    if not address:
        return [Finding("server", "ok", f"{installed}, {server}")]
    try:
        version = check_server(address)
    except OSError as error:
        return [Finding("server", "NO", str(error))]
    return [Finding("server", "ok", f"{server}, prefect {version}; installed: {installed}"), look_at_pool()]


def completion(
    shell: Annotated[
        Literal["bash", "zsh", "fish"],
        Parameter(help='for bash: eval "$(bsl completion bash)" in ~/.bashrc; likewise for zsh, after compinit'),
    ],
    /,
    *,
    debug: Debug = False,  # noqa: ARG001 - every command has it
) -> None:
    """Print the script that completes commands and options in your shell."""
    from bsl.flows.cli.main import app

    print(app.generate_completion(shell=shell))
    print(printable(_REGISTERED.get(shell, "")))


def ui(
    *,
    port: Annotated[int, Parameter(help="port on this machine", validator=Number(gte=1, lte=65535))] = 4200,
    debug: Debug = False,  # noqa: ARG001 - every command has it
) -> None:
    """Serve the Prefect UI with the runs of this folder."""
    from bsl.flows.prefect_server.server import check_database_folder, is_alone, named_server, program, use_server

    server = use_server()
    if address := named_server():
        print(printable(f"{server} has its own UI: {address.removesuffix('/api')}"))
        return
    check_database_folder()
    listening = _listen(port)
    is_alone(inherited=True)  # with this lock, no other command marks its runs as Crashed
    url = f"http://127.0.0.1:{port}"
    os.environ["PREFECT_SERVER_UI_API_URL"] = f"{url}/api"  # else the page calls the default port
    print(printable(f"{server}: starting"), flush=True)
    listening.set_inheritable(True)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])  # Ctrl-C waits until the program can end quietly
    os.execv(sys.executable, program(listening, "--ui", url))


def _listen(port: int) -> socket.socket:
    """Return a listening socket at a port of this machine.

    Raises:
        ValueError: The port is in use, or not permitted.
    """
    from bsl.flows.prefect_server.server import listen

    try:
        return listen(port)
    except OSError as error:
        raise ValueError(f"--port {port}: {error.strerror}. Choose another port, such as 4201") from error
