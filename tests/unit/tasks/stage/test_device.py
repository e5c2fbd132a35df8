"""The device is found without importing torch where there can be no GPU."""

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

ASK = """
import sys
from bsl.tasks.stage.run_context import RunContext
from bsl.tasks.stage.device import device_of
print(device_of(RunContext()), "torch" in sys.modules)
"""


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return not sys.platform.startswith("linux") or Path("/dev/kfd").exists()
    return True


@pytest.mark.skipif(has_driver(), reason="a GPU's driver is installed, so torch has to say")
def test_device_without_gpu_driver_is_cpu_without_importing_torch():
    told = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=True).stdout
    assert told == "cpu False\n"
