"""Number of generated cases, and the first one: a case depends only on its number.

`BSL_GENERATED` is the number of cases of each test; `BSL_FIRST_CASE` starts at another number, for other cases.
"""

import os
from typing import Final

FIRST: Final = int(os.environ.get("BSL_FIRST_CASE", "0"))


def count(sample):
    """Return the number of cases; `sample` without `BSL_GENERATED`, as in `make test`."""
    return int(os.environ.get("BSL_GENERATED", "0")) or sample
