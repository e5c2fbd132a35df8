"""What would end a run at once is said before it is started."""

from pathlib import Path

import pytest

from flows.recipes import recipe
from models.augmentation.config import AugmentConfig, round_trip
from models.translation.catalog import MINI
from models.translation.config import ShortlistConfig
from tasks.doctor import examine
from tasks.site import Site


@pytest.mark.parametrize(
    ("backend", "shortlist", "verdict", "found"),
    [
        ("transformers", ShortlistConfig(), "NO", "a shortlist of output pieces needs ctranslate2"),
        ("transformers", None, "ok", "de→en on transformers in fp32"),
        ("auto", ShortlistConfig(), "ok", "de→en on ctranslate2 in int8"),
    ],
)
def test_translators_are_looked_at_as_the_run_resolves_them(tmp_path: Path, backend, shortlist, verdict, found) -> None:
    back = MINI["de-en"].model_copy(update={"backend": backend})
    augment = AugmentConfig(translations=(round_trip(MINI["en-de"], back),), shortlist=shortlist)
    run = recipe("tiny").model_copy(update={"augment": augment})
    site = Site(store=str(tmp_path / "store"), device="cpu")
    checks = [check for check in examine(site, run, []) if check.subject.startswith("translator")]
    assert len(checks) == 2
    assert checks[0].verdict == "ok"
    assert (checks[1].subject, checks[1].verdict) == (f"translator {back.model}", verdict)
    assert checks[1].found.startswith(found)
