"""Start a flow from a command: choose server and run context, check sources before the run, report errors."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from bsl.flows.cli.terminal.log_lines import be_quiet, leave_to_prefect, printable, spinner
from bsl.storage.filesystem.os_errors import writing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from prefect import Flow

    from bsl.flows.cli.terminal.options import Output
    from bsl.flows.config import PipelineConfig
    from bsl.flows.prefect_server.server import EmbeddedServer
    from bsl.tasks.stage.progress import StageRun
    from bsl.tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)

RESUME: Final = "Finished stages are cached; run the command again to resume"


@dataclass(frozen=True)
class FlowStart:
    """Run context and server with which a command starts its flow.

    Attributes:
        site: Run context of the flow.
        embedded: The embedded server, which starts if the run makes something; None if PREFECT_API_URL names a server.
        watched: Whether the terminal shows progress; off for JSON output.
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
        **parameters: object,
    ) -> Any:  # noqa: ANN401 - what the flow returns
        """Run a flow and return its result; if it fails, print its error and end the command.

        Args:
            flow: A Prefect flow with a parameter `site`.
            configs: All configurations of the run; their sources are checked before the run starts.
            labels: Further tags of the run.
            parameters: Other parameters of the flow.

        Raises:
            SourceError: A source is missing.
            ClusterError: The cluster cannot be reached.
            SystemExit: The flow failed.
            KeyboardInterrupt: Ctrl-C; its message says how the run is resumed.
        """
        from bsl.flows.prefect_server.server import TAG, check_server
        from bsl.tasks.corpus.ingest import locate_sources
        from bsl.tasks.stage.cluster import check_cluster

        with spinner("looking for sources and models, starting Prefect"):
            for config in configs:
                locate_sources(self.site, config.ingest)
            if self.embedded is None:
                check_server(os.environ["PREFECT_API_URL"])  # without an answer the flow cannot run
            plan = planned_stages(flow, {**parameters, "site": self.site})
            store = self.site.open_store()
            to_make = [step for step in plan.stages if store.defect(step.ref)] if plan else []
            is_cached = plan is not None and not to_make
            if not is_cached:
                check_cluster(self.site)  # its stages come late
            if self.embedded is not None and not is_cached:
                self.embedded.start()
            if any(step.stage == "train" for step in to_make):
                import bsl.models.training.loop  # noqa: F401 - a slow import, while the server starts
            if self.embedded is not None and not is_cached:
                _wait_for(self.embedded)
        if plan and is_cached and self.embedded is not None:  # no run, so no server
            if self.watched:
                print(f"all {len(plan.stages)} stages are cached")
            return plan.result
        from prefect import tags

        from bsl.flows.cli.terminal.progress import watching
        from bsl.flows.estimate import estimate
        from bsl.flows.prefect_server.crashed_runs import cancelled_when_stopped

        if self.watched and (expected := estimate(store, to_make)):
            print(printable(expected))
        with watching(store, plan and plan.stages) if self.watched else nullcontext(), tags(TAG, *labels):
            try:
                # Not `return_state`: a server that records the end twice, after a repeated request, answers without the
                # result.
                return cancelled_when_stopped(flow)(**parameters, site=self.site)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(RESUME) from None
            except Exception as error:
                raised = error
        raise SystemExit(failed(raised))  # below the progress display


class Plan(NamedTuple):
    """The stages of a run, and what its flow will return."""

    stages: list[StageRun]
    result: Any


def planned_stages(flow: Flow[..., Any], parameters: dict[str, object]) -> Plan | None:
    """Return the stages and the result of a flow; None if some stages depend on results of others.

    Raises:
        ModelError, StorageError, ValueError: An error that the run would raise later.
    """
    from bsl.models.errors import ModelError
    from bsl.storage.errors import ArtifactMissingError, StorageError
    from bsl.tasks.stage.progress import planning

    try:
        with planning() as plan:
            result = flow.fn(**flow.validate_parameters(parameters))
    except ArtifactMissingError:
        return None
    except (ModelError, StorageError, ValueError):
        raise
    except Exception as error:  # Prefect has no run context in a dry run
        logger.debug("%s is not planned: %s", flow.name, error)
        return None
    return Plan(plan, result)


