"""Benchmarks: of a device (`python -m benchmarks gpu|cpu`), of speed against peers, and of the quality of results."""

from __future__ import annotations

from bsl.tasks.stage.device import prepare_process

prepare_process()  # before torch is imported: memory and waiting threads as in commands, for peers too
