"""Check in seconds, before a long run starts, that the machine, models and data it needs are available."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import fsspec

from bsl.models.views.synonyms import FILES
from bsl.storage.artifacts.lookup import find
from bsl.storage.errors import HubError, SourceError
from bsl.storage.filesystem.model_folder import has_weights
from bsl.storage.filesystem.os_errors import writing
from bsl.storage.filesystem.spelling import perhaps_path
from bsl.storage.filesystem.urls import reachable
from bsl.storage.hub.datasets import check_table
from bsl.storage.hub.models import HubModel
from bsl.storage.sources.model_sources import ResolvedModel
from bsl.storage.sources.read import check_columns
from bsl.storage.sources.sources import ResolvedSource, SourceSpec, resolve_sources
from bsl.storage.sources.word_vectors import find_vectors_file, find_wordnet, is_vectors_file
from bsl.tasks.corpus.evaluation_sets import read_scored_set, resolve_scored_set
from bsl.tasks.diagnostics.finding import Finding
from bsl.tasks.embedding.encoders import STORED_VECTORS, load_encoder, resolve, resolve_named_model
from bsl.tasks.evaluation.kinds import UnknownSuiteError, find_set, frozen_names
from bsl.tasks.rendering.numbers import counted
from bsl.tasks.stage.cluster import count_workers
from bsl.tasks.stage.device import cores, device_of
from bsl.tasks.translation.translate import try_translator
from bsl.tasks.translation.translator import find_translator

if TYPE_CHECKING:
    from collections.abc import Callable

    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.translation.config import TranslatorConfig
    from bsl.tasks.settings import RunSettings
    from bsl.tasks.stage.run_context import RunContext


_SHOWN: Final = 80  # characters of a digest or address
_SENTENCE: Final = "A man is playing a guitar."
_FREE_GB: Final = 1.0  # with less, any run is at risk; BERT-base checkpoints take about 2 GB each
_TOLERANCE: Final = 0.1  # for sums of 64 products up to 1; errors of TF32 and fp16 are smaller
POOL: Final = "gpu"  # of prefect.yaml


def examine(site: RunContext, run: RunSettings) -> list[Finding]:
    """Run all checks except the server's: machine, store, cluster, all models and datasets.

    A run continues without evaluation sets that were not found, if one remains; the corpus, the encoders and the dev
    set are required.
    """
    encoders = [run.encoder, *(teacher for phase in run.phases for teacher in phase.teachers)]
    hops = dict.fromkeys(hop for view in run.augment.routes for hop in view.hops)
    views, dev = run.augment.rewritings, run.evaluation.dev if run.phases else None
    looks: list[tuple[str, Callable[[], str]]] = [
        ("device", lambda: _device(site)),
        ("disk", lambda: _disk(site)),
        ("store", lambda: _store(site)),
        *((f"mirror {mirror}", partial(_mirror, mirror)) for mirror in (site.mirror,) if mirror),
        ("cluster", lambda: f"{count_workers(site.cluster)} workers" if site.cluster else "none: shards run here"),
        *((f"encoder {config.model}", partial(look_at_encoder, site, config)) for config in encoders),
        *((f"model {name}", partial(_model, site, name, commit)) for view in views for name, commit in view.models),
        *((f"translator {hop.model}", partial(_translator, site, hop)) for hop in hops),
        *(("WordNet", lambda: str(find_wordnet(FILES).folder)) for view in views if view.lexicon),
        *((f"source {spec.dataset or spec.path}", partial(_source, site, spec)) for spec in run.ingest.sources),
        *((f"dev set {name}", partial(_pairs, site, name)) for name in (dev,) if name),
        *((f"training set {name}", partial(_pairs, site, name)) for name in run.scored),
    ]
    return [*(_check(subject, look) for subject, look in looks), *_sets(site, run.evaluation.sets)]


def look_at_pool(pool: str = POOL) -> Finding:
    """Check that the Prefect server has a work pool (by default that of prefect.yaml) with a worker.

    Its faults are only a `note`, because runs of `bsl` itself need neither.
    """
    from prefect.client.orchestration import get_client
    from prefect.client.schemas.objects import WorkPoolStatus

    with get_client(sync_client=True) as client:
        found = next((each for each in client.read_work_pools() if each.name == pool), None)
    if found is None:
        remedy = "`docker/server-setup.sh` prepares the server for deployments"
        return Finding(f"work pool {pool}", "note", "the server has no such pool", remedy)
    if found.is_paused:
        return Finding(f"work pool {pool}", "note", "it is paused", f"`prefect work-pool resume {pool}` resumes it")
    if found.status != WorkPoolStatus.READY:
        remedy = f"`prefect worker start --pool {pool} --limit 1` starts a worker for deployments"
        return Finding(f"work pool {pool}", "note", "no worker polls it", remedy)
    return Finding(f"work pool {pool}", "ok", "a worker polls it")


def _check(subject: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(subject, "ok", look())
    except SourceError as error:
        return Finding(subject, "NO", error.finding, error.remedy)
    except Exception as error:  # client libraries may raise any error, and a check must report it
        return Finding(subject, "NO", f"{error}" or type(error).__name__)


def look_at_encoder(site: RunContext, config: EncoderConfig) -> str:
    """Load an encoder and embed a sentence if its weights are local; otherwise check only its settings.

    Raises:
        SourceError, AssetError, ArtifactMissingError: the encoder was not found.
        EncoderError: it cannot run here, or not as configured.
    """
    if STORED_VECTORS.fullmatch(config.model):
        return f"{find(site.open_store(), config.model)}, stored vectors of a teacher"
    if is_vectors_file(config.model):
        return f"sha256:{find_vectors_file(config.model).digest}"[:_SHOWN]  # the run reads the complete file
    found = resolve(site, config)
    encoder = found.encoder
    if isinstance(encoder, ResolvedModel) and not _is_here(encoder):
        return f"{encoder.identity[:_SHOWN]}, {_elsewhere(encoder)}; its settings are valid"
    width = load_encoder(site.open_store(), encoder, found.config).encode([_SENTENCE]).shape[1]
    name = encoder.identity if isinstance(encoder, ResolvedModel) else encoder.path
    return f"{name[:_SHOWN]}, vectors of width {width}"


def _model(site: RunContext, name: str, revision: str | None) -> str:
    """Check that the model of a view has all files."""
    model = resolve_named_model(site, name, revision)
    if not _is_here(model):
        return f"{model.identity[:_SHOWN]}, {_elsewhere(model)}"
    if not (model.folder / "config.json").is_file() or not has_weights(model.folder):
        raise SourceError(f"{model.folder} has no config.json or no weights; check that the copy is complete")
    return model.identity[:_SHOWN]


def _translator(site: RunContext, config: TranslatorConfig) -> str:
    """Translate three sentences if the translator's weights are local; otherwise report its engine only."""
    hop = find_translator(site, config)
    engine = f"{hop.direction} on {hop.config.backend} in {hop.config.precision} on {device_of(site)}"
    if not _is_here(hop.model):
        return f"{engine}; its weights are {_elsewhere(hop.model)}"
    translated = try_translator(site, hop)
    found = f"{engine}: translated {len(translated)} sentences, such as {translated[0][:_SHOWN]!r}"
    return f"{found}; {hop.model.identity[:_SHOWN]}"


