"""The one way to make a stage: a call that finds its artifact in the store, or makes it.

Design choices
- Inside a flow run the call is a Prefect task with a cached result. Outside one, in a notebook or on a Dask worker, it
  is a plain call of the same function. The caller does not choose.
- The cache key is the artifact key, and the artifact's manifest is the cached record: nothing is written beside the
  artifact, so cache and store cannot disagree, and every machine that shares the store shares the cache.
- A hit counts only if the artifact is whole (`Store.defect`). Otherwise it is made again, with a warning that says why.
- The record that Prefect reads and keeps is the reference as JSON. Nothing is pickled.
- Prefect's locks are not used: publishing is idempotent, and a killed run's lock would stop the next one for ever.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from inspect import signature
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast

from prefect import Task
from prefect.runtime import flow_run
from prefect.serializers import JSONSerializer
from pydantic import BaseModel, ConfigDict

from models.runtime.precision import settled
from storage.artifacts.keys import artifact_key, canonical
from storage.artifacts.manifest import InputEntry, Provenance
from storage.artifacts.refs import ArtifactRef
from tasks.stage.device import device_of
from tasks.stage.metrics import metrics_of
from tasks.stage.progress import StageRun, planned, tell
from tasks.stage.records import ArtifactKey, ManifestRecords, lease
from tasks.stage.ui_page import collected, in_run

if TYPE_CHECKING:
    from pydantic import JsonValue

    from storage.artifacts.draft import Draft
    from storage.artifacts.store import Store
    from tasks.stage.run_context import RunContext

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R", bound=ArtifactRef)


@dataclass(frozen=True)
class StageContext:
    """What a stage is given besides its inputs.

    Attributes:
        site: where it runs.
        store: the store to read inputs from.
        draft: the artifact to fill.
    """

    site: RunContext
    store: Store
    draft: Draft

    @property
    def ref(self) -> ArtifactRef:
        """The artifact that is being made."""
        return self.draft.ref


_makers: dict[str, str] = {}  # stage name → where its function stands


class Stage(Generic[P, R]):
    """A cached function that publishes one artifact. Call it with a `RunContext` and the stage's own arguments.

    Attributes:
        name: the function's; it is in the key, so no two functions may share it.
        kind: kind of the artifact.
        version: stage version; tests/golden/test_stage_versions.py pins a fingerprint of the code beside it.
        module: where the stage stands; what it imports decides the artifact's content.
    """

    def __init__(
        self,
        compute: Callable[Concatenate[StageContext, P], None],
        *,
        ref: type[R],
        kind: str,
        version: int,
    ) -> None:
        maker = f"{compute.__module__}.{compute.__qualname__}"
        if _makers.setdefault(compute.__name__, maker) != maker:
            raise ValueError(
                f"{maker}: stage {compute.__name__!r} stands in {_makers[compute.__name__]} already, and both would "
                "make artifacts of one key; give one of them another name"
            )
        self.compute = compute
        self.name = compute.__name__
        self.ref_type = ref
        self.kind = kind
        self.version = version
        self.module = compute.__module__
        self._signature = signature(compute)
        self.__doc__ = compute.__doc__

    def __reduce__(self) -> tuple[object, ...]:
        """By name: what stands beside a stage in its module is not to travel with it to another process."""
        return _stage_of, (self.module, self.name, self.kind)

    def __call__(self, site: RunContext, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the artifact's reference, from the cache or of a new artifact; a dry run only notes the call."""
        arguments = self._arguments(site, *args, **kwargs)
        ref = self._ref(arguments)
        step = StageRun(self.name, ref)
        if planned(step):
            return ref
        lease(site.open_store(), [ref, *_inputs(arguments)], begin=in_run())
        tell("begins", step)
        try:
            with metrics_of(step):
                made = self._found_or_made(site, ref, arguments)
        except BaseException:
            tell("fails", step)
            raise
        tell("ends", step)
        return made

    def ref_of(self, site: RunContext, *args: P.args, **kwargs: P.kwargs) -> R:
        """Return the reference that a call with these arguments returns; nothing is made."""
        return self._ref(self._arguments(site, *args, **kwargs))

    def _found_or_made(self, site: RunContext, ref: R, arguments: Mapping[str, object]) -> R:
        if in_run():
            return cast("R", self._task(site, ref)(site=site, arguments=arguments))
        store = site.open_store()
        if store.defect(ref) is not None:
            return self.run(site, arguments)
        store.used(ref)
        return ref

    def run(self, site: RunContext, arguments: Mapping[str, object]) -> R:
        """Make and publish the artifact, cached or not."""
        arguments = _on_this_machine(site, arguments)
        ref = self._ref(arguments)
        step = StageRun(self.name, ref)
        tell("makes", step)
        store = site.open_store()
        with metrics_of(step) as metrics:
            with collected() as page, store.draft(ref, self._provenance(store, arguments)) as draft:
                cast("Callable[..., None]", self.compute)(StageContext(site, store, draft), **arguments)
            metrics.made(store.manifest(ref))
            page.publish(store, ref, self.__doc__ or "")
            store.drop_scratch(ref)
            logger.info("published %s", ref)
        return ref

    def _task(self, site: RunContext, ref: R) -> Task[..., Any]:
        task: Task[..., Any] = Task(
            self.run,
            name=self.name,
            description=self.__doc__,
            task_run_name=f"{self.name}-{ref.key[:8]}",
            cache_policy=ArtifactKey(key=ref.path.replace("/", "-")),
            persist_result=True,
            cache_result_in_memory=False,
            result_serializer=JSONSerializer(),
        )
        # Task() takes only blocks that were saved to a server; this one is made from its arguments on every machine.
        task.result_storage = ManifestRecords(site=site, ref=ref)
        return task

    def _arguments(self, site: RunContext, *args: object, **kwargs: object) -> dict[str, object]:
        bound = self._signature.bind(None, *args, **kwargs)
        bound.apply_defaults()
        return _on_this_machine(site, {name: bound.arguments[name] for name in list(self._signature.parameters)[1:]})

    def _ref(self, arguments: Mapping[str, object]) -> R:
        return self.ref_type(kind=self.kind, key=artifact_key(self.name, self.kind, self.version, ungrouped(arguments)))

    def _provenance(self, store: Store, arguments: Mapping[str, object]) -> Provenance:
        flat = ungrouped(arguments)
        inputs = {name: _input(store, ref) for name, value in flat.items() for name, ref in _refs(name, value)}
        config = {name: value for name, value in flat.items() if not any(_refs(name, value))}
        return Provenance(
            stage=self.name,
            stage_version=self.version,
            config=cast("dict[str, JsonValue]", canonical(config)),
            inputs=inputs,
            run=str(flow_run.id or ""),
        )


