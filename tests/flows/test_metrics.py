"""Metrics reach an OTLP receiver, also from killed processes; a receiver that is gone stops no run."""

import http.server
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator

import pytest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.servers import ROOT, free_port

STAGES = "bsl.stages"


class Receiver(http.server.ThreadingHTTPServer):
    """OTLP receiver that keeps the newest metrics of each process."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.resources: list[dict[str, str]] = []
        self.figures: Counter[tuple[str, str]] = Counter()
        self.units: dict[str, str] = {}

    def take(self, request: ExportMetricsServiceRequest) -> None:
        for whole in request.resource_metrics:
            self.resources.append({pair.key: pair.value.string_value for pair in whole.resource.attributes})
            for metric in (metric for scope in whole.scope_metrics for metric in scope.metrics):
                self.units[metric.name] = metric.unit
                for point in (*metric.sum.data_points, *metric.histogram.data_points):
                    told = " ".join(sorted(pair.value.string_value for pair in point.attributes))
                    value = point.as_int if metric.WhichOneof("data") == "sum" else point.count
                    self.figures[metric.name, told] = value


class Answer(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert self.path == "/v1/metrics"
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.take(ExportMetricsServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def run(environment: dict[str, str], *words: str, **own: str) -> subprocess.CompletedProcess[str]:
    known = {**environment, "PYTHONPATH": str(ROOT), **own}
    return subprocess.run([sys.executable, *words], env=known, capture_output=True, text=True, timeout=120)


def test_otlp_receiver_gets_stage_metrics_of_a_killed_process(receiver, environment, tmp_path):
    place = f"http://127.0.0.1:{receiver.server_port}"
    script = str(ROOT / "tests" / "flows" / "count_and_die.py")
    ended = run(environment, script, str(tmp_path / "store"), OTEL_EXPORTER_OTLP_ENDPOINT=place)
    assert ended.returncode == -9, ended.stderr
    by_outcome = {about: value for (name, about), value in receiver.figures.items() if name == STAGES}
    assert by_outcome == {
        "made sentences": 2,  # one by a flow, one by a worker
        "doubled made": 1,
        "found sentences": 1,
        "doubled found": 1,
        "ArithmeticError counting failed": 1,
    }
    assert receiver.figures["bsl.stage.duration", "made sentences"] == 2
    assert receiver.figures["bsl.sentences", "sentences"] == 3 + 5
    assert receiver.figures["bsl.pairs", "doubled"] == 3
    assert receiver.figures["bsl.artifact.io", "doubled"] > 1000
    assert receiver.figures["bsl.log.records", "WARNING storage.hub.faults"] == 1
    assert "bsl.tokens" not in receiver.units  # its artifact was not published
    assert receiver.units["bsl.artifact.io"] == "By"
    assert {resource["service.name"] for resource in receiver.resources} == {"bsl-pipeline"}
    assert len({resource["service.instance.id"] for resource in receiver.resources}) == 1


def test_unreachable_otlp_receiver_does_not_fail_the_run(environment, tmp_path):
    code = "import sys; from tests.flows.test_cached import both; from tasks.stage.run_context import RunContext\n"
    code += "for rows in (1, 2): both(RunContext(store=sys.argv[1]), rows)"
    gone = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}",
        "OTEL_EXPORTER_OTLP_TIMEOUT": "2",
        "OTEL_SERVICE_NAME": "mine",
    }
    started = time.monotonic()
    ended = run(environment, "-c", code, str(tmp_path / "store"), **gone)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr.count("Failed to export metrics") == 2, ended.stderr  # after the first stage, and at the end
    assert time.monotonic() - started < 100


def test_missing_metrics_exporter_warning_names_the_extra(environment, tmp_path):
    code = "import sys; from tests.flows.test_cached import *; from tasks.stage.run_context import RunContext\n"
    code += "sentences(RunContext(store=sys.argv[1]), Size(rows=1))"
    ended = run(environment, "-c", code, str(tmp_path / "store"), OTEL_METRICS_EXPORTER="carrier-pigeon")
    assert ended.returncode == 0, ended.stderr
    assert "no exporter carrier-pigeon is installed, so none are sent. Install bsl-pipeline[metrics]" in ended.stderr
