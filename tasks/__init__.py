"""Stages: each loads its inputs from the store, lets `models` compute, and publishes one artifact."""

from __future__ import annotations

import os

# Threads that wait for one another spin for microseconds, then sleep. By default libgomp spins for milliseconds, which
# makes small steps ten times slower wherever another process wants the cores. It is read when torch is loaded: after
# this, since tasks import torch late.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "2000")
