"""Fixture of seeded random damage for the tests of hostile input."""

import sys

import pytest

from tests.hostile_values import SEED, Draw


@pytest.fixture
def draw(request, capsys):
    """Draw seeded random damage; print the seed and the number of inputs at the end."""
    made = Draw(f"{SEED} {request.node.name}")
    yield made
    told = f"BSL_FUZZ_SEED={SEED} {request.node.name}: {made.inputs:,} inputs, {dict(made.counts)}"
    with capsys.disabled():
        sys.stdout.write(f"\n  {told}\n")
