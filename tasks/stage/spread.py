"""Work that other processes do: an errand is a function's name and plain values; what it makes lies in the store.

Whoever sends errands out goes the usual way afterwards and finds everything made, so results are those of one process,
by the same stages with the same arguments.

Design choices
- Nothing is pickled that is ours, and no value is a path of the sender's machine: models and plans go by names, and by
  artifacts where they have none that is known elsewhere.
- Only functions that are declared with `@errand` are called, whatever a message names.
- Dask and Ray are started when the first errand wants them and end with the flow (`crew`).
- The command's own workers are handed several shards at a time (`handfuls`): Prefect builds a context and its clients
  for each task that it sends to another process, which takes longer than a small shard. A cluster that a person named
  is handed each alone: it starts workers for the tasks that it sees waiting, and how many it will have is not known.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from contextvars import ContextVar
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Final, Generic, ParamSpec, TypeVar, cast, get_type_hints

from prefect import Task
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter

from models.errors import ModelError
from tasks.site import Site
from tasks.stage.deployed import Wanted, run_deployed
from tasks.stage.machine import cores
from tasks.stage.watch import is_planning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from prefect.task_runners import TaskRunner

P = ParamSpec("P")
T = TypeVar("T")

_ONE_VERSION: Final = "give sender and workers one version of this package"
DEPLOYMENT: Final = "bsl-errand/any"
_SHARES: Final = 4  # of what is left, for each worker: a slow one holds up the others by a quarter of its work at most
_HANDFUL: Final = 32  # more would save less than a hundredth of a second a shard, and hide hours behind one task


class ErrandError(ModelError):
    """An errand cannot be sent, or came back unfinished."""


class Errand(BaseModel):
    """A piece of work in plain values."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    call: str
    """`<module>:<name>` of a declared function."""
    title: str
    """For people."""
    arguments: dict[str, JsonValue]
    """By name; the site aside."""


class ErrandKind(Generic[P]):
    """A function that an errand may name. It leaves what it makes in the store of its site."""

    def __init__(self, do: Callable[Concatenate[Site, P], object]) -> None:
        self.do = do
        self.call = f"{do.__module__}:{do.__name__}"
        self.__doc__ = do.__doc__

    def errand(self, title: str, *_: P.args, **arguments: P.kwargs) -> Errand:
        """The errand that calls the function with these arguments, all by name."""
        values = {name: _plain(value) for name, value in arguments.items()}
        return Errand(call=self.call, title=title, arguments=values)

    def run(self, site: Site, arguments: dict[str, JsonValue]) -> None:
        """Call the function here.

        Raises:
            ErrandError: it has other parameters.
            pydantic.ValidationError: an argument is of another type.
        """
        do, types = cast("Callable[..., object]", self.do), get_type_hints(self.do)
        try:
            signature(do).bind(site, **arguments)
        except TypeError as error:
            raise ErrandError(f"{self.call}: {error}; {_ONE_VERSION}") from error
        do(site, **{name: TypeAdapter(types[name]).validate_python(value) for name, value in arguments.items()})


def errand(do: Callable[Concatenate[Site, P], object]) -> ErrandKind[P]:
    """Declare a function of a site and plain values, or models of such, that may be called elsewhere."""
    return ErrandKind(do)


def run_errand(sent: Errand, site: Site) -> None:
    """Do an errand in this process.

    Raises:
        ErrandError: it names no declared function.
    """
    module, _, name = sent.call.partition(":")
    try:
        kind = getattr(import_module(module), name, None) if module.partition(".")[0] in {"tasks", "flows"} else None
    except ModuleNotFoundError as error:
        raise ErrandError(f"{sent.call}: {error}; {_ONE_VERSION}") from error
    if not isinstance(kind, ErrandKind):
        raise ErrandError(f"{sent.call} is no declared errand; {_ONE_VERSION}")
    kind.run(site, sent.arguments)


def spread(
    site: Site,
    errands: Sequence[Errand],
    kept: Callable[[BaseException], bool] | None = None,
    *,
    together: bool = False,
) -> dict[int, ModelError]:
    """Have the site's runner do errands in other processes, and wait for all; a planned run sends none.

    Args:
        site: whose runner does them.
        errands: what is to be done.
        kept: which errors of Dask's or Ray's errands do not end the others; for those that go one by one.
        together: whether the command's own workers are handed several at a time, which suits short errands of equal
            length; one that raises ends those behind it in its task.

    Returns:
        Number of an errand → the error that ended it, of those that were kept.

    Raises:
        ErrandError: the runner is not installed or not there.
        PoolError: the pool does not know errands, or a run of one did not finish.
        Exception: whatever an errand raised on Dask or Ray.
    """
    if not errands or is_planning():
        return {}
    abroad = site.abroad(cores()).model_dump(mode="json", exclude_unset=True)
    if site.runner == "pool":
        sent = [Wanted({"sent": sent.model_dump(mode="json"), "site": abroad}, sent.title) for sent in errands]
        run_deployed(DEPLOYMENT, sent)
        return {}
    with ExitStack() as stack:
        runner = (_crew.get() or stack.enter_context(crew(site))).runner()
        runs = [
            runner.submit(_task(some), {"sent": [sent.model_dump(mode="json") for sent in some], "site": abroad})
            for some in handed(site, errands, together=together)
        ]
        faults: dict[int, ModelError] = {}
        for number, run in enumerate(runs):
            try:
                run.result(raise_on_failure=True)
            except ModelError as error:
                if kept is None or not kept(error):
                    raise
                faults[number] = error
    return faults


