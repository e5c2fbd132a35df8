"""What Prefect sees of the store: the key and the result record of one artifact."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from prefect.cache_policies import CachePolicy
from prefect.filesystems import WritableFileSystem
from prefect.results import ResultStore
from prefect.serializers import JSONSerializer

from storage.artifacts.refs import ArtifactRef
from storage.errors import ArtifactMissingError
from tasks.stage.run_context import RunContext

if TYPE_CHECKING:
    from prefect.context import TaskRunContext

logger = logging.getLogger(__name__)


@dataclass
class ArtifactKey(CachePolicy):
    """Prefect's cache key of a stage is its artifact key, known before the task starts."""

    key: str = ""

    def compute_key(
        self,
        task_ctx: TaskRunContext,  # noqa: ARG002 - Prefect's signature
        inputs: dict[str, Any],  # noqa: ARG002
        flow_parameters: dict[str, Any],  # noqa: ARG002
        **kwargs: Any,  # noqa: ANN401, ARG002
    ) -> str:
        """The key."""
        return self.key


class ManifestRecords(WritableFileSystem):
    """Prefect's view of one artifact: its result record can be read exactly if the artifact is whole."""

    _block_type_name = "Artifact manifests"

    site: RunContext
    ref: ArtifactRef

    def read_path(self, path: str, **_: bool) -> bytes:  # type: ignore[override] # Prefect calls it with _sync=True
        """The result record, made from the reference.

        Raises:
            ArtifactMissingError: the artifact is not there or not whole, which Prefect takes as a miss.
        """
        store = self.site.open_store()
        fault = store.defect(self.ref)
        if fault is None:
            store.used(self.ref)
            return ResultStore(serializer=JSONSerializer()).create_result_record(self.ref, key=path).serialize()
        if store.was_published(self.ref):
            logger.warning("making %s again: %s", self.ref, fault)
        raise ArtifactMissingError(fault)

    def write_path(self, path: str, content: bytes, **_: bool) -> None:  # type: ignore[override] # noqa: ARG002
        """Keep the reference as JSON, so that a lost artifact is noticed; the artifact alone decides a hit."""
        self.site.open_store().remember(self.ref, content)

    def _resolve_path(self, path: str) -> None:
        """None: a key is a name, not a path. Prefect asks storage that was not saved to a server for its base path."""
