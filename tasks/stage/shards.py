"""Many calls of one stage: here in their order, or on the workers of a Dask cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from storage.artifacts.refs import ArtifactRef
from tasks.stage.cluster import ClusterError, on_cluster
from tasks.stage.progress import Step, is_planning, watchers

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

    from tasks.stage.cached import Stage
    from tasks.stage.run_context import RunContext

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
        step = Step(stage.name, ref)
        for watcher in watchers():
            watcher.begins(step)
            watcher.ends(step)
        yield ref
