"""The Prefect server of a command: the one in PREFECT_API_URL, or else an embedded server that the command starts."""
