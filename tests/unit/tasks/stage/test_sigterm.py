"""SIGTERM sets a flag inside the block, and is passed to the former handler at its end."""

import logging
import os
import signal
import threading

import pytest

from bsl.tasks.stage.sigterm import stop_requested


@pytest.fixture
def heard():
    """Return the calls of the handler outside the block."""
    told = []
    before = signal.signal(signal.SIGTERM, lambda *_: told.append("old"))
    yield told
    signal.signal(signal.SIGTERM, before)


def test_sigterm_sets_the_flag_and_reaches_the_former_handler(heard):
    with stop_requested():
        pass
    assert heard == []
    with stop_requested() as asked:
        assert not asked()
        os.kill(os.getpid(), signal.SIGTERM)
        assert asked()
        assert heard == []
    assert heard == ["old"]
    os.kill(os.getpid(), signal.SIGTERM)
    assert heard == ["old", "old"]


def test_signals_end_the_work_although_they_interrupt_its_log_lines(heard, caplog):
    """Regression: the handler logged. Prefect's queue of log lines has a lock that its owner cannot take again.

    `timeout` and some service managers send SIGTERM twice: to the process, and to its group.
    """
    writing, interrupted = threading.Lock(), threading.Event()

    class Queue(logging.Handler):
        def emit(self, record):
            assert writing.acquire(timeout=60), "a log line waits for the lock of the line that it interrupted"
            try:
                if record.msg == "of the work":
                    os.kill(os.getpid(), signal.SIGTERM)
                    os.kill(os.getpid(), signal.SIGTERM)
                    interrupted.set()
            finally:
                writing.release()

    queue, log = Queue(), logging.getLogger("bsl.tasks.stage.sigterm")
    log.addHandler(queue)
    try:
        with stop_requested() as asked:
            log.warning("of the work")
            assert asked()
    finally:
        log.removeHandler(queue)
    assert interrupted.is_set()
    assert heard == ["old"]
    assert caplog.messages.count("SIGTERM: finishing the current unit of work first") == 1


def test_error_raised_after_sigterm_is_logged(heard, caplog):
    def work():
        with stop_requested():
            os.kill(os.getpid(), signal.SIGTERM)
            raise ValueError("its state is saved")

    with pytest.raises(ValueError, match="saved"):
        work()
    assert "its state is saved" in caplog.messages
    assert heard == ["old"]


def test_signal_handler_is_unchanged_in_another_thread():
    seen = []

    def look():
        with stop_requested() as asked:
            seen.extend([asked(), signal.getsignal(signal.SIGTERM)])

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [False, signal.getsignal(signal.SIGTERM)]
