"""What `bsl adapt` refuses before any work."""

from __future__ import annotations

import pytest

from flows.config import overridden
from flows.recipes.adapt import AdaptConfig


@pytest.mark.parametrize("views", ["round trips", "both"])
@pytest.mark.parametrize("change", [{"lang": "fi"}, {"translators": ""}, {"translated": 0}])
def test_round_trips_that_nobody_can_make_are_refused(views: str, change: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=f"views '{views}' of text in .* and back; give other translators"):
        overridden(AdaptConfig(), {"views": views, **change})


@pytest.mark.parametrize("lang", ["ar", "de", "en", "es", "fr", "it", "nl", "ru", "tr"])
def test_opus_mt_knows_a_way_and_back(lang: str) -> None:
    trip = AdaptConfig(lang=lang, views="round trips", translators="opus-mt").trip
    assert trip is not None
    assert trip.hops[0].source_lang == trip.lang == lang
