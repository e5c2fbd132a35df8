"""A test over a table: checks every row and lists all failures."""

from collections.abc import Callable, Iterable

import pytest

Cases = Iterable[object] | Callable[[], Iterable[object]]


def every(cases: Cases) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Turn `check(case)` into a test of all cases; a tuple is passed as several arguments.

    Args:
        cases: the rows, at least one; a function makes them when the test runs, not when it is collected.
    """

    def wrap(check: Callable[..., None]) -> Callable[[], None]:
        def test() -> None:
            found = cases() if callable(cases) else cases
            rows = [case if isinstance(case, tuple) else (case,) for case in found]
            assert rows, "no case to check"
            faults = [fault for row in rows for fault in _faults(check, row)]
            assert not faults, f"{len(faults)} of {len(rows)} fail:\n" + "\n".join(faults)

        test.__name__, test.__doc__ = check.__name__, check.__doc__
        return test

    return wrap


def _faults(check: Callable[..., None], row: tuple[object, ...]) -> list[str]:
    try:
        check(*row)
    except (AssertionError, pytest.fail.Exception) as error:
        return [f"{', '.join(map(str, row))}: {error}"]
    except Exception as error:
        error.add_note(f"case: {', '.join(map(str, row))}")
        raise
    return []
