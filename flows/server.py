"""Which Prefect server a command talks to: the one that PREFECT_API_URL names, else one of this folder's own.

Nothing here imports Prefect: its settings are read once, on import, so they must stand in the environment before.
"""

import os
from pathlib import Path

HOME = Path(".bsl")
_OWN_SERVER = {
    "PREFECT_SERVER_ALLOW_EPHEMERAL_MODE": "true",
    "PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS": "120",  # a laptop's first start takes over 20
    "PREFECT_SERVER_ANALYTICS_ENABLED": "false",
    "PREFECT_SERVER_UI_SHOW_PROMOTIONAL_CONTENT": "false",
    "PREFECT_LOGGING_TO_API_WHEN_MISSING_FLOW": "ignore",
    "DO_NOT_TRACK": "1",
}


def use_server(home: Path = HOME) -> str:
    """Settle the Prefect settings of this process; what the environment already says stays.

    Args:
        home: folder for the server's database, shared by `bsl run` and `bsl ui`.

    Returns:
        A sentence that says which server it is.
    """
    address = os.environ.get("PREFECT_API_URL")
    if address:
        return f"Prefect server {address}"
    database = home.absolute() / "prefect"
    database.mkdir(parents=True, exist_ok=True)  # Prefect itself makes only the last folder
    os.environ.setdefault("PREFECT_HOME", str(database))
    for name, value in _OWN_SERVER.items():
        os.environ.setdefault(name, value)
    return f"embedded Prefect server, database in {os.environ['PREFECT_HOME']}"