def stage(
    *, ref: type[R], version: int, kind: str | None = None
) -> Callable[[Callable[Concatenate[StageContext, P], None]], Stage[P, R]]:
    """Turn `compute(work, inputs…, config…)`, which fills `work.draft`, into a cached stage.

    Args:
        ref: class of the reference that the stage returns.
        version: bump it in the commit that changes what the stage makes.
        kind: kind of the artifact; that of `ref` unless given.
    """

    def wrap(compute: Callable[Concatenate[StageContext, P], None]) -> Stage[P, R]:
        name = kind or cast("str", ref.model_fields["kind"].default)
        return Stage(compute, ref=ref, kind=name, version=version)

    return wrap


def _stage_of(module: str, name: str, kind: str) -> Stage[..., Any]:
    known = cast("Stage[..., Any]", getattr(import_module(module), name))
    if known.kind == kind:
        return known
    return Stage(known.compute, ref=known.ref_type, kind=kind, version=known.version)


def _on_this_machine(site: RunContext, arguments: Mapping[str, object]) -> dict[str, object]:
    """The arguments with `auto` precisions as they are here, so that a key says what was computed."""
    return {name: settled(value, lambda: device_of(site)) for name, value in arguments.items()}


def _refs(name: str, value: object) -> Iterator[tuple[str, ArtifactRef]]:
    """The references in a stage argument: itself, or members of sequences, mappings, models as `name.0`, `name.x`."""
    if isinstance(value, ArtifactRef):
        yield name, value
    elif isinstance(value, BaseModel):
        for field in type(value).model_fields:
            yield from _refs(f"{name}.{field}", getattr(value, field))
    elif isinstance(value, Mapping):
        for part, member in value.items():
            yield from _refs(f"{name}.{part}", member)
    elif isinstance(value, Sequence) and not isinstance(value, str):
        for part, member in enumerate(value):
            yield from _refs(f"{name}.{part}", member)


def _inputs(arguments: Mapping[str, object]) -> list[ArtifactRef]:
    return [ref for name, value in ungrouped(arguments).items() for _, ref in _refs(name, value)]


def _input(store: Store, ref: ArtifactRef) -> InputEntry:
    return InputEntry(kind=ref.kind, key=ref.key, digest=store.manifest(ref).digest)


class StageInputs(BaseModel):
    """A group of stage arguments. Key and provenance have its fields as if each were an argument of the stage."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


def ungrouped(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return stage arguments with the fields of each group in place of the group.

    Args:
        arguments: name → argument of a stage.
    """
    flat: dict[str, object] = {}
    for name, value in arguments.items():
        if isinstance(value, StageInputs):
            flat |= {field: getattr(value, field) for field in type(value).model_fields}
        else:
            flat[name] = value
    return flat
