"""Many calls of one stage: here in their order, or on the workers of a Dask cluster."""

from __future__ import annotations

import threading
from contextlib import closing, contextmanager
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

import cloudpickle
from pydantic import BaseModel

from models.errors import ModelError
from storage.artifacts.refs import ArtifactRef
from storage.assets.catalog import EMBEDDED
from storage.errors import SourceError
from storage.sources.model_sources import ResolvedModel, resolve_model
from tasks.stage.progress import StageRun, is_planning, listeners
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from distributed import Client, Future

    from tasks.stage.cached import Stage

R = TypeVar("R", bound=ArtifactRef)


def run_shards(site: RunContext, stage: Stage[..., R], calls: Sequence[tuple[Any, ...]]) -> Generator[R]:
    """Call a stage many times, on the site's cluster if it names one.

    Args:
        site: Where the stage runs.
        stage: Makes each artifact; its key says nothing of the machine that makes it.
        calls: The arguments of each call, without the site.

    Yields:
        The artifacts' references, in the order of the calls.

    Raises:
        ClusterError: The cluster cannot be reached, lost the calls, or computes something else than this process.
        Exception: Whatever the stage raised.
    """
    if site.cluster is None or is_planning():
        for arguments in calls:
            yield stage(site, *arguments)
        return
    made = on_cluster(site, stage, calls)
    for arguments, ref in zip(calls, made, strict=True):
        expected = stage.ref_of(site, *arguments)
        if ref != expected:
            raise ClusterError(
                f"cluster {site.cluster}: a worker made {ref} (expected {expected}). Give all machines one version of "
                "this package and one kind of device"
            )
        step = StageRun(stage.name, ref)
        for listener in listeners():
            listener.begins(step)
            listener.ends(step)
        yield ref


T = TypeVar("T")

_AT_ONCE: Final = 256  # calls that the scheduler holds, with their arguments
_turn = threading.Lock()


class ClusterError(ModelError):
    """A cluster cannot be reached, or its workers did not finish."""


def on_cluster(site: RunContext, function: Callable[..., T], calls: Sequence[tuple[Any, ...]]) -> Generator[T]:
    """Call `function(site, *arguments)` on the workers of the site's cluster.

    Whatever ends the wait, Ctrl-C included, cancels the calls that have not ended.

    Args:
        site: Store, mirror and kind of device, which workers share; its `cluster`.
        function: A function of a module, or a stage.
        calls: The arguments of each call.

    Yields:
        The results, in the order of the calls.

    Raises:
        ClusterError: The cluster cannot be reached or lost the calls, or `distributed` is not installed.
        Exception: Whatever a call raised.
    """
    from concurrent.futures import CancelledError

    with _client(str(site.cluster)) as client:
        from distributed import KilledWorker, as_completed

        shared = site.abroad().model_dump(exclude_unset=True) | {"cluster": None}
        to_send, futures = enumerate(calls), as_completed(loop=client.loop)
        numbers: dict[Future, int] = {}
        results: dict[int, T] = {}

        def send() -> None:
            if len(numbers) > _AT_ONCE // 2:
                return  # many at a time: each graph that is sent costs milliseconds
            some = list(islice(to_send, _AT_ONCE - len(numbers)))
            sent = client.map(_call, [cloudpickle.dumps((function, shared, own)) for _, own in some], pure=False)
            numbers.update(zip(sent, (number for number, _ in some), strict=True))
            futures.update(sent)

        try:
            send()
            for number in range(len(calls)):
                while number not in results:
                    ended = futures.next_batch()  # all that have: one request gathers them
                    results.update(zip(map(numbers.pop, ended), client.gather(ended), strict=True))
                    send()
                yield results.pop(number)
        except (CancelledError, KilledWorker) as error:
            raise ClusterError(
                f"cluster {site.cluster}: {type(error).__name__}: {error}. Look at the workers' logs, then run again"
            ) from error
        finally:
            client.cancel(list(numbers), force=True)


def look_at_cluster(address: str) -> int:
    """Return how many workers a cluster has.

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
    """On a worker."""
    function, shared, arguments = cloudpickle.loads(sent)
    site = RunContext.model_validate(shared)
    with _turn:
        return function(site, *(found_here(site, value) for value in arguments))


def found_here(site: RunContext, value: T) -> T:
    """Return an argument with the folders of its models as they are on this machine.

    Raises:
        SourceError: this machine has not the model, or another one under its name.
    """
    if isinstance(value, ResolvedModel):
        return cast("T", _model_here(site, value))
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields}
        changed = {name: here for name, own in fields.items() if (here := found_here(site, own)) is not own}
        return value.model_copy(update=changed) if changed else value
    return value


def _model_here(site: RunContext, model: ResolvedModel) -> ResolvedModel:
    if model.place is not None:
        return _folder_here(model.identity, model.place)
    copies = {"hub": model.hub, "mirrored": model.mirrored}
    cache = {"cache": site.local_cache}
    return model.model_copy(update={name: own and own.model_copy(update=cache) for name, own in copies.items()})


@lru_cache(maxsize=16)  # a folder's digest is taken once a process, not once a shard
def _folder_here(identity: str, place: Path) -> ResolvedModel:
    """An embedded model by its name; any other folder at the same path."""
    name = identity.rpartition("@")[0] if identity.startswith(EMBEDDED) else str(place)
    here = resolve_model(name)
    if here.identity != identity:
        raise SourceError(
            f"{name}: this worker has {here.identity} (the sender has {identity}). Give all machines the same files"
        )
    return here
