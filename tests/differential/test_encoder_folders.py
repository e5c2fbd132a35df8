"""A change of any setting in an encoder's folder gives sentence-transformers' vectors, or an error that names it.

The change of a case depends only on its number.
"""

import logging
import warnings
from random import Random

import numpy as np
import pytest

from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import ModelError
from tests.differential.cases import FIRST, count
from tests.differential.encoder_folders import BASES, apply, built, changes_of, copied, in_format
from tests.layouts import TEXTS, opened

pytestmark = [pytest.mark.differential, pytest.mark.filterwarnings("ignore")]

GROUP = 25  # cases of one test, which share a base folder
GROUPS = range(FIRST // GROUP, (FIRST + count(50)) // GROUP)
SHOWN = [*TEXTS[::6], "The Man's café, 2 of 3 — naïve? " * 12]


@pytest.fixture(autouse=True)
def _quiet(caplog):
    caplog.set_level(logging.CRITICAL)


@pytest.mark.parametrize("group", GROUPS)
def test_changed_setting_gives_the_vectors_of_the_library_or_an_error(group, tmp_path):
    base = list(BASES)[(group * 7) % len(BASES)]
    ready = built(base, tmp_path)
    changes = changes_of(ready)
    faults = [
        fault
        for number in range(group * GROUP, (group + 1) * GROUP)
        if (fault := _fault(ready, base, changes, Random(number), tmp_path)) is not None
    ]
    assert not faults, "\n".join(faults)


def _fault(ready, base, changes, random, tmp_path):
    folder = copied(ready, tmp_path / "case")
    change = random.choice(changes)
    apply(change, folder)
    weights = in_format(folder, random)
    case = f"{base}, {weights}: {change.file} {change.path} = {change.value!r:.80}"
    try:
        ours = SentenceEncoder.load(folder).encode(SHOWN)
    except ModelError as error:
        return None if "\n" not in str(error) and len(str(error)) > 20 else f"{case}: obscure error {error}"
    except Exception as error:
        return f"{case}: {type(error).__name__}: {error!s:.200}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            theirs = opened(folder).encode(SHOWN, batch_size=1, show_progress_bar=False)
    except Exception:  # the library cannot open the folder: there is no vector to compare with
        return None
    if ours.shape != theirs.shape:
        return f"{case}: vectors of shape {ours.shape}, the library's {theirs.shape}"
    scale = max(1.0, float(np.abs(theirs).max()))
    difference = float(np.abs(ours - theirs).max())
    return None if difference <= 1e-5 * scale else f"{case}: vectors differ by {difference:.2g}"
