"""The Prefect server of a command: PREFECT_API_URL, else an embedded server that the command starts."""
