"""The table of an encoder's exported forms."""

import numpy as np

from tasks.serving.measures import Variant, variant_rows


def test_variant_speed_shows_the_range_over_passes():
    gold = np.arange(20.0)
    whole = Variant("fp32", ".", 1.0, 8, (900.0, 1000.0, 950.0), gold / 20)
    slow = Variant("other", "other", 1.0, 8, (500.0,), gold / 20)
    rows = variant_rows([whole, slow], gold)
    assert [row["sentences/s"] for row in rows] == ["1,000 [900 to 1,000]", "500"]
    assert [row["speedup"] for row in rows] == ["1.0", "0.5"]
