"""View `mlm`: tokens refilled by a masked language model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from models.views.config import MaskedView
from storage.artifacts.refs import CorpusRef, NliRef, ViewsRef
from storage.sources.model_sources import ResolvedModel
from tasks.embedding.encoders import resolve_named_model
from tasks.stage.cached import Work, stage
from tasks.stage.device import device_of, limit_threads
from tasks.views.slices import rewrite_corpus

if TYPE_CHECKING:
    from tasks.stage.run_context import RunContext

CPU_BATCH_TOKENS, GPU_BATCH_TOKENS = 2048, 32_768


def make_mlm(site: RunContext, corpus: CorpusRef, nli: NliRef | None, view: MaskedView) -> ViewsRef:  # noqa: ARG001
    """Make it, or find it made; the model's content, not its name, decides which.

    Raises:
        SourceError, AssetError: the model is nowhere to be had.
    """
    model = resolve_named_model(site, view.model, view.revision)
    return mlm(site, corpus, model, view.model_copy(update={"model": model.identity, "revision": None}))


@stage(ref=ViewsRef, version=2)
def mlm(work: Work, corpus: CorpusRef, model: ResolvedModel, view: MaskedView) -> None:
    """Each sentence with tokens refilled by a masked language model."""
    # Imported here: a run whose stages are all cached never pays for torch and transformers.
    from models.views.masked_lm import MaskedLM, refill

    limit_threads(work.site)
    device = device_of(work.site)
    tokens = CPU_BATCH_TOKENS if device == "cpu" else GPU_BATCH_TOKENS
    fill = partial(refill, model=MaskedLM(model.folder, device), view=view, batch_tokens=tokens)
    rewrite_corpus(work, corpus, "mlm", view.lang, view.seed, fill)
