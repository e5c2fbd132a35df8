"""Metrics for operators, through OpenTelemetry; off without `bsl-pipeline[metrics]` and OpenTelemetry's variables.

The variables are OpenTelemetry's own (`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_METRICS_EXPORTER`, …). A meter provider set
by a surrounding program is used instead.
"""

from __future__ import annotations

import logging
import os
import threading
import time
import uuid
from contextlib import contextmanager
from contextvars import ContextVar
from functools import lru_cache
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import metrics

if TYPE_CHECKING:
    from collections.abc import Iterator

    from opentelemetry.metrics import MeterProvider

    from storage.artifacts.manifest import Manifest
    from tasks.stage.progress import StageRun

logger = logging.getLogger(__name__)

_ENDPOINTS: Final = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT")
_FLUSH_S: Final = 0.5  # a slower receiver gets only periodic exports for `_PAUSE_S` seconds
_PAUSE_S: Final = 60.0

_meter = metrics.get_meter("bsl")
_stages = _meter.create_counter("bsl.stages", "{stage}", "stages, by outcome: made, found, failed")
_duration = _meter.create_histogram("bsl.stage.duration", "s", "time from a stage's call to its artifact")
_bytes = _meter.create_counter("bsl.artifact.io", "By", "bytes published")
_tokens = _meter.create_counter("bsl.tokens", "{token}", "tokens of translations")
_steps = _meter.create_counter("bsl.training.steps", "{step}", "steps of trainings that ended")
_dropped = _meter.create_counter("bsl.dropped", "{sentence}", "dropped sentences and views, by reason")
_records = _meter.create_counter("bsl.log.records", "{record}", "warnings and errors, by the module that logs them")
_ROWS: Final = {  # tables whose rows are counted when they are made
    "corpus": _meter.create_counter("bsl.sentences", "{sentence}", "sentences of corpora"),
    "translations": _meter.create_counter("bsl.translations", "{sentence}", "sentences translated"),
    "views": _meter.create_counter("bsl.views", "{view}", "views, including the original sentence"),
    "pairs": _meter.create_counter("bsl.pairs", "{pair}", "training pairs"),
    "embeddings": _meter.create_counter("bsl.vectors", "{vector}", "dense vectors"),
}
_KEPT: Final = "kept"
_DROPS: Final = ("empty", "too_short", "too_long", "duplicates")  # reasons in an ingest's statistics

_paused_until = 0.0
_lock = threading.Lock()


class StageMetrics:
    """Counts one call of a stage: its outcome, duration and artifact.

    Attributes:
        step: The stage and its artifact.
    """

    def __init__(self, step: StageRun) -> None:
        self.step = step
        self._made = False
        self._started = time.monotonic()

    def made(self, manifest: Manifest) -> None:
        """Count the contents of the published artifact."""
        _provider()
        self._made = True
        attributes = {"bsl.stage": self.step.stage}
        _bytes.add(manifest.size, attributes)
        for table, counter in _ROWS.items():
            if table in manifest.tables:
                counter.add(manifest.tables[table].rows, attributes)
        figures: dict[str, Any] = manifest.figures
        if "target_tokens" in figures:
            _tokens.add(figures["target_tokens"], attributes)
        if manifest.kind == "checkpoint" and "steps" in figures:
            _steps.add(figures["steps"], attributes)
        for reason, count in _drops(figures):
            _dropped.add(count, {**attributes, "bsl.reason": reason})

    def close(self, error: str = "") -> None:
        """Count the outcome: failed (`error` is the class of the exception), made or found."""
        _provider()
        outcome = "failed" if error else "made" if self._made else "found"
        attributes = {"bsl.stage": self.step.stage, "bsl.outcome": outcome, **({"error.type": error} if error else {})}
        _stages.add(1, attributes)
        _duration.record(time.monotonic() - self._started, attributes)


_current: ContextVar[StageMetrics | None] = ContextVar("stage_metrics", default=None)


@contextmanager
def metrics_of(step: StageRun) -> Iterator[StageMetrics]:
    """Count a stage until the block ends; continue an open count of the same stage run.

    A stage's call and its work are separate blocks, because Prefect does not pass information between them.
    """
    outer = _current.get()
    if outer is not None and outer.step == step:
        yield outer
        return
    stage_metrics = StageMetrics(step)
    token = _current.set(stage_metrics)
    try:
        yield stage_metrics
    except BaseException as error:
        stage_metrics.close(type(error).__name__)
        raise
    else:
        stage_metrics.close()
    finally:
        _current.reset(token)
        if outer is None:  # a shard's metrics are sent with the surrounding stage's, or by the periodic export
            flush()


def current_step() -> StageRun | None:
    """Return the innermost stage running in this thread."""
    current = _current.get()
    return current.step if current else None


def count_record(record: logging.LogRecord) -> None:
    """Count a logged warning or error, such as a Hub error that is retried, or a damaged artifact."""
    if record.name != __name__:
        _provider()
        _records.add(1, {"bsl.module": record.name, "bsl.severity": record.levelname})


def flush() -> None:
    """Send the metrics now, so that a process killed later has reported its finished stages."""
    global _paused_until
    provider = _provider()
    started = time.monotonic()
    if provider is None or started < _paused_until:
        return
    provider.force_flush()
    if time.monotonic() - started > _FLUSH_S:
        _paused_until = time.monotonic() + _PAUSE_S


def _drops(figures: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Yield reason and count of dropped items: sentences of an ingest, views removed by a filter."""
    statistics = figures.get("statistics")
    if isinstance(statistics, dict):
        yield from ((reason, statistics[reason]) for reason in _DROPS if reason in statistics)
    for row in figures.get("outcomes") or ():
        if not row["outcome"].startswith(_KEPT):
            yield row["outcome"], row["n"]


def _provider() -> Any:  # noqa: ANN401 - the SDK's, which may not be installed
    """Return the meter provider that exports; None if no export is configured."""
    with _lock:  # points of a sweep run in parallel
        return _configured()


@lru_cache(maxsize=1)
def _configured() -> Any:  # noqa: ANN401
    """Return the provider already set, else one configured by the environment."""
    if hasattr(metrics.get_meter_provider(), "force_flush"):
        return metrics.get_meter_provider()
    exporter = os.environ.get("OTEL_METRICS_EXPORTER", "otlp" if any(map(os.environ.get, _ENDPOINTS)) else "none")
    if exporter == "none" or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return None
    try:
        provider = _new_provider(exporter)
    except ImportError as error:
        logger.warning("OTEL_* requests metrics, but %s, so none are sent. Install bsl-pipeline[metrics]", error)
        return None
    metrics.set_meter_provider(provider)
    return provider


def _new_provider(exporter: str) -> MeterProvider:
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    protocol = os.environ.get("OTEL_EXPORTER_OTLP_METRICS_PROTOCOL") or os.environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
    name = f"otlp_proto_{(protocol or 'http').partition('/')[0]}" if exporter == "otlp" else exporter
    exporters = entry_points(group="opentelemetry_metrics_exporter", name=name)
    if not exporters:
        raise ImportError(f"no exporter {name} is installed")
    # Parallel workers need distinct instance ids, so that a receiver can add up their counts.
    attributes = {"service.name": "bsl-pipeline", "service.instance.id": str(uuid.uuid4())}
    given = OTELResourceDetector().detect().attributes
    resource = Resource.create({key: value for key, value in attributes.items() if key not in given})
    return MeterProvider([PeriodicExportingMetricReader(next(iter(exporters)).load()())], resource)
