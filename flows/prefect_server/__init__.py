"""The Prefect server of a command.

PREFECT_API_URL names it; without one, the command starts a server of its own.
"""
