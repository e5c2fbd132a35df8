"""A round trip by translators that write what they wrote for a sample: whose memory holds what, and equal bytes.

Shards are errands, done here one after the other: as another process does them, and without a server.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import tasks.translate
from models.augmentation.config import AugmentConfig, round_trip
from models.text.normalize import sentence_ids
from models.translation.catalog import MINI
from models.translation.config import Pin, ShortlistConfig
from models.translation.errors import SmokeTestError
from storage.embedded import embedded_path
from storage.manifest import Provenance
from storage.refs import CorpusRef, ShortlistRef, ViewsRef
from tasks.augment import make_views
from tasks.hop import find_hop
from tasks.route import Route
from tasks.shards import Shard
from tasks.site import Site
from tasks.stage.cached import Stage
from tasks.stage.spread import Errand, run_errand

SENTENCES, SAMPLE = 160, 100
# At int8 a sentence between two equal words may fall to the other one in another batch, with a shortlist or without.
OUT, BACK = (MINI[name].model_copy(update={"beam": 1, "precision": "fp32"}) for name in ("en-de", "de-en"))
WHOLE = AugmentConfig(translations=(round_trip(OUT, BACK),))
SHORT = WHOLE.model_copy(update={"shortlist": ShortlistConfig(sample=SAMPLE, pieces=400)})


def here_and_now(site: Site, errands: list[Errand], *, together: bool) -> None:
    assert together
    for errand in errands:
        run_errand(Errand.model_validate_json(errand.model_dump_json()), site)


@pytest.fixture(scope="module", autouse=True)
def no_pool() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks.translate, "spread", here_and_now)
        patch.setattr(Stage, "__call__", Stage.have)
        yield


def views_of(site: Site, config: AugmentConfig, count: int = SENTENCES) -> ViewsRef:
    """The views of some hypotheses."""
    [view] = config.translations
    route = Route(method=view.method, hops=tuple(find_hop(site, hop, config.shortlist) for hop in view.hops))
    return make_views.have(site, corpus_of(site, count), (route,), (), config.filters, original=True)


def corpus_of(site: Site, count: int) -> CorpusRef:
    ref = CorpusRef(key=f"{count:064x}")
    texts = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")["hypothesis"].unique(maintain_order=True)
    frame = (
        texts.head(count)
        .to_frame("text")
        .select(sentence_ids(pl.col("text")).alias("sentence_id"), "text", source=pl.lit("test"), lang=pl.lit("en"))
    )
    if site.open_store().defect(ref) is not None:
        with site.open_store().draft(ref, Provenance(stage_version=1, config={})) as draft:
            draft.write(frame.sort("sentence_id"))
    return ref


def content(site: Site) -> dict[str, str]:
    """Every table of translations, shortlists and views with its sha256."""
    root = Path(site.store)
    files = [path for path in root.rglob("*.parquet") if path.relative_to(root).parts[0] in KINDS]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


KINDS = ("translations", "shortlist", "views")


def translated(site: Site, fingerprint: str) -> pl.DataFrame:
    store = site.open_store()
    parts = [store.scan(ref).collect() for ref in store.refs(f"translations/{fingerprint}")]
    return pl.concat(parts).sort("sentence_id")


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Site:
    folder = tmp_path_factory.mktemp("here")
    site = Site(store=str(folder / "store"), cache=str(folder / "cache"), device="cpu", threads=1, runner="pool")
    views_of(site, SHORT)
    return site


def test_the_sample_is_the_whole_translator_s_and_the_rest_the_restricted_one_s(here: Site) -> None:
    store = here.open_store()
    corpus = store.scan(corpus_of(here, SENTENCES)).collect()
    whole = find_hop(here, OUT)
    listed = [ShortlistRef(key=ref.key) for ref in store.refs("shortlist")]
    assert len(listed) == 2, "one for each direction"
    [out] = [ref for ref in listed if store.manifest(ref).figures["hop"] == "en→de"]
    held = whole.held_to(out, store)
    assert len({whole.fingerprint, held.fingerprint, find_hop(here, OUT, SHORT.shortlist).fingerprint}) == 3
    assert translated(here, whole.fingerprint)["sentence_id"].equals(corpus["sentence_id"].head(SAMPLE))
    rest = translated(here, held.fingerprint)
    assert rest["sentence_id"].equals(corpus["sentence_id"].slice(SAMPLE))
    pieces = store.scan(out).collect()
    assert pieces.height == min(400, int(str(store.manifest(out).figures["found"]))) == len(held.pieces or ())
    assert pieces["count"].is_sorted(descending=True)
    hops = store.manifest(store.refs("views")[0]).figures["hops"]
    assert isinstance(hops, list)
    assert [(hop["hop"], hop["sentences"]) for hop in hops if isinstance(hop, dict)][:2] == [
        ("en→de", SAMPLE),
        (f"en→de ({pieces.height} pieces)", SENTENCES - SAMPLE),
    ]


def test_a_restricted_translator_is_tried_whole_where_nothing_has_loaded_the_whole_one(here: Site) -> None:
    """As after a kill, or in another process: the sample is there."""
    store = here.open_store()
    [out] = [ref for ref in store.refs("shortlist") if store.manifest(ref).figures["hop"] == "en→de"]
    pin = Pin(source="The boy is reading a book.", translation="Kein Junge.")
    held = find_hop(here, OUT.model_copy(update={"pinned": (pin,)})).held_to(ShortlistRef(key=out.key), store)
    with store.workspace() as folder:
        plan = folder / "missing.parquet"
        store.scan(corpus_of(here, 2)).select("sentence_id", "text").collect().write_parquet(plan)
        with pytest.raises(SmokeTestError, match="1 of 1 differ from the pinned translations"):
            tasks.translate.translate.have(here, held, Shard(digest="2", plan=plan, start=0, rows=2))


def test_at_fp32_what_other_runs_left_changes_nothing(here: Site, tmp_path: Path) -> None:
    """The whole translator's memory holds all, but only the sample is taken from it."""
    site = here.model_copy(update={"store": str(tmp_path / "store")})
    whole = views_of(site, WHOLE)
    short = views_of(site, SHORT)
    assert whole.key != short.key
    made = content(site)
    expected = {path: digest for path, digest in content(here).items() if not path.startswith("translations/")}
    assert len(expected) == 3
    assert {path: made.get(path) for path in expected} == expected
    store = site.open_store()
    assert not store.scan(whole).collect().equals(store.scan(short).collect()), "the pieces were too many to tell"


def test_a_corpus_of_no_more_than_the_sample_needs_no_shortlist(here: Site, tmp_path: Path) -> None:
    site = here.model_copy(update={"store": str(tmp_path / "store")})
    short, whole = views_of(site, SHORT, SAMPLE), views_of(site, WHOLE, SAMPLE)
    store = site.open_store()
    assert store.refs("shortlist") == []
    assert short.key != whole.key
    assert store.manifest(short).digest == store.manifest(whole).digest