def begin(site: RunContext, output: Output, *, serve: bool = True) -> FlowStart:
    """Choose the server; call this before Prefect or a flow is imported, because Prefect then reads settings.

    Args:
        site: Run context of the flow.
        output: Options of the output.
        serve: Whether a flow will run; a dry run needs no server.

    Raises:
        ValueError: The mirror is a folder that does not exist.
        StoreReadError, StoreWriteError: The path of the store contains a file, or its folder cannot be created.
    """
    from bsl.flows.prefect_server.server import reserve_server, use_server

    site.check_mirror()
    use_server()
    if output.debug:
        leave_to_prefect()
    else:
        be_quiet()
    embedded = reserve_server() if serve else None
    store = site.open_store()  # a faulty path raises before anything slow is imported
    if serve and store.local is not None:
        with writing(f"{store.url} (--store)"):
            store.local.mkdir(parents=True, exist_ok=True)
    return FlowStart(site, embedded, watched=not output.json)


@contextmanager
def begin_here(place: Mapping[str, Any], path: str) -> Iterator[RunContext]:
    """Yield the run context of a command that runs no flow, and show progress on standard error; no server starts.

    Args:
        place: Runtime options; the environment provides the others.
        path: File that the command reads.
    """
    from rich.console import Console

    from bsl.flows.prefect_server.server import use_server
    from bsl.flows.run_context import run_context_of

    # Only Prefect sends shards to a cluster, and it does not run here.
    site = run_context_of(place).model_copy(update={"cluster": None})
    site.check_mirror()
    os.environ["HF_HUB_DISABLE_PROGRESS_BARS"] = "1"  # else each load draws a progress bar
    use_server()
    from bsl.flows.cli.terminal.progress import watching
    from bsl.models.runtime.progress import Progress

    with watching(site.open_store(), None, Console(stderr=True)) as terminal:
        terminal.show("", Progress(f"reading {path}", 0, 0))
        yield site


def _wait_for(embedded: EmbeddedServer) -> None:
    """Wait until the embedded server answers, and mark runs of killed commands in its database as Crashed."""
    embedded.wait()
    if embedded.alone is not None:
        from bsl.flows.prefect_server.crashed_runs import end_crashed_runs

        end_crashed_runs(embedded.alone)


def failed(error: object) -> int:
    """Print the error of a run, and whether the run can be resumed; return exit code 1.

    A run cannot be resumed if a source is faulty.
    """
    from bsl.models.errors import InterruptedRunError, ModelError, TranslationStoppedError
    from bsl.storage.errors import HubError, SourceError, StorageError

    server = is_server_error(error)
    temporary = isinstance(error, StorageError | OSError | InterruptedRunError | TranslationStoppedError)
    resumable = server or (temporary and (isinstance(error, HubError) or not isinstance(error, SourceError)))
    known = server or isinstance(error, StorageError | OSError | ModelError)
    message = str(error) if known else f"{type(error).__name__}: {error}"
    if server:  # the second line links to a page on the status code
        message = f"the Prefect server failed: {message.splitlines()[0] if message else type(error).__name__}"
    print(f"bsl: {printable(message)}", file=sys.stderr)
    print(f"{printable(RESUME if resumable else 'Finished stages are cached')}.", file=sys.stderr)
    if not known:
        print("Add --debug for the traceback.", file=sys.stderr)
    return 1


def is_server_error(error: object) -> bool:
    """Return whether an error is an HTTP error of Prefect's client, which may raise it unwrapped."""
    httpx = sys.modules.get("httpx")  # already imported by every command that uses a server
    return httpx is not None and isinstance(error, httpx.HTTPError)
