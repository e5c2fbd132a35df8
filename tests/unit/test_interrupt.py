"""SIGTERM raises a flag inside the block and does what it did outside."""

import os
import signal
import threading

from tasks.interrupt import stop_requested


def test_sigterm_raises_the_flag_and_the_old_handler_comes_back():
    heard = []
    before = signal.signal(signal.SIGTERM, lambda *_: heard.append("old"))
    try:
        with stop_requested() as asked:
            assert not asked()
            os.kill(os.getpid(), signal.SIGTERM)
            assert asked()
        assert heard == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert heard == ["old"]
    finally:
        signal.signal(signal.SIGTERM, before)


def test_in_another_thread_no_handler_is_touched():
    seen = []

    def look():
        with stop_requested() as asked:
            seen.extend([asked(), signal.getsignal(signal.SIGTERM)])

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert seen == [False, signal.getsignal(signal.SIGTERM)]
