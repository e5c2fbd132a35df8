"""Random hostile values: `BSL_FUZZ_INPUTS` sets their number, `BSL_FUZZ_SEED=…` repeats them."""

import os
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeVar

T = TypeVar("T")

# Read at import: the shared fixture removes these variables from tests.
INPUTS = int(os.environ.get("BSL_FUZZ_INPUTS", "0"))
SECONDS = 2.0  # time limit of the short form, over all tests
SEED = int(os.environ.get("BSL_FUZZ_SEED", "1"))

VALUES: list[object] = [
    None, True, False, 0, -1, 1, 2**31, 2**63, 2**64, -(2**63), 10**400, 0.0, -0.0, 1e308, float("inf"), float("nan"),
    1e-320, "", " ", "x", "é", "\x00", "\ud800", "a\nb", "../..", "/etc/passwd", "x" * 5000, "Infinity", "[/]", "<b>",
    "%s", "{}", [], {}, [[]], [None], {"": ""}, {"a": {"b": {"c": []}}}, ["x", "x"], [1, "a", None],
]  # fmt: skip


class Draw:
    """Seeded random numbers for one test."""

    def __init__(self, seed: str) -> None:
        self.dice = random.Random(seed)
        self.counts: Counter[str] = Counter()
        self.inputs = 0
        self.refusal = ""

    def tried(self, act: Callable[[], T], *refusals: type[Exception]) -> T | None:
        """Return the result of a call, or None if it raises one of the expected errors; count both."""
        try:
            found = act()
        except refusals as error:
            self.refusal = str(error)
            self.counts["refused"] += 1
            return None
        self.counts["taken"] += 1
        return found

    def rounds(self, share: float) -> Iterator[int]:
        """Yield numbers until the test has used its share of the inputs or of the time."""
        end = time.monotonic() + SECONDS * share
        while self.inputs < INPUTS * share if INPUTS else time.monotonic() < end:
            yield self.inputs
            self.inputs += 1


def spoiled(value: object, dice: random.Random) -> object:
    """Return a JSON value with a random part replaced, removed or added."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        name = dice.choice(list(value))
        rest = dict(value)
        match dice.randrange(6):
            case 0:
                del rest[name]
            case 1:
                rest[str(dice.choice(["surprise", "../x", "a\0", "x" * 3000, ""]))] = rest[name]
            case _:
                rest[name] = spoiled(rest[name], dice)
        return rest
    if isinstance(value, list) and value and dice.random() < 0.7:
        place = dice.randrange(len(value))
        return [*value[:place], spoiled(value[place], dice), *value[place + 1 :]]
    return dice.choice(VALUES)
