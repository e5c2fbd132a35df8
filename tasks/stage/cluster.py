"""Run many calls of one stage or function: sequentially in this process, or on a Dask cluster."""

from __future__ import annotations

import threading
import time
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import cloudpickle
from pydantic import BaseModel

from models.errors import ModelError
from storage.artifacts.refs import ArtifactRef
from storage.assets.embedded import EMBEDDED
from storage.errors import SourceError
from storage.hub.models import HubModel
from storage.sources.model_sources import ResolvedModel, resolve_model
from tasks.stage.progress import StageRun, is_planning, notify
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from distributed import Client, Future

    from tasks.stage.cached import Stage


R = TypeVar("R", bound=ArtifactRef)


def run_shards(site: RunContext, stage: Stage[..., R], calls: Sequence[tuple[Any, ...]]) -> Generator[R]:
    """Call a stage many times, on the run context's cluster if it names one.

    Args:
        site: Run context.
        stage: Makes each artifact; its key does not depend on the machine.
        calls: The arguments of each call, without the run context.

    Yields:
        The artifacts' references, in the order of the calls.

    Raises:
        ClusterError: The cluster cannot be reached, lost the calls, or computes other artifacts than this process.
        Exception: Any error of the stage.
    """
    if site.cluster is None or is_planning():
        for arguments in calls:
            yield stage(site, *arguments)
        return
    refs = on_cluster(site, stage, calls)
    for arguments, ref in zip(calls, refs, strict=True):
        expected = stage.ref_of(site, *arguments)
        if ref != expected:
            raise ClusterError(
                f"cluster {site.cluster}: a worker made {ref} (expected {expected}). Use the same version of "
                "this package and the same kind of device on all machines."
            )
        step = StageRun(stage.name, ref)
        notify("begins", step)
        notify("ends", step)
        yield expected


T = TypeVar("T")

_AT_ONCE: Final = 256  # minimum number of calls sent to the scheduler at a time
_GATHER_EVERY_S: Final = 0.5
_lock = threading.Lock()


class ClusterError(ModelError):
    """A cluster cannot be reached, or its workers did not finish."""


def on_cluster(site: RunContext, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> Generator[T | None]:
    """Call `function(site, *arguments)` on the workers of the run context's cluster; a dry run calls nothing.

    If the iteration ends early (an error, Ctrl-C), unfinished calls are cancelled.

    Args:
        site: Store, mirror and kind of device, which workers share; its `cluster`.
        function: A function of a module, or a stage.
        calls: The arguments of each call.

    Yields:
        The results, in the order of the calls; None for each of a dry run.

    Raises:
        ClusterError: The cluster cannot be reached or lost the calls, or `distributed` is not installed.
        Exception: Any error of a call.
    """
    from concurrent.futures import CancelledError

    if is_planning():
        yield from [None] * len(calls)
        return
    with _client(str(site.cluster)) as client:
        from distributed import KilledWorker, as_completed

        shared = site.abroad().model_dump(exclude_unset=True) | {"cluster": None}
        to_send, futures = enumerate(calls), as_completed(loop=client.loop)
        numbers: dict[Future, int] = {}
        results: dict[int, T] = {}

        def send() -> None:
            most = calls_at_once(client)
            if len(numbers) > most // 2:
                return  # send many calls at a time: each graph costs milliseconds
            some = list(islice(to_send, most - len(numbers)))
            sent = client.map(
                _call, [cloudpickle.dumps((function, shared, arguments)) for _, arguments in some], pure=False
            )
            numbers.update(zip(sent, (number for number, _ in some), strict=True))
            futures.update(sent)

        try:
            send()
            for number in range(len(calls)):
                while number not in results:
                    time.sleep(_GATHER_EVERY_S)  # one request for all finished calls: each costs milliseconds
                    ended = futures.next_batch()
                    results.update(zip(map(numbers.pop, ended), client.gather(ended), strict=True))
                    send()
                yield results.pop(number)
        except (CancelledError, KilledWorker) as error:
            raise ClusterError(
                f"cluster {site.cluster}: {type(error).__name__}: {error}. Check the workers' logs, then run again."
            ) from error
        finally:
            client.cancel(list(numbers), force=True)


def calls_at_once(client: Client) -> int:
    """Return how many calls to send at a time: two for each current worker thread, and at least `_AT_ONCE`."""
    threads: dict[str, int] = client.nthreads()
    return max(_AT_ONCE, 2 * sum(threads.values()))


def count_workers(address: str) -> int:
    """Return the number of workers of a cluster.

    Raises:
        ClusterError: it cannot be reached.
    """
    with _client(address) as client:
        return len(client.nthreads())


@contextmanager
def _client(address: str) -> Iterator[Client]:
    try:
        from distributed import Client
    except ImportError as error:
        raise ClusterError("cluster: distributed is not installed. Install bsl-pipeline[dask]") from error
    try:
        client = Client(address, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ClusterError(
            f"cluster {address}: no scheduler answers ({error}). Start one with `dask scheduler`, and workers with "
            "`dask worker ADDRESS --nthreads 1`"
        ) from error
    with closing(client):
        yield client


def _call(sent: bytes) -> Any:  # noqa: ANN401 - what the function returns
    """Run a pickled call on a worker."""
    function, shared, arguments = cloudpickle.loads(sent)
    site = RunContext.model_validate(shared)
    with _lock:
        return function(site, *(found_here(site, value) for value in arguments))


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