def _source(site: RunContext, spec: SourceSpec) -> str:
    """Check that a source exists and has the required columns."""
    return "; ".join(_seen(source) for source in resolve_sources(spec, site.mirror))


def _seen(source: ResolvedSource) -> str:
    if source.hub is not None and not check_table(source.hub):
        return f"{source.digest[:_SHOWN]}, on the Hub; columns are checked when it is downloaded"
    return f"{source.digest[:_SHOWN]}, columns {', '.join(check_columns(source))}"


def _is_here(model: ResolvedModel) -> bool:
    return isinstance(model.location, Path) or model.location.check()


def _elsewhere(model: ResolvedModel) -> str:
    return "on the Hub" if isinstance(model.location, HubModel) else "on the mirror"


def _pairs(site: RunContext, name: str) -> str:
    scored = resolve_scored_set(site, name)
    return f"{scored.source.digest[:_SHOWN]}, {read_scored_set(scored).height:,} pairs"


def _device(site: RunContext) -> str:
    import torch

    chosen = device_of(site)
    numbers = range(torch.cuda.device_count())
    gpus = [torch.cuda.get_device_name(number) for number in numbers]
    devices = list(dict.fromkeys(["cpu", *(f"cuda:{number}" for number in numbers), chosen]))
    for device in devices:
        _multiply(device)
    multiplied = f"matrix products are correct on {', '.join(devices)}"
    return f"{', '.join(gpus) or 'no GPU'}; {counted(cores(), 'CPU core')}; torch {torch.__version__}; {multiplied}"


