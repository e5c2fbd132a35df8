"""Define cached stages: a call returns the artifact from the store, or makes and publishes it.

Design choices
- Inside a flow run the call is a Prefect task. Elsewhere, in a notebook or on a Dask worker, it is a plain call of the
  same function. The caller does not choose.
- One function asks the store, in both cases. In a task, a hit is the state Cached, which the task returns itself.
  Prefect's own cache and results are not used, so cache and store cannot disagree, and machines that share the store
  share the cache.
- A hit counts only if the artifact is intact (`Store.defect`). Otherwise it is made again, and a warning says why.
- Prefect's locks are not used: publishing is idempotent, and the lock of a killed run would block the next one forever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeAlias, TypeVar, cast

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.runtime import flow_run
from prefect.states import Completed
from prefect.transactions import CommitMode, transaction
from pydantic import BaseModel

from bsl.models.errors import ModelError
from bsl.models.runtime.precision import with_resolved_precision
from bsl.storage.artifacts.keys import artifact_key, canonical
from bsl.storage.artifacts.manifest import InputEntry, Provenance
from bsl.storage.artifacts.refs import ArtifactRef
from bsl.storage.record import Record
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.tasks.stage.device import computing, device_of, precision_of
from bsl.tasks.stage.lease import lease
from bsl.tasks.stage.progress import StageRun, is_planning, notify, planned, running
from bsl.tasks.stage.ui import collected, in_run

if TYPE_CHECKING:
    from pydantic import JsonValue

    from bsl.storage.artifacts.draft import Draft
    from bsl.storage.artifacts.store import Store
    from bsl.tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R", bound=ArtifactRef)
F = TypeVar("F")
Kind: TypeAlias = str | Callable[[Mapping[str, Any]], str]


@dataclass(frozen=True)
class StageContext:
    """What a stage receives in addition to its inputs: run context, store of the inputs, and the artifact to fill."""

    site: RunContext
    store: Store
    draft: Draft

    @property
    def ref(self) -> ArtifactRef:
        """Reference to the artifact being made."""
        return self.draft.ref


_makers: dict[str, str] = {}  # stage name → module and name of its function


class Stage(Generic[P, R]):
    """A cached function that publishes one artifact. Call it with a `RunContext` and the stage's own arguments.

    Attributes:
        name: name of the function; part of the key, so it must be unique.
        kind: kind of the artifact, or a function from the stage's arguments to it.
        version: stage version; tests/golden/stages.json pins it with the stage's output in tiny runs.
        uses_torch: whether `compute` runs with the run context's threads and arithmetic.
        module: module of the function.
    """

    def __init__(
        self,
        compute: Callable[Concatenate[StageContext, P], None],
        *,
        ref: type[R],
        kind: Kind,
        version: int,
        uses_torch: bool,
    ) -> None:
        maker = f"{compute.__module__}.{compute.__qualname__}"
        if _makers.setdefault(compute.__name__, maker) != maker:
            raise ValueError(
                f"{maker}: stage {compute.__name__!r} is already defined in {_makers[compute.__name__]}, and both "
                "would make artifacts with the same key. Rename one of them."
            )
        self.compute = compute
        self.name = compute.__name__
        self.ref_type = ref
        self.kind = kind
        self.version = version
        self.uses_torch = uses_torch
        self.module = compute.__module__
        self._signature = signature(compute)
        self.__doc__ = compute.__doc__

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle the stage by name, so that its module's other contents are not sent to another process."""
        return _stage_of, (self.module, self.name)

    def __call__(self, site: RunContext, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the reference to a cached or new artifact; a dry run only records the call."""
        arguments = self._arguments(site, *args, **kwargs)
        ref = self._ref(arguments)
        step = StageRun(self.name, ref)
        if is_planning():
            step = replace(step, config=_config(ungrouped(arguments)), inputs=tuple(_inputs(arguments)))
        if planned(step):
            return ref
        lease(site.open_store(), _inputs(arguments), ref, begin=in_run())
        notify("begins", step)
        try:
            with running(step):
                if in_run():
                    # Else Prefect shows a published artifact's task as RolledBack, if the stage that called it fails.
                    with transaction(commit_mode=CommitMode.EAGER):
                        self._task(ref)(site=site, arguments=arguments)
                else:
                    self._find_or_make(site, ref, arguments)
        except BaseException:
            notify("fails", step)
            raise
        notify("ends", step)
        return ref

    def ref_of(self, site: RunContext, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the reference that a call with these arguments would return, without making the artifact."""
        return self._ref(self._arguments(site, *args, **kwargs))

    def _task(self, ref: R) -> Callable[..., object]:
        def cached_or_made(site: RunContext, arguments: Mapping[str, object]) -> object:
            found = self._find_or_make(site, ref, arguments)
            return Completed(name="Cached", data=ref) if found else ref

        # Prefect draws an edge to a later task by the identity of the object in the state, which the caller returns.
        return Task(
            cached_or_made,
            name=self.name,
            description=self.__doc__,
            task_run_name=f"{self.name}-{ref.key[:8]}",
            cache_policy=NO_CACHE,
            persist_result=False,
        )

    def _find_or_make(self, site: RunContext, ref: R, arguments: Mapping[str, object]) -> bool:
        """Make and publish the artifact unless the store has it intact; return whether the store had it."""
        store = site.open_store()
        if (fault := store.defect(ref)) is None:
            store.used(ref)
            return True
        if store.was_published(ref):
            logger.warning("making %s again: %s", ref, fault)
        notify("makes", StageRun(self.name, ref))
        with (
            _named_models(arguments),
            collected() as page,
            store.draft(ref, self._provenance(store, arguments)) as draft,
            computing(site) if self.uses_torch else nullcontext(),
        ):
            cast("Callable[..., None]", self.compute)(StageContext(site, store, draft), **arguments)
        page.publish(store, ref, self.__doc__ or "")
        store.drop_scratch(ref)
        store.used(ref)
        logger.info("published %s", ref)
        return False

    def _arguments(self, site: RunContext, *args: object, **kwargs: object) -> dict[str, object]:
        bound = self._signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        return _on_this_machine(site, {name: bound.arguments[name] for name in list(self._signature.parameters)[1:]})

    def _ref(self, arguments: Mapping[str, object]) -> R:
        kind = self.kind if isinstance(self.kind, str) else self.kind(arguments)
        return self.ref_type(kind=kind, key=artifact_key(self.name, kind, self.version, ungrouped(arguments)))

    def _provenance(self, store: Store, arguments: Mapping[str, object]) -> Provenance:
        flat = ungrouped(arguments)
        inputs = {
            name: InputEntry(kind=ref.kind, key=ref.key, digest=store.manifest(ref).digest)
            for argument, value in flat.items()
            for name, ref in _found(ArtifactRef, argument, value)
        }
        return Provenance(
            stage=self.name,
            stage_version=self.version,
            config=_config(flat),
            inputs=inputs,
            run=str(flow_run.id or ""),
        )


def stage(
    *, ref: type[R], version: int, kind: Kind | None = None, uses_torch: bool = False
) -> Callable[[Callable[Concatenate[StageContext, P], None]], Stage[P, R]]:
    """Turn `compute(context, inputs…, config…)`, which fills `context.draft`, into a cached stage; see `Stage`.

    The kind is by default that of `ref`. Increase the version in the commit that changes the artifact.
    """

    def wrap(compute: Callable[Concatenate[StageContext, P], None]) -> Stage[P, R]:
        named = kind or cast("str", ref.model_fields["kind"].default)
        return Stage(compute, ref=ref, kind=named, version=version, uses_torch=uses_torch)

    return wrap


def _stage_of(module: str, name: str) -> Stage[..., Any]:
    return cast("Stage[..., Any]", getattr(import_module(module), name))


def _on_this_machine(site: RunContext, arguments: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments with `auto` precisions resolved for this device, so that keys name the precision used.

    A precision is the argument `precision`, or a field of a configuration.
    """
    known = {name: with_resolved_precision(value, lambda: device_of(site)) for name, value in arguments.items()}
    return known if known.get("precision") != "auto" else {**known, "precision": precision_of(site, "auto")}


def _config(arguments: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return the arguments that are no artifacts, as JSON."""
    config = {name: value for name, value in arguments.items() if not any(_found(ArtifactRef, name, value))}
    return cast("dict[str, JsonValue]", canonical(config))


@contextmanager
def _named_models(arguments: Mapping[str, object]) -> Iterator[None]:
    """Name the models among a stage's arguments in errors by their folder, which the stage knows by its digest only."""
    try:
        yield
    except ModelError as error:
        for _, model in _found(ResolvedModel, "", arguments):
            error.args = tuple(
                said.replace(model.identity, model.name) if isinstance(said, str) else said for said in error.args
            )
        raise


def _found(kind: type[F], name: str, value: object) -> Iterator[tuple[str, F]]:
    """Yield what is of a kind in a stage argument, also in its sequences, mappings and models (`name.0`, `name.x`)."""
    if isinstance(value, kind):
        yield name, value
    elif isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from _found(kind, f"{name}.{field}", getattr(value, field))
    elif isinstance(value, Mapping):
        for part, member in value.items():
            yield from _found(kind, f"{name}.{part}", member)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for part, member in enumerate(value):
            yield from _found(kind, f"{name}.{part}", member)


def _inputs(arguments: Mapping[str, object]) -> list[ArtifactRef]:
    return [ref for name, value in ungrouped(arguments).items() for _, ref in _found(ArtifactRef, name, value)]


class StageInputs(Record):
    """A group of stage arguments; in key and provenance each field counts as a separate argument."""


def ungrouped(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return stage arguments with each group replaced by its fields."""
    flat: dict[str, object] = {}
    for name, value in arguments.items():
        if isinstance(value, StageInputs):
            flat |= {field: getattr(value, field) for field in type(value).model_fields}
        else:
            flat[name] = value
    return flat
