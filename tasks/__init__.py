"""Stages: each loads its inputs from the store, lets `models` compute, and publishes one artifact."""

from __future__ import annotations

import os

# OpenMP threads that wait spin for microseconds, then sleep. By default libgomp spins for milliseconds, which makes
# small steps ten times slower if another process wants the cores. The variable is read when torch is loaded, which
# tasks do later.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
