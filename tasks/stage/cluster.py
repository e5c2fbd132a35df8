"""Run many calls of one stage or function: sequentially in this process, or on the workers of a Dask cluster."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
from collections import deque
from contextlib import closing, contextmanager
from functools import lru_cache
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import cloudpickle
from pydantic import BaseModel

from bsl.models.errors import ModelError
from bsl.models.runtime.precision import with_resolved_precision
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.assets.embedded import EMBEDDED
from bsl.storage.errors import ArtifactMissingError, SourceError
from bsl.storage.filesystem.os_errors import first_line
from bsl.storage.hub.models import HubModel
from bsl.storage.sources.model_sources import ResolvedModel, resolve_model
from bsl.tasks.stage.device import device_of, let_threads_sleep
from bsl.tasks.stage.lease import lease
from bsl.tasks.stage.progress import StageRun, is_planning, notify
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.stage.ui import in_run

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence

    from distributed import Client, Future

    from bsl.tasks.stage.cached import Stage


R = TypeVar("R", bound=ArtifactRef)


def run_shards(site: RunContext, stage: Stage[..., R], calls: Sequence[tuple[Any, ...]]) -> Generator[R]:
    """Call a stage with each tuple of arguments, on the run context's cluster if it names one.

    Yields the references in the order of the calls. The keys of the artifacts must not depend on the machine.

    Raises:
        ClusterError: The cluster cannot be reached, lost the calls, computes other artifacts than this process, or has
            another store.
        DeadWorkersError: Every worker that ran a call died.
        Exception: Any error of the stage.
    """
    if site.cluster is None or is_planning():
        for arguments in calls:
            yield stage(site, *arguments)
        return
    calls = with_resolved_precision(calls, lambda: device_of(site))  # a worker's precision may be another
    store = site.open_store()
    with closing(on_cluster(site.cluster, site.abroad(), stage, calls)) as refs:  # an error cancels the other calls
        for arguments, ref in zip(calls, refs, strict=True):
            expected = stage.ref_of(site, *arguments)
            if ref != expected:
                raise ClusterError(
                    f"cluster {site.cluster}: a worker made {ref} (expected {expected}). Use the same version of "
                    "this package and the same kind of device on all machines."
                )
            try:
                store.manifest(expected)
            except ArtifactMissingError as error:
                raise ClusterError(
                    f"cluster {site.cluster}: a worker made {ref}, but {store.url} does not contain it. Give all "
                    "machines the same store: a shared folder with one path on all of them, or an address such as "
                    "s3://bucket/store."
                ) from error
            step = StageRun(stage.name, ref)
            notify("begins", step)
            notify("ends", step)
            yield expected


T = TypeVar("T")

_AT_ONCE: Final = 256  # minimum number of calls sent to the scheduler at a time
_GATHER_EVERY_S: Final = 0.5
_EVENTS: Final = "all"  # Dask's topic of workers that come and go
_PACKAGE: Final = __name__.partition(".")[0]
_lock = threading.Lock()
logger = logging.getLogger(__name__)


class ClusterError(ModelError):
    """A cluster cannot be reached, or its workers did not finish."""


class DeadWorkersError(ModelError):
    """Every worker that ran a call died before the call returned."""


def on_cluster(
    address: str, site: RunContext, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]
) -> Generator[T]:
    """Yield the results of `function(site, *arguments)` on the workers of a cluster, in the order of the calls.

    Args:
        address: Address of the scheduler.
        site: Run context of the workers.
        function: A function of a module, or a stage.
        calls: The arguments of each call.

    Raises:
        ClusterError: The cluster cannot be reached, or cancelled the calls.
        DeadWorkersError: Every worker that ran a call died.
        Exception: Any error of a call.
    """
    results: dict[int, T] = {}
    due = 0
    with closing(outcomes_on_cluster(address, site, function, calls)) as ended:
        for number, outcome in ended:
            if isinstance(outcome, Exception):
                raise outcome
            results[number] = outcome
            while due in results:
                yield results.pop(due)
                due += 1


def outcomes_on_cluster(
    address: str,
    site: RunContext,
    function: Callable[..., T],
    calls: Sequence[tuple[Any, ...]],
    names: Sequence[str] = (),
    *,
    ahead: bool = True,
) -> Generator[tuple[int, T | Exception]]:
    """Call a function on the workers of a cluster, and yield each outcome when its call ends; a dry run calls nothing.

    Dask repeats the call of a worker that died, on another one, up to `distributed.scheduler.allowed-failures` times;
    a warning names the call. If the iteration ends early (an error, Ctrl-C), unfinished calls are cancelled.

    Args:
        address: Address of the scheduler.
        site: Run context of the workers.
        function: A function of a module, or a stage.
        calls: The arguments of each call.
        names: Name of each call, for warnings; by default its number.
        ahead: Send more calls than there are worker threads, so that no worker waits for short calls. Dask counts a
            worker's death against all calls that were sent to it, so calls that can exhaust the memory take False.

    Yields:
        Number of a call, and its result or error.

    Raises:
        ClusterError: The cluster cannot be reached, or cancelled the calls.
    """
    if is_planning():
        return
    lease(site.open_store(), (), begin=in_run())  # also protects what workers make and use
    with _client(address) as client:
        from distributed import as_completed

        shared = site.model_dump(exclude_unset=True) | {"cluster": None}
        to_send, futures = deque(enumerate(calls)), as_completed(loop=client.loop)
        numbers: dict[Future[Any], int] = {}
        names = names or [f"call {number} of {len(calls)}" for number in range(1, len(calls) + 1)]
        deaths = _deaths(client)

        def send() -> None:
            most = calls_at_once(client) if ahead else max(1, _threads(client))
            if len(numbers) >= most or (ahead and len(numbers) > most // 2):
                return  # send many calls at a time: each graph costs milliseconds
            some = [to_send.popleft() for _ in range(min(most - len(numbers), len(to_send)))]
            sent = client.map(
                cloudpickle.loads,
                [cloudpickle.dumps(_Call(function, shared, arguments)) for _, arguments in some],
                pure=False,
            )
            numbers.update(zip(sent, (number for number, _ in some), strict=True))
            futures.update(sent)

        try:
            while to_send or numbers:
                if to_send:
                    send()
                time.sleep(_GATHER_EVERY_S)  # one request for all finished calls: each costs milliseconds
                ended = futures.next_batch(block=False)
                _warn_of_deaths(deaths, numbers, names)  # Dask sends a death before the outcome of its call
                for future, outcome in _outcomes(client, address, ended):
                    yield numbers.pop(future), outcome
                futures.update(future for future in ended if future in numbers)  # lost with their worker: repeated
        finally:
            client.unsubscribe_topic(_EVENTS)
            client.cancel(list(numbers), force=True)


def _outcomes(client: Client, address: str, ended: Sequence[Future[Any]]) -> Iterator[tuple[Future[Any], Any]]:
    """Yield the result or error of each ended call, except results that were lost with their worker."""
    from distributed import KilledWorker

    finished = [future for future in ended if future.status == "finished"]
    yield from zip(finished, client.gather(finished), strict=True)  # one request for all
    for future in set(ended) - set(finished):
        if future.status == "cancelled":
            raise ClusterError(f"cluster {address}: a call was cancelled. Check the workers' logs, then run again")
        if future.status == "error":
            error = future.exception()
            if isinstance(error, ImportError) and str(error.name).partition(".")[0] == _PACKAGE:
                error = ClusterError(f"cluster {address}: {_other_version(error)}")
            if isinstance(error, KilledWorker):
                error = DeadWorkersError(
                    f"its worker process died {error.allowed_failures + 1} times (killed, or out of memory). Read the "
                    "workers' logs; a run that needs more memory takes fewer workers or a smaller batch"
                )
            yield future, error


def _deaths(client: Client) -> SimpleQueue[Collection[str]]:
    """Return a queue of the calls that each worker had when it died; Dask fills it from another thread."""
    deaths: SimpleQueue[Collection[str]] = SimpleQueue()

    def note(event: tuple[float, object]) -> None:
        _, content = event
        if isinstance(content, dict) and content.get("action") == "remove-worker" and not content.get("expected"):
            deaths.put(content["processing-tasks"])

    client.subscribe_topic(_EVENTS, note)
    return deaths


def _warn_of_deaths(
    deaths: SimpleQueue[Collection[str]], numbers: Mapping[Future[Any], int], names: Sequence[str]
) -> None:
    """Log each death of a worker that had calls of this process."""
    while not deaths.empty():
        keys = deaths.get()
        dead = [number for future, number in numbers.items() if future.key in keys]
        if dead:
            logger.warning(
                "%s: the worker process died (killed, or out of memory). Its finished artifacts and snapshots are in "
                "the store; the next attempt continues from them",
                ", ".join(map(names.__getitem__, dead)),
            )


def calls_at_once(client: Client) -> int:
    """Return how many calls to send at a time: two for each current worker thread, and at least `_AT_ONCE`."""
    return max(_AT_ONCE, 2 * _threads(client))


def _threads(client: Client) -> int:
    threads: dict[str, int] = client.nthreads()
    return sum(threads.values())


def count_workers(address: str) -> int:
    """Return the number of workers of a cluster.

    Raises:
        ClusterError: it cannot be reached.
    """
    with _client(address) as client:
        return len(client.nthreads())


def check_cluster(site: RunContext) -> None:
    """Connect to the run context's cluster, if it names one, and warn if it has no worker.

    Raises:
        ClusterError: It cannot be reached.
    """
    if site.cluster is not None and not count_workers(site.cluster):
        logger.warning(
            "cluster %s has no worker yet, and the run will wait for one: `dask worker ADDRESS --nthreads 1`",
            site.cluster,
        )


@contextmanager
def _client(address: str) -> Iterator[Client]:
    from distributed import Client  # slow to import

    try:
        _check_greeting(address)
        client = Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"cluster {address}: no scheduler answers ({error}). Start one with `dask scheduler`, and workers with "
            "`dask worker ADDRESS --nthreads 1`"
        ) from error
    with closing(client):
        yield client


def _check_greeting(address: str) -> None:
    """Check that Dask listens at an address: its client would wait without end for the greeting of another program.

    Raises:
        OSError: Nothing listens there, or a program without Dask's greeting; the scheduler hangs; the address is
            malformed, or Dask's settings lack the certificates for it.
    """
    from dask.config import get
    from dask.utils import parse_timedelta
    from distributed.comm.core import connect
    from distributed.security import Security
    from distributed.utils import LoopRunner, import_term

    limit = parse_timedelta(get("distributed.comm.timeouts.connect"))
    loader = get("distributed.client.security-loader")  # as the client does
    security = (import_term(loader)({"address": address}) if loader else None) or Security()

    async def greet() -> None:
        """Connect, within the limit, and read the greeting, within another."""
        connecting = connect(address, **security.get_connection_args("client"))
        (await asyncio.wait_for(connecting, 2 * limit)).abort()

    runner = LoopRunner()
    runner.start()
    try:
        runner.run_sync(greet)
    except (TimeoutError, MemoryError) as error:  # silence, or text that was read as the length of a greeting
        raise OSError("another program listens there, such as a dashboard, or the scheduler hangs") from error
    except Exception as error:  # for other answers, and for TLS without certificates, Dask raises many kinds
        raise OSError(str(error)) from error
    finally:
        runner.stop()


class _Call:
    """A call that runs when its pickle is loaded.

    So the pickle of a call names no function of this package: a worker without it fails the call. Dask's own pickle of
    a function is read outside the call, where an error ends the worker.
    """

    def __init__(self, *parts: object) -> None:
        self._sent = cloudpickle.dumps(parts)

    def __reduce__(self) -> tuple[object, ...]:
        return _call, (self._sent,)


def _call(sent: bytes) -> Any:  # noqa: ANN401 - what the function returns
    """Run a pickled call on a worker."""
    let_threads_sleep()
    try:
        function, shared, arguments = cloudpickle.loads(sent)
        site = RunContext.model_validate(shared)
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise ClusterError(f"{socket.gethostname()}: {_other_version(error)}") from error
    with _lock:
        return function(site, *(found_here(site, value) for value in arguments))


def _other_version(error: Exception) -> str:
    """Return the message for a worker whose package lacks what a call names."""
    return f"a worker cannot read its call ({first_line(error)}). Use the same version of this package on all machines"


def found_here(site: RunContext, value: T) -> T:
    """Return an argument with the folders of its models as found on this machine.

    Raises:
        SourceError: this machine lacks the model, or has another one under its name.
    """
    if isinstance(value, ResolvedModel):
        return cast("T", _model_here(site, value))
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        changed = {
            name: here
            for name, field_value in fields.items()
            if (here := found_here(site, field_value)) is not field_value
        }
        return value.model_copy(update=changed) if changed else value
    return value


def _model_here(site: RunContext, model: ResolvedModel) -> ResolvedModel:
    if isinstance(model.location, Path):
        return _folder_here(model.identity, model.location)
    if isinstance(model.location, HubModel):
        return model  # read from this machine's HF_HOME
    copy = model.location.model_copy(update={"cache": site.local_cache})
    return model.model_copy(update={"location": copy})


@lru_cache(maxsize=16)  # compute a folder's digest once per process, not once per shard
def _folder_here(identity: str, place: Path) -> ResolvedModel:
    """Resolve an embedded model by its name, and any other folder by the same path."""
    name = identity.rpartition("@")[0] if identity.startswith(EMBEDDED) else str(place)
    here = resolve_model(name)
    if here.identity != identity:
        raise SourceError(
            f"{name}: this worker has {here.identity} (the sender has {identity}). Copy the same files to all machines."
        )
    return here
