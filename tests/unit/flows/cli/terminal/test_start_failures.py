"""A failed command says whether running it again helps."""

import httpx
import pytest

from bsl.flows.cli.terminal.start import failed
from bsl.models.errors import ModelError
from bsl.storage.errors import HubSilentError, SourceError, StoreReadError

ANSWER = httpx.Response(500, request=httpx.Request("POST", "http://server/api/artifacts/"))


def refused() -> httpx.HTTPStatusError:
    with pytest.raises(httpx.HTTPStatusError) as raised:
        ANSWER.raise_for_status()
    return raised.value


def test_prefect_server_error_prints_message_and_resume_hint(capsys):
    assert failed(refused()) == 1
    assert capsys.readouterr().err == (
        "bsl: the Prefect server failed: Server error '500 Internal Server Error' for url 'http://server/api/artifacts/'\n"
        "Finished stages are cached; run the command again to resume.\n"
    )


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (SourceError("no source"), "bsl: no source\nFinished stages are cached.\n"),
        (
            HubSilentError("no answer", "wait"),
            "bsl: no answer. Wait.\nFinished stages are cached; run the command again to resume.\n",
        ),
        (StoreReadError("cut off"), "bsl: cut off\nFinished stages are cached; run the command again to resume.\n"),
        (ModelError("no model"), "bsl: no model\nFinished stages are cached.\n"),
        (
            KeyError("x"),
            "bsl: KeyError: 'x'\nFinished stages are cached.\nAdd --debug for the traceback.\n",
        ),
    ],
)
def test_failed_prints_error_message_and_rerun_hint(capsys, error, told):
    assert failed(error) == 1
    assert capsys.readouterr().err == told
