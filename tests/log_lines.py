"""Published artifacts in JSON log lines."""

import json

JSON_LINES = {"PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER": "json"}


def published(text: str) -> dict[str, tuple[str, str]]:
    """Return run and stage by artifact, from the lines of published artifacts; all other lines are ignored."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    told = [line for line in lines if line.get("message", "").startswith("published ")]
    assert all(line["artifact"].startswith(line["message"].removeprefix("published ")) for line in told)
    return {line["artifact"]: (line["run"], line["stage"]) for line in told}
