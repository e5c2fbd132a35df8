"""Take a recipe through the steps of a user, by the real commands."""

import io
import json
import os
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout

import pytest

from bsl.flows.cli.main import main
from bsl.storage.artifacts.store import Store
from tests.hub.client import offline, use
from tests.hub.world import as_settings, small


class StepError(Exception):
    """A step failed; the message contains its output."""


class Journeys:
    """Take recipes one after another through all steps, with one Hub, one cache, one copied cache and one store."""

    def __init__(self, hub, folder, files):
        self._hub, self._folder, self._files = hub, folder, files
        self._reports: dict[str, str] = {}
        self.steps: dict[str, Callable[[str], None]] = {
            "doctor": self._doctor,
            "run": self._run,
            "run again, HF_HUB_OFFLINE=1": self._again,
            "deployment": self._deployment,
            "mirror": self._mirror,
            "run from the carried cache, offline": self._offline,
        }

    def _doctor(self, name):
        # With the run's own translators: otherwise doctor uses translators that an earlier recipe left in the cache.
        searched = as_settings({"augment": small(name)["augment"]})
        self._bsl("doctor", name, *searched, "--mirror", str(self._files))

    def _run(self, name):
        self._reports[name] = self._report(name, "--mirror", str(self._files))

    def _again(self, name):
        """Run again offline, from caches: no request to the Hub, and the same report."""
        with pytest.MonkeyPatch.context() as patch:
            offline(patch)
            self._same(name, "--mirror", str(self._files))

    def _deployment(self, name):
        """Run by the worker, in its own process; every stage is a cache hit of `bsl run`."""
        from prefect.deployments import run_deployment

        store = Store(os.environ["BSL_STORE"])
        before = store.refs("report")
        parameters = {"recipe_name": name, "overrides": small(name)}
        run = run_deployment("bsl-pipeline/any", parameters=parameters, poll_interval=1)
        if not run.state.is_completed():
            raise StepError(f"the worker's run ended as {run.state}")
        if others := set(store.refs("report")) - set(before):
            raise StepError(f"the worker made {others}, expected the report of `bsl run`")

    def _mirror(self, name):
        settings = as_settings(small(name))
        self._bsl("mirror", str(self._folder / "mirror"), f"recipe:{name}", *settings, "--mirror", str(self._files))

    def _offline(self, name):
        """Run offline with an empty store, from the copied cache and own files alone; the keys are the same."""
        with pytest.MonkeyPatch.context() as patch:
            use(self._hub, self._folder / "mirror", patch)
            offline(patch)
            patch.setenv("BSL_STORE", os.environ["BSL_STORE"] + "-offline")
            self._same(name, "--mirror", str(self._files))

    def _same(self, name, *options):
        asked = len(self._hub.log)
        report = self._report(name, *options)
        if report != self._reports[name]:
            raise StepError(f"made {report}, expected {self._reports[name]}")
        if requests := self._hub.log[asked:]:
            raise StepError(f"the Hub was asked {requests[:3]}")

    def _report(self, name, *options):
        printed = self._bsl("run", name, "--json", *as_settings(small(name)), *options)
        return str(json.loads(printed)["report"])

    def _bsl(self, *words):
        """Run `bsl` in this process and return its output.

        Raises:
            StepError: The exit code is not 0.
        """
        printed, told = io.StringIO(), io.StringIO()
        with redirect_stdout(printed), redirect_stderr(told):
            code = main(list(words))
        if code:
            said = f"{printed.getvalue()}{told.getvalue()}"
            raise StepError(f"bsl {' '.join(words[:2])} … ended with {code}\n{said[-4000:]}")
        return printed.getvalue()
