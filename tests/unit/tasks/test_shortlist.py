"""Which sentences are the sample, and which translator a shortlist makes."""

import random
from pathlib import Path

import polars as pl
import pytest

from models.partitions import in_range
from models.translation.catalog import MINI
from models.translation.config import ShortlistConfig
from models.translation.errors import TranslatorLoadError
from storage.manifest import Provenance
from storage.refs import ShortlistRef
from storage.schemas import SHORTLIST
from storage.store import Store
from tasks.hop import find_hop
from tasks.shortlist import last_of_sample
from tasks.site import Site

SETTINGS = ShortlistConfig(sample=100, pieces=100)


@pytest.mark.parametrize("bits", [0, 1, 4])
def test_the_sample_is_the_smallest_ids_however_they_are_cut(bits: int) -> None:
    chance = random.Random(3)
    ids = [chance.getrandbits(64) for _ in range(50)]
    frame = pl.LazyFrame({"sentence_id": ids}, schema={"sentence_id": pl.UInt64})
    found = [last_of_sample(lambda n: in_range(frame, n, bits), 1 << bits, sample) for sample in (1, 20, 49, 50, 51)]
    assert found == [sorted(ids)[0], sorted(ids)[19], sorted(ids)[48], None, None]


def listed(store: Store, key: str, counts: dict[str, int]) -> ShortlistRef:
    ref = ShortlistRef(key=key * 64)
    with store.draft(ref, Provenance(stage_version=1, config={})) as draft:
        draft.write(pl.DataFrame([*counts.items()], schema=SHORTLIST, orient="row"))
    return ref


def test_the_fingerprint_is_the_pieces(tmp_path: Path) -> None:
    site = Site(store=str(tmp_path / "store"), device="cpu")
    store = site.open_store()
    whole = find_hop(site, MINI["en-de"])
    asked = find_hop(site, MINI["en-de"], SETTINGS)
    a = listed(store, "a", {"x": 3, "y": 1})
    b = listed(store, "b", {"y": 5, "x": 2})
    c = listed(store, "c", {"x": 3})
    assert asked.whole == whole
    assert whole.held_to(a, store).fingerprint == asked.held_to(b, store).fingerprint
    assert whole.held_to(a, store).fingerprint != whole.held_to(c, store).fingerprint
    assert len({hop.fingerprint for hop in (whole, asked, whole.held_to(a, store))}) == 3
    assert (whole.held_to(c, store).direction, whole.held_to(c, store).pieces) == ("en→de (1 pieces)", ("x",))
    other = find_hop(site, MINI["en-de"], SETTINGS.model_copy(update={"sample": 101}))
    assert other.fingerprint != asked.fingerprint, "views are keyed by the settings, for the pieces are not known yet"


def test_transformers_is_refused_before_anything_is_translated(tmp_path: Path) -> None:
    site = Site(store=str(tmp_path / "store"), device="cpu")
    slow = MINI["en-de"].model_copy(update={"backend": "transformers"})
    with pytest.raises(TranslatorLoadError, match=r"needs ctranslate2, .* runs on transformers in fp32 on cpu; set"):
        find_hop(site, slow, SETTINGS)
    assert find_hop(site, slow).pieces is None
