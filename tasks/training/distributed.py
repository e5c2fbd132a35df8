"""Distributed training by several processes of this machine, which share every batch.

This module runs in three roles: in the stage, as torchrun's agent, and in each process that the agent starts. The final
state is written to the work folder.
"""

from __future__ import annotations

import logging
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bsl.models.errors import TrainingError
from bsl.tasks.figures import Speed
from bsl.tasks.stage.device import computing, cores, device_of
from bsl.tasks.stage.sigterm import end_with_parent, stop_requested
from bsl.tasks.training.worker import TrainingJob, run_job

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsl.models.training.config import TrainingConfig

logger = logging.getLogger(__name__)

JOB, ERROR, MEASURED = "job.json", "error.txt", "measured.json"  # in the work folder
_MODULE, _AGENT = "bsl.tasks.training.distributed", "agent"
_POLL_S: Final = 0.2


def train_together(job: TrainingJob, should_stop: Callable[[], bool]) -> None:
    """Train with the run context's number of processes until the final state is in the work folder.

    Raises:
        TrainingError: The batch cannot be shared equally, or a process failed or was asked to stop.
    """
    require_equal_shares(job.config, job.site.processes)
    job.work.mkdir(parents=True, exist_ok=True)
    (job.work / JOB).write_text(job.model_dump_json(), encoding="utf-8")
    _run_agent(job.site.processes, job.work, should_stop)


def require_equal_shares(config: TrainingConfig, count: int) -> None:
    """Check that `count` processes can share every batch equally.

    Raises:
        TrainingError: They cannot.
    """
    if count == 1:
        return
    if config.batch_size % count:
        raise TrainingError(
            f"a batch of {config.batch_size} pairs cannot be shared equally by {count} processes. Set "
            f"training.batch_size to a multiple of {count}, or use another number of processes."
        )
    if not config.drop_last:
        raise TrainingError(
            f"{count} processes cannot share the smaller last batch of an epoch equally. Set training.drop_last to "
            "true, or train in one process."
        )
    if config.order == "groups":
        raise TrainingError(
            f"{count} processes cannot share batches of complete groups equally because their sizes differ. Set "
            "training.order to random or given, or train in one process."
        )


def _run_agent(processes: int, work: Path, should_stop: Callable[[], bool]) -> None:
    """Run torchrun's agent to its end; it runs `_train_in_process` in each process."""
    for name in (ERROR, MEASURED):
        (work / name).unlink(missing_ok=True)
    agent = [sys.executable, "-m", _MODULE, _AGENT, "--nproc-per-node", str(processes), "--standalone"]
    # The agent's standard input closes when this process ends, which ends the agent.
    with subprocess.Popen([*agent, "-m", _MODULE, str(work)], stdin=subprocess.PIPE) as running:
        try:
            _await(running, should_stop)
        finally:
            running.terminate()  # no effect on a process that has ended
    if running.returncode != 0:
        error = work / ERROR
        reason = error.read_text(encoding="utf-8") if error.is_file() else "see its output above. Run again to resume."
        status = running.returncode
        raise TrainingError(f"training in {processes} processes ended with exit status {status}: {reason}")


def _await(running: subprocess.Popen[bytes], should_stop: Callable[[], bool]) -> None:
    stopping = False
    while running.poll() is None:
        if should_stop() and not stopping:
            running.send_signal(signal.SIGTERM)
            stopping = True
        try:
            running.wait(_POLL_S)
        except subprocess.TimeoutExpired:
            continue


def _train_in_process(work: Path) -> None:
    """Train in one of the processes that torchrun starts."""
    from bsl.models.training.distributed import is_first, joined

    job = TrainingJob.model_validate_json((work / JOB).read_text(encoding="utf-8"))
    site = job.site
    own = site.model_copy(update={"threads": site.threads or max(1, cores() // site.processes)})
    with computing(own), stop_requested() as should_stop, joined(device_of(site)) as device:
        logging.basicConfig(level=logging.INFO if is_first() else logging.WARNING)
        try:
            result, _ = run_job(job, device=device, should_stop=should_stop, on_progress=_log if is_first() else None)
        except TrainingError as error:
            if is_first():
                (work / ERROR).write_text(str(error), encoding="utf-8")
            sys.exit(1)
        if is_first():
            (work / MEASURED).write_text(Speed.of(result).model_dump_json(), encoding="utf-8")


def _log(done: int, total: int, detail: str) -> None:
    logger.info("training: %d of %d · %s", done, total, detail)


def _run_torchrun(arguments: list[str]) -> None:
    """Run torchrun's agent, which stops its processes at SIGTERM and ends with the stage's process."""
    from torch.distributed.run import main

    end_with_parent(sys.stdin.fileno())
    main(arguments)


if __name__ == "__main__":
    if sys.argv[1] == _AGENT:
        _run_torchrun(sys.argv[2:])
    else:
        _train_in_process(Path(sys.argv[1]))
