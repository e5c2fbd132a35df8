"""The device is found without importing torch where there can be no GPU, and tensors lie in huge pages."""

import ctypes
import os
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

FLAGS = """
from pathlib import Path
from bsl.tasks.stage.device import prepare_process
prepare_process()
import torch
tensor = torch.ones(1 << 22)
for line in Path("/proc/self/smaps").read_text().splitlines():
    if line[0] in "0123456789abcdef":
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        inside = first <= tensor.data_ptr() < last
    elif inside and line.startswith("VmFlags"):
        print("hg" in line.split())
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


@pytest.mark.skipif(not Path("/sys/kernel/mm/transparent_hugepage").exists(), reason="Linux has no huge pages here")
def test_prepared_process_asks_for_huge_pages():
    own = {name: value for name, value in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
    told = subprocess.run([sys.executable, "-c", FLAGS], capture_output=True, text=True, check=True, env=own).stdout
    assert told == "True\n"