def _multiply(device: str) -> None:
    """Multiply matrices on a device; fails with a too old driver, or a torch build without the card's code."""
    import torch

    exact = torch.arange(64 * 64, dtype=torch.float64).sin().view(64, 64)
    factor = exact.to(torch.float32).to(device)
    found = (factor @ factor).to("cpu", torch.float64)
    if not torch.allclose(found, exact @ exact, rtol=0, atol=_TOLERANCE):
        raise RuntimeError(
            f"{device} computes wrong matrix products (expected those of the CPU within {_TOLERANCE:g}). Use another "
            "--device, or install a driver and a torch build for it."
        )


def _disk(site: RunContext) -> str:
    path = site.open_store().local or Path.home()
    while not path.exists():
        path = path.parent
    free = shutil.disk_usage(path).free / 1e9
    if free < _FREE_GB:
        raise RuntimeError(
            f"{free:.1f} GB free at {path} (expected at least {_FREE_GB:g} GB). Free space, or choose another --store."
        )
    return f"{free:.0f} GB free"


def _mirror(address: str) -> str:
    with reachable(address):
        fs, root = fsspec.url_to_fs(address)
        if not fs.isdir(root):
            raise SourceError(f"no such folder{perhaps_path(address)}", "correct or unset BSL_DATA_MIRROR (--mirror)")
        return f"{len(fs.ls(root, detail=False))} files and folders"


def _store(site: RunContext) -> str:
    store = site.open_store()
    probe = f"{store.root}/.probe-{os.getpid()}"
    with writing(store.url):
        store.fs.makedirs(store.root, exist_ok=True)
        store.fs.pipe_file(probe, b"bsl")
        found = store.fs.cat_file(probe)
        store.fs.rm_file(probe)
    if found != b"bsl":
        raise RuntimeError(f"{store.url}: wrote b'bsl' and read back {found!r}. Choose another --store.")
    return f"{store.url}: wrote, read and removed a test file; {len(store.refs())} artifacts"


def _sets(site: RunContext, suite: tuple[str, ...]) -> list[Finding]:
    """Check the evaluation sets in order of their names; as in a run, one found set suffices."""
    try:
        names = frozen_names(suite)
    except UnknownSuiteError as error:
        return [Finding("sets", "NO", str(error))]
    checks = [_set(site, name) for name in names]
    if checks and all(check.verdict == "note" for check in checks):
        checks.append(Finding("sets", "NO", "none of the sets is available (expected at least one)", checks[0].remedy))
    return checks


def _set(site: RunContext, name: str) -> Finding:
    try:
        sentences = len(find_set(site, name).sentences())
    except HubError as error:
        return Finding(f"set {name}", "NO", error.finding, error.remedy)
    except SourceError as error:
        return Finding(f"set {name}", "note", error.finding, error.remedy)
    return Finding(f"set {name}", "ok", f"{sentences:,} sentences")
