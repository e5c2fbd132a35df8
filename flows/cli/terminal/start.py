"""How verbs start a flow: they settle server and site, say what is missing before the run, and how it ended."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from flows.cli.terminal.log_lines import be_quiet, printable, spinner
from flows.prefect_server.server import TAG, EmbeddedServer, check_server, start_server, use_server

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from prefect import Flow

    from flows.cli.terminal.options import Output, Site
    from flows.config import PipelineConfig
    from tasks.stage.progress import StageRun
    from tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class FlowStart:
    """What a verb has before it runs its flow.

    Attributes:
        site: where the flow runs.
        embedded: the server of this command, which may still be starting; None for one that PREFECT_API_URL names.
        watched: whether the terminal shows the stages as they go; a program that reads JSON is shown nothing.
    """

    site: RunContext
    embedded: EmbeddedServer | None
    watched: bool = True

    def run(
        self,
        flow: Flow[..., Any],
        configs: Iterable[PipelineConfig] = (),
        labels: Sequence[str] = (),
        /,
        *,
        is_planned: bool = True,
        **parameters: object,
    ) -> Any:  # noqa: ANN401 - what the flow returns
        """The flow's result, or None with a line on the error stream if it did not finish.

        Args:
            flow: a Prefect flow with a parameter `site`.
            configs: all that the flow will run, whose sources are looked for first.
            labels: further tags of the run.
            is_planned: whether a dry run finds its stages first; not for a flow that does more than call stages.
            parameters: the flow's others.

        Raises:
            SourceError: a source is missing, which is said before a run starts.
        """
        from tasks.corpus.ingest import locate_sources

        with spinner("looking for sources and models, starting Prefect"):
            for config in configs:
                locate_sources(self.site, config.ingest)
            if self.embedded is None:
                wait_for(None)  # it answers at once, or nothing else need be looked for
            plan = planned_stages(flow, {**parameters, "site": self.site}) if is_planned else None
            store = self.site.open_store()
            if any(step.stage == "train" and store.defect(step.ref) for step in plan or ()):
                import models.training.loop  # noqa: F401 - takes as long as the server, which starts meanwhile
            if self.embedded is not None:
                wait_for(self.embedded)  # which started meanwhile
        from prefect import tags

        from flows.cli.terminal.progress import watching
        from flows.prefect_server.crashed_runs import cancelled_when_stopped

        with watching(store, plan) if self.watched else nullcontext(), tags(TAG, *labels):
            state: Any = cancelled_when_stopped(flow)(**parameters, site=self.site, return_state=True)
        if state.is_completed():
            return state.result()
        failed(state.result(raise_on_failure=False))
        return None


def planned_stages(flow: Flow[..., Any], parameters: dict[str, object]) -> list[StageRun] | None:
    """The stages of a flow; None where some depend on what others make.

    Raises:
        ModelError, StorageError, ValueError: something is amiss, which the run would meet later.
    """
    from models.errors import ModelError
    from storage.errors import ArtifactMissingError, StorageError
    from tasks.stage.progress import planning

    try:
        with planning() as plan:
            flow.fn(**flow.validate_parameters(parameters))
    except ArtifactMissingError:
        return None
    except (ModelError, StorageError, ValueError):
        raise
    except Exception as error:  # of Prefect's, which has no run here
        logger.debug("%s is not planned: %s", flow.name, error)
        return None
    return plan


def begin(place: Site, output: Output, *, serve: bool = True, **more: object) -> FlowStart:
    """Settle the server. Call it before anything imports Prefect, as flows do: its settings are read on import.

    Args:
        place: where the flow runs; the environment decides what is not given.
        output: what the verb prints.
        serve: whether a flow will run; a dry run needs no server.
        more: further fields of `RunContext`; None where one was not given.
    """
    use_server()
    if not output.debug:
        be_quiet()
    embedded = start_server() if serve else None
    from flows.run_context import run_context_of  # while the server starts

    return FlowStart(run_context_of({**place.given, **more}), embedded, watched=not output.json)


def wait_for(embedded: EmbeddedServer | None) -> None:
    """Wait until the command's own server answers, and end the runs of killed commands in its database.

    Raises:
        OSError: it does not, or the one that PREFECT_API_URL names does not.
    """
    if embedded is None:
        check_server(os.environ["PREFECT_API_URL"])
        return
    embedded.wait()
    if embedded.alone is not None:
        from flows.prefect_server.crashed_runs import end_crashed_runs

        end_crashed_runs(embedded.alone)


def failed(error: object) -> int:
    """Print what ended a run, and whether the same call may succeed; it cannot where a source's content is at fault."""
    from models.errors import InterruptedRunError, ModelError, TranslationStoppedError
    from storage.errors import HubError, SourceError, StorageError

    server = is_of_a_server(error)
    passing = isinstance(error, StorageError | OSError | InterruptedRunError | TranslationStoppedError)
    again = server or (passing and (isinstance(error, HubError) or not isinstance(error, SourceError)))
    known = server or isinstance(error, StorageError | OSError | ModelError)
    said = str(error) if known else f"{type(error).__name__}: {error}"
    if server:  # of an answer the second line leads to a page on its status code
        said = f"Prefect's server failed: {said.splitlines()[0] if said else type(error).__name__}"
    print(f"bsl: {printable(said)}", file=sys.stderr)
    print(f"Finished stages are cached{'; run again to resume.' if again else '.'}", file=sys.stderr)
    if not known:
        print("With --debug the same call shows where this came from.", file=sys.stderr)
    return 1


def is_of_a_server(error: object) -> bool:
    """Whether Prefect's client gave up on its server, which in a run and after its end may be raw."""
    known = sys.modules.get("httpx")  # not imported for this: a verb that talks to a server has it
    return known is not None and isinstance(error, known.HTTPError)
