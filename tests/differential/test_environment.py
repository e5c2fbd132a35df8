"""In each environment a command gives the bytes of a plain one, or one line that names the cause.

Cases are pairs of an environment and a command. With `BSL_GENERATED`, a few of all are drawn, because each takes up to
minutes; `BSL_FIRST_CASE` draws others.
"""

import re
from functools import cache
from random import Random

import pytest

from tests.confined import SUPPORTED
from tests.differential.cases import FIRST, count
from tests.differential.environments import COMMANDS, ENVIRONMENTS, Environment, execute, execute_here, write_inputs

PLAIN = Environment("plain")
_ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
# The sample of `make test`: both environments once failed, and each start of a command takes seconds.
QUICK = Environment("no HOME, no name, ASCII locale", {"HOME": None, **_ASCII}, unnamed=SUPPORTED)
MOST = 24
PAIRS = [(command, environment) for environment in ENVIRONMENTS for command in COMMANDS]


def cases():
    if count(0) == 0:
        return [("search", QUICK)]
    return Random(FIRST).sample(PAIRS, min(count(0), MOST))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Return a folder of inputs, with the database of a finished command: to make one takes longer than all else."""
    folder, base = tmp_path_factory.mktemp("inputs"), tmp_path_factory.mktemp("first")
    write_inputs(folder)
    if all(command == "search" for command, _ in cases()):
        return folder
    first = execute("evaluate", PLAIN, folder, base)
    assert first.code == 0, first.messages
    (folder / ".bsl").mkdir()
    (base / "work" / ".bsl" / "prefect").rename(folder / ".bsl" / "prefect")
    return folder


@pytest.fixture(scope="module")
def plain(inputs, tmp_path_factory):
    """Return a function that returns the outcome of a command in a plain environment."""

    @cache
    def outcome(command):
        base = tmp_path_factory.mktemp(command)
        return execute_here(command, inputs, base) if command == "search" else execute(command, PLAIN, inputs, base)

    return outcome


@pytest.mark.differential
@pytest.mark.parametrize(("command", "environment"), cases(), ids=lambda value: getattr(value, "name", value))
def test_environment_changes_no_byte_or_is_named_as_the_cause(command, environment, inputs, plain, tmp_path):
    if environment.is_confined and not SUPPORTED:
        pytest.skip("needs user namespaces")
    found, expected = execute(command, environment, inputs, tmp_path), plain(command)
    assert "Traceback" not in found.messages, found.messages
    if found.code == 0:
        assert found.result == expected.result
        assert found.digests == expected.digests
        return
    assert environment.cause, found.messages
    (line,) = [line for line in found.messages.splitlines() if line.startswith("bsl: ")]
    assert re.search(environment.cause, line), found.messages
