"""One training by several processes that share every batch, on one machine or on several.

torchrun starts them: its agent on each machine (`train_agent`) runs this module as often as the machine has processes.
The first machine is the one that runs the stage; the others join it (`bsl join`) and are told over the meeting what is
trained, so they need its address, the store and a number. The finished state is left in the first one's work folder.
"""

from __future__ import annotations

import json
import logging
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from models.errors import TrainingError
from storage.weights import ResolvedModel
from tasks.sending import sent_model
from tasks.site import Site
from tasks.stage.machine import cores, device_of, settle_threads
from tasks.stage.stopping import stop_requested
from tasks.train_job import NamedModel, TrainingJob, measured, run_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from models.training.config import TrainingConfig

logger = logging.getLogger(__name__)

JOB, SITE, ERROR, MEASURED = "job.json", "site.json", "error.txt", "measured.json"  # in the work folder
_POLL_S: Final = 0.2
_WAITING_S: Final = 2.0  # between two looks at whether the first machine is there


def train_together(job: TrainingJob, should_stop: Callable[[], bool]) -> None:
    """Train with all processes of the site until the finished state is in the work folder.

    Raises:
        TrainingError: The batch cannot be shared equally, or a process failed or was asked to stop.
    """
    require_equal_shares(job.config, job.site.trainers)
    job.work.mkdir(parents=True, exist_ok=True)
    if job.site.nodes > 1:
        job = _known_everywhere(job)
        logger.warning("at %s for %d more machines: `bsl join` there", job.site.rendezvous, job.site.nodes - 1)
    (job.work / JOB).write_text(job.model_dump_json(), encoding="utf-8")
    _run_agent(job.site, 0, job.work, should_stop)


def join_training(site: Site, node: int) -> None:
    """Take part in the next training of another machine, until it ends; that machine is waited for.

    Args:
        site: The store that all share, and this machine's own device, processes and cache.
        node: Number of this machine, from 1.

    Raises:
        TrainingError: There can be no such machine, or a process failed or was asked to stop.
    """
    if not 1 <= node < site.nodes:
        raise TrainingError(f"node {node} of {site.nodes}: expected 1 to {site.nodes - 1}; node 0 is who is joined")
    with stop_requested() as asked, site.open_store().workspace() as work:
        if _is_met(str(site.rendezvous), asked):
            _run_agent(site, node, work, asked)


def require_equal_shares(config: TrainingConfig, count: int) -> None:
    """Check that so many processes can share every batch equally.

    Raises:
        TrainingError: they cannot.
    """
    if count == 1:
        return
    if config.batch_size % count:
        raise TrainingError(
            f"a batch of {config.batch_size} pairs cannot be shared equally by {count} processes; set "
            "training.batch_size to a multiple of them, or another number of processes"
        )
    if not config.drop_last:
        raise TrainingError(
            f"{count} processes cannot share the smaller last batch of an epoch equally; set training.drop_last to "
            "true, or train in one process"
        )
    if config.order == "groups":
        raise TrainingError(
            f"{count} processes cannot share batches of whole groups equally, for their sizes differ; set "
            "training.order to random or given, or train in one process"
        )


def _known_everywhere(job: TrainingJob) -> TrainingJob:
    """The job with a start that every machine finds by its name."""
    if not isinstance(job.start, ResolvedModel):
        return job
    name, revision = sent_model(job.site.open_store(), job.start)
    return job.model_copy(update={"start": NamedModel(name=name, revision=revision)})


def _is_met(rendezvous: str, should_stop: Callable[[], bool]) -> bool:
    """Wait until the first machine is at the rendezvous; False if asked to stop before."""
    host, _, port = rendezvous.rpartition(":")
    while not should_stop():
        try:
            with socket.create_connection((host, int(port)), _WAITING_S):
                return True
        except OSError:
            time.sleep(_WAITING_S)
    return False


def _run_agent(site: Site, node: int, work: Path, should_stop: Callable[[], bool]) -> None:
    """Run torchrun's agent of this machine, which runs `_take_part` in each process, to its end."""
    for name in (ERROR, MEASURED):
        (work / name).unlink(missing_ok=True)
    (work / SITE).write_text(site.model_dump_json(), encoding="utf-8")
    host, _, port = (site.rendezvous or "").rpartition(":")
    meeting = ["--nnodes", str(site.nodes), "--node-rank", str(node), "--master-addr", host, "--master-port", port]
    launcher = [sys.executable, "-m", "tasks.train_agent", "--nproc-per-node", str(site.processes)]
    launcher += meeting if site.nodes > 1 else ["--standalone"]
    with subprocess.Popen([*launcher, "-m", "tasks.train_together", str(work)], stdin=subprocess.PIPE) as running:
        try:
            _await(running, should_stop)
        finally:
            running.terminate()  # nothing to a process that has ended
    if running.returncode != 0:
        told = work / ERROR
        reason = told.read_text(encoding="utf-8") if told.is_file() else "see what it printed above; run again to go on"
        status = running.returncode
        raise TrainingError(f"training in {site.trainers} processes ended with exit status {status}: {reason}")


def _await(running: subprocess.Popen[bytes], should_stop: Callable[[], bool]) -> None:
    asked = False
    while running.poll() is None:
        if should_stop() and not asked:
            running.send_signal(signal.SIGTERM)
            asked = True
        try:
            running.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            continue


def _take_part(work: Path) -> None:
    """What each process that torchrun starts does."""
    from models.training.processes import from_first, is_first, is_first_here, joined

    site = Site.model_validate_json((work / SITE).read_text(encoding="utf-8"))
    settle_threads(site.model_copy(update={"threads": site.threads or max(1, cores() // site.processes)}))
    with stop_requested() as asked, joined(device_of(site)) as device:
        logging.basicConfig(level=logging.INFO if is_first() else logging.WARNING)
        told = TrainingJob.model_validate_json(from_first(lambda: (work / JOB).read_text(encoding="utf-8")))
        job = told.model_copy(update={"site": site, "work": work})
        try:
            result, _ = run_job(job, device=device, should_stop=asked, on_progress=_log if is_first() else None)
        except TrainingError as error:
            if is_first_here():
                (work / ERROR).write_text(str(error), encoding="utf-8")
            sys.exit(1)
        if is_first():
            (work / MEASURED).write_text(json.dumps(measured(result)), encoding="utf-8")


def _log(done: int, total: int, detail: str) -> None:
    logger.info("training: %d of %d · %s", done, total, detail)


if __name__ == "__main__":
    _take_part(Path(sys.argv[1]))
