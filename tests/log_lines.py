"""What log lines in JSON say of the artifacts that were published."""

import json

JSON_LINES = {"PREFECT_LOGGING_HANDLERS_CONSOLE_FORMATTER": "json"}


def published(text: str) -> dict[str, tuple[str, str]]:
    """Artifact → the run and stage that its line names; other programs' lines may stand between."""
    lines = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
    told = [line for line in lines if line.get("message", "").startswith("published ")]
    assert all(line["artifact"].startswith(line["message"].removeprefix("published ")) for line in told)
    return {line["artifact"]: (line["run"], line["stage"]) for line in told}
