"""The Hugging Face Hub, as far as sources and models need it: which commit, and its bytes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from storage.errors import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS_TO_ANSWER: Final = 10.0  # a Hub that cannot be reached must not cost a run minutes
COMMIT: Final = re.compile(r"[0-9a-f]{40}")
_MODEL_FILES: Final = ("*.safetensors", "*.json", "*.txt", "*.model", "*.spm", "*.md")
_OTHER_RUNTIMES: Final = ("onnx/*", "openvino/*", "coreml/*", "*.gguf")


class HubTable(BaseModel):
    """One split of a data set on the Hub."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    hub_id: str
    """`organisation/name`."""
    config: str | None = None
    """Configuration, where the set has several."""
    split: str = "train"
    """Split, by the Hub's name."""
    revision: str | None = None
    """Commit, tag or branch; the newest commit if None."""

    @property
    def address(self) -> str:
        """What messages and keys call it."""
        config = f"/{self.config}" if self.config else ""
        return f"{self.hub_id}@{self.revision}{config}/{self.split}"


def pin_table(table: HubTable) -> HubTable:
    """The same table at the commit that its revision means now; a full commit needs no Hub to say so.

    Raises:
        SourceError: the Hub cannot be reached or has no such data set.
    """
    if table.revision and COMMIT.fullmatch(table.revision):
        return table
    from huggingface_hub import HfApi  # the client is slow to import and most runs never need it

    try:
        info = HfApi().dataset_info(table.hub_id, revision=table.revision, timeout=SECONDS_TO_ANSWER)
    except Exception as error:  # the client lets its transport's own errors through, which share no base with the rest
        raise _unreachable(table.address, error) from error
    return table.model_copy(update={"revision": info.sha or table.revision})


def stream_table(table: HubTable, batch_rows: int) -> tuple[tuple[str, ...], Iterator[pa.RecordBatch]]:
    """The names of a table's columns, and its rows in batches; nothing is kept on the disk.

    Raises:
        SourceError: the Hub cannot be reached, or has no such configuration or split.
    """
    from datasets import load_dataset  # seconds to import

    try:
        rows = load_dataset(table.hub_id, table.config, split=table.split, revision=table.revision, streaming=True)
        names = rows.column_names or rows.resolve_features().column_names
    except Exception as error:  # as in pin_table
        raise _unreachable(table.address, error) from error
    return tuple(names or ()), _batches(table, rows.with_format("arrow").iter(batch_size=batch_rows))


def _batches(table: HubTable, tables: Iterator[pa.Table]) -> Iterator[pa.RecordBatch]:
    try:
        for rows in tables:
            yield from rows.to_batches()
    except (OSError, pa.ArrowException) as error:
        raise SourceError(f"{table.address}: the Hub broke off ({error}); run again") from error


def pin_model(hub_id: str, revision: str | None) -> str:
    """The commit that a model's revision means now.

    Raises:
        SourceError: the Hub cannot be reached or has no such model.
    """
    from huggingface_hub import HfApi

    try:
        return str(HfApi().model_info(hub_id, revision=revision, timeout=SECONDS_TO_ANSWER).sha)
    except Exception as error:  # as in pin_table
        raise _unreachable(f"{hub_id}@{revision or 'main'}", error) from error


def download_model(hub_id: str, revision: str | None, cache: Path | None) -> tuple[Path, str]:
    """A local folder with a model's weights, configuration and tokenizer, and the commit they are of.

    Only safetensors are taken where there are any; pickled weights come only from repositories that have no others.

    Raises:
        SourceError: the Hub has no such model, or cannot be reached and the cache does not hold it.
    """
    from huggingface_hub import snapshot_download

    def fetch(*patterns: str) -> Path:
        return Path(
            snapshot_download(
                hub_id,
                revision=revision,
                cache_dir=cache,
                allow_patterns=list(patterns),
                ignore_patterns=list(_OTHER_RUNTIMES),
                etag_timeout=SECONDS_TO_ANSWER,
            )
        )

    try:
        folder = fetch(*_MODEL_FILES)
        if not any(folder.rglob("*.safetensors")):
            folder = fetch(*_MODEL_FILES, "pytorch_model.bin")
    except Exception as error:  # as in pin_table
        raise _unreachable(f"{hub_id}@{revision or 'main'}", error) from error
    return folder, folder.name if COMMIT.fullmatch(folder.name) else str(revision)


def _unreachable(address: str, error: Exception) -> SourceError:
    reason = (str(error).strip() or type(error).__name__).splitlines()[0]
    return SourceError(
        f"{address} cannot be had from the Hub ({reason}); expected a reachable Hub or a mirror folder that holds it; "
        "set BSL_DATA_MIRROR to a folder filled on a connected machine, give a local path, or let `bsl doctor` say "
        "what is within reach"
    )
