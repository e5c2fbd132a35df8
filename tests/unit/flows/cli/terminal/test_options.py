"""Options have the type, help, choices and default of their field, and a command receives the given ones only."""

import re
from pathlib import Path
from typing import Annotated, Literal

import pytest
from cyclopts import App, CycloptsError, Parameter
from pydantic import AfterValidator, Field

from bsl.flows.cli.main import app as bsl
from bsl.flows.cli.terminal.options import NEW_PATH, options_of
from bsl.flows.cli.terminal.overrides import changes_of
from bsl.flows.config import override
from bsl.flows.recipes import recipe
from bsl.flows.recipes.adaptation import AdaptConfig
from bsl.storage.record import Record
from bsl.tasks.evaluation.config import EvaluationSettings


def refuse(_):
    raise ValueError("the settings check this")


class Inner(Record):
    size: int = 1


class Toy(Record):
    """Settings with a field of each form; all but the section are options."""

    name: Annotated[str, AfterValidator(refuse)] | None = None
    """Name of it, such as `x`. Details."""
    columns: tuple[str, ...] = ()
    """ISO names; by default guessed."""
    count: int = Field(3, ge=1)
    """Number of them."""
    kind: Literal["one", "two"] = "one"
    """Kind."""
    flag: bool = False
    """Do it."""
    either: str | dict[str, Inner] = "first"
    """One, or a mapping."""
    needed: str
    """Needed."""
    section: Inner = Inner()


NAMES = ("name", "columns", "count", "kind", "flag", "either", "needed")
Options = options_of(Toy, NAMES, "Parameters", count=Parameter(name="--number"))


def app():
    made = App(default_parameter=Parameter(negative=()), print_error=False, exit_on_error=False)

    @made.default
    def command(*, toy: Options = {}):  # noqa: B006 - never changed
        return toy

    return made


@pytest.mark.parametrize(
    ("words", "given"),
    [
        ("", {}),
        ("--flag", {"flag": True}),
        ("--number 0", {"count": 0}),
        ("--columns a b --kind two", {"columns": ("a", "b"), "kind": "two"}),
        ("--name x --either y", {"name": "x", "either": "y"}),
    ],
)
def test_command_receives_the_given_options_by_field(words, given):
    assert (app()(words, result_action="return_value") or {}) == given


@pytest.mark.parametrize(
    "words",
    ["--kind three", "--number x", "--count 1", "--section.size 2", "--columns", "--flag x", "--no-flag"],
)
def test_other_values_and_fields_are_refused(words):
    with pytest.raises(CycloptsError):
        app()(words, result_action="return_value")


def test_help_is_the_first_sentence_with_default():
    arguments = {argument.name: argument for argument in app().assemble_argument_collection()}
    helps = {name: argument.parameter.help for name, argument in arguments.items() if argument.parameter.help}
    assert helps == {
        "--name": "name of it, such as `x`",
        "--columns": "ISO names; by default guessed",
        "--number": "number of them [default: 3]",
        "--kind": "kind [default: one]",
        "--flag": "do it",
        "--either": "one, or a mapping [default: first]",
        "--needed": "needed",
    }
    assert arguments["--kind"].get_choices() == ("one", "two")


@pytest.mark.parametrize(
    ("command", "base"), [("run", recipe("tiny")), ("adapt", AdaptConfig()), ("evaluate", EvaluationSettings())]
)
def test_setting_that_help_gives_as_example_is_one_of_the_command(capsys, command, base):
    bsl([command, "--help"], result_action="return_value")
    told = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert override(base, changes_of(re.findall(r"change a setting, for example (\S+=\S+);", told))) != base


def test_new_path_is_of_this_machine_with_home_expanded(monkeypatch):
    monkeypatch.setenv("HOME", "/home/ann")
    made = App(print_error=False, exit_on_error=False)

    @made.default
    def command(target: Annotated[Path, NEW_PATH], /):
        return target

    assert made(["~/out.csv"], result_action="return_value") == Path("/home/ann/out.csv")
    with pytest.raises(CycloptsError, match=r"s3://bucket/out\.csv: is an address, expected a path on this machine"):
        made(["s3://bucket/out.csv"], result_action="return_value")


def test_runtime_options_name_their_variable():
    collection = bsl["run"].assemble_argument_collection()
    helps = {argument.name: argument.parameter.help or "" for argument in collection}
    assert helps["--mirror"].endswith("[env: BSL_DATA_MIRROR]")
    assert helps["--processes"].endswith("[default: 1] [env: BSL_PROCESSES]")
