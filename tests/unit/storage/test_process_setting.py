"""Blocks of a process setting restore the value from before the first, in whatever order they close."""

import contextlib
import threading

import pytest

from bsl.storage.process_setting import ProcessSetting


@pytest.fixture
def shared():
    values = ["host"]
    return values, ProcessSetting(lambda: values[0], lambda value: values.__setitem__(0, value))


def test_failing_block_restores_the_value_that_it_found(shared):
    values, setting = shared
    with setting.set_to("ours"):
        assert values == ["ours"]
    values[0] = "changed"
    with pytest.raises(KeyError), setting.set_to("failing"):
        raise KeyError
    assert values == ["changed"]


@pytest.mark.parametrize("first_closes", [True, False])
def test_overlapping_blocks_restore_the_callers_value(shared, first_closes):
    """The first thread of `quiet_transformers` to end used to restore the other's silence for ever."""
    values, setting = shared
    one, two = contextlib.ExitStack(), contextlib.ExitStack()
    one.enter_context(setting.set_to("one"))
    two.enter_context(setting.set_to("two"))
    (one if first_closes else two).close()
    assert values == ["two" if first_closes else "one"]
    (two if first_closes else one).close()
    assert values == ["host"]


def test_block_of_another_thread_opens_only_after_a_closing_one_has_restored_the_value():
    """Otherwise it takes the closing block's value for the caller's, and restores it for ever."""
    values, entered, restored = ["host"], threading.Event(), threading.Event()

    def write(value):
        if value == "host" and not other.ident:
            other.start()
            entered.wait(0.2)  # in vain: the other block waits for this one
        values[0] = value

    def open_block():
        with setting.set_to("other"):
            entered.set()
            restored.wait(10)

    setting, other = ProcessSetting(lambda: values[0], write), threading.Thread(target=open_block)
    with setting.set_to("one"):
        pass
    restored.set()
    other.join()
    assert values == ["host"]
