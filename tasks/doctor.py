"""What a long run needs, checked in seconds before it starts."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from models.augmentation.wordnet import FILES
from storage.errors import SourceError
from storage.refusals import writing
from storage.sources import SourceSpec, resolve_source
from storage.wordnet import find_wordnet
from tasks.evaluation.kinds import UnknownSuiteError, available_frozen, names_of
from tasks.evaluation.sets import resolve_scored_set
from tasks.pretrained import look_up_model
from tasks.stage.machine import cores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tasks.site import Site

_FREE_GB = 1.0  # below that a run of any size is at risk; BERT-base checkpoints take about 2 GB each


@dataclass(frozen=True)
class Check:
    """One finding: what was looked at, whether it will do (`note`: the run goes on without it), what was found."""

    subject: str
    verdict: Literal["ok", "note", "NO"]
    found: str


def examine(
    site: Site,
    server: str,
    models: Iterable[tuple[str, str | None]],
    sources: Iterable[SourceSpec],
    sets: Iterable[str],
    dev: str | None,
    *,
    scored: Iterable[str] = (),
    needs_wordnet: bool = False,
) -> list[Check]:
    """All checks of a run: machine, store, server, every model and data set.

    Args:
        site: where the run would happen.
        server: which Prefect server the run would talk to, for people.
        models: (folder, `embedded:` name or Hub id; revision) of each model.
        sources: the corpus.
        sets: suites and sets; a run names those that cannot be had, as long as there is one.
        dev: the scored set that training is steered by, which a run cannot do without.
        scored: scored sets that training takes its pairs from.
        needs_wordnet: whether views are made through WordNet.
    """
    looks: list[tuple[str, Callable[[], str]]] = [
        ("device", lambda: _device(site)),
        ("disk", lambda: _disk(site)),
        ("store", lambda: _store(site)),
        ("server", lambda: _server(server)),
        *((f"model {name}", _look_at_model(site, name, revision)) for name, revision in dict.fromkeys(models)),
        *((("WordNet", lambda: str(find_wordnet(FILES).folder)),) if needs_wordnet else ()),
        *((f"source {spec.dataset or spec.path}", _look_at_source(site, spec)) for spec in sources),
        *((f"dev set {name}", _look_at_scored(site, name)) for name in (dev,) if name),
        *((f"training set {name}", _look_at_scored(site, name)) for name in scored),
    ]
    return [*(_check(subject, look) for subject, look in looks), *_look_at_sets(site, tuple(sets))]


def _check(subject: str, look: Callable[[], str]) -> Check:
    try:
        return Check(subject, "ok", look())
    except Exception as error:  # whatever a client library raises, a check is there to report it
        return Check(subject, "NO", f"{error}" or type(error).__name__)


def _device(site: Site) -> str:
    import torch

    if site.device.startswith("cuda") and not torch.cuda.is_available():
        raise RuntimeError(f"{site.device} is asked for, but torch {torch.__version__} sees no GPU; use --device cpu")
    gpus = [torch.cuda.get_device_name(number) for number in range(torch.cuda.device_count())]
    return f"{', '.join(gpus) or 'no GPU'}; {cores()} CPU cores; torch {torch.__version__}"


def _disk(site: Site) -> str:
    place = site.open_store().local or Path.home()
    while not place.exists():
        place = place.parent
    free = shutil.disk_usage(place).free / 1e9
    if free < _FREE_GB:
        raise RuntimeError(
            f"{free:.1f} GB free at {place}, expected at least {_FREE_GB:g} GB; free space or use --store"
        )
    return f"{free:.0f} GB free"


def _store(site: Site) -> str:
    store = site.open_store()
    probe = f"{store.root}/.probe-{os.getpid()}"
    with writing(store.url):
        store.fs.makedirs(store.root, exist_ok=True)
        store.fs.pipe_file(probe, b"bsl")
        found = store.fs.cat_file(probe)
        store.fs.rm_file(probe)
    if found != b"bsl":
        raise RuntimeError(f"{store.url} gives back {found!r} for b'bsl'; choose another store")
    return f"{store.url}: written, read back and removed a probe; {len(store.refs())} artifacts"


def _server(server: str) -> str:
    import prefect
    from prefect.client.orchestration import get_client
    from prefect.settings import get_current_settings

    if get_current_settings().api.url is None:
        return f"prefect {prefect.__version__}, {server}"
    with get_client(sync_client=True) as client:
        fault = client.api_healthcheck()
        if fault is not None:
            raise RuntimeError(f"{server} does not answer ({fault}); start it or unset PREFECT_API_URL")
        return f"prefect {prefect.__version__}, {server}, version {client.api_version()}"


def _look_at_model(site: Site, name: str, revision: str | None) -> Callable[[], str]:
    return lambda: look_up_model(site, name, revision)[:80]


def _look_at_scored(site: Site, name: str) -> Callable[[], str]:
    return lambda: resolve_scored_set(site, name).source.digest[:80]


def _look_at_source(site: Site, spec: SourceSpec) -> Callable[[], str]:
    return lambda: resolve_source(spec, site.mirror).digest[:80]


def _look_at_sets(site: Site, suite: tuple[str, ...]) -> list[Check]:
    """By the rule of a run, in the order of the names."""
    try:
        found = available_frozen(site, suite)
    except (SourceError, UnknownSuiteError) as error:
        return [Check("sets", "NO", str(error))]
    sizes = {name: f"{len(wanted.sentences()):,} sentences" for name, wanted in found.sets.items()}
    return [
        Check(f"set {name}", "ok", sizes[name]) if name in sizes else Check(f"set {name}", "note", found.missing[name])
        for name in names_of(suite)
    ]