def handed(site: Site, errands: Sequence[T], *, together: bool) -> Iterator[Sequence[T]]:
    """Errands as the site's workers are handed them, a task each: several in one on the command's own workers alone."""
    if together and not site.cluster:
        return handfuls(errands, site.workers)
    return (errands[number : number + 1] for number in range(len(errands)))


def handfuls(errands: Sequence[T], hands: int) -> Iterator[Sequence[T]]:
    """Errands as workers are handed them: ever fewer at a time, so that all workers end together.

    Args:
        errands: in the order in which they are to be done.
        hands: how many the workers do at a time.
    """
    start = 0
    while start < len(errands):
        share = (len(errands) - start) // (_SHARES * hands)
        size = min(max(share, 1), _HANDFUL)
        yield errands[start : start + size]
        start += size


class Crew:
    """The workers of a flow, which start when they are first wanted."""

    def __init__(self, site: Site, stack: ExitStack) -> None:
        self._site, self._stack = site, stack
        self._runner: TaskRunner[Any] | None = None

    def runner(self) -> TaskRunner[Any]:
        """Prefect's task runner, started."""
        if self._runner is None:
            if self._site.runner not in _RUNNERS:
                raise ErrandError(f"runner {self._site.runner}: no cluster; expected {' or '.join(_RUNNERS)}")
            self._runner = self._stack.enter_context(_RUNNERS[self._site.runner](self._site))
        return self._runner


_crew: ContextVar[Crew | None] = ContextVar("crew", default=None)


@contextmanager
def crew(site: Site) -> Iterator[Crew]:
    """Keep one set of Dask or Ray workers, if any is wanted, until the block ends."""
    with ExitStack() as stack:
        own = Crew(site, stack)
        token = _crew.set(own)
        try:
            yield own
        finally:
            _crew.reset(token)


def _dask(site: Site) -> TaskRunner[Any]:
    try:
        from prefect_dask import DaskTaskRunner
    except ImportError as error:
        raise ErrandError("runner dask: prefect-dask is not installed; install bsl-pipeline[dask]") from error
    if site.cluster:
        return cast("TaskRunner[Any]", DaskTaskRunner(address=site.cluster))
    local: dict[str, object] = {"n_workers": site.workers, "threads_per_worker": 1, "processes": True}
    # Any free port: with none given it is 8787, for which two runs of one machine would meet.
    unseen = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
    dark = {"dashboard_address": None, "scheduler_kwargs": unseen}
    return cast("TaskRunner[Any]", DaskTaskRunner(cluster_kwargs=local | dark))


def _ray(site: Site) -> TaskRunner[Any]:
    try:
        from prefect_ray import RayTaskRunner
    except ImportError as error:
        raise ErrandError("runner ray: prefect-ray is not installed; install bsl-pipeline[ray]") from error
    if site.cluster:
        return cast("TaskRunner[Any]", RayTaskRunner(address=site.cluster))
    return cast("TaskRunner[Any]", RayTaskRunner(init_kwargs={"num_cpus": site.workers, "include_dashboard": False}))


_RUNNERS: Final[dict[str, Callable[[Site], TaskRunner[Any]]]] = {"dask": _dask, "ray": _ray}


def _task(some: Sequence[Errand]) -> Task[..., None]:
    title = some[0].title + (f", and {len(some) - 1} more" if len(some) > 1 else "")
    return Task(_receive, name=some[0].call.partition(":")[2], task_run_name=_escaped(title), persist_result=False)


def _receive(sent: list[dict[str, Any]], site: dict[str, Any]) -> None:
    here = Site.model_validate(site)
    for one in sent:
        run_errand(Errand.model_validate(one), here)


def _escaped(title: str) -> str:
    return title.replace("{", "{{").replace("}", "}}")  # Prefect formats it with the task's parameters


def _plain(value: object) -> JsonValue:
    return cast("JsonValue", TypeAdapter(type(value)).dump_python(value, mode="json"))
