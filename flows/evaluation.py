"""Any encoder to its scores: no training, no corpus; several encoders also to their differences."""

from prefect import flow
from pydantic import BaseModel, ConfigDict

from flows.site import site_from_environment
from models.evaluation.config import BootstrapConfig, Precision
from storage.refs import EvaluationRef
from tasks.candidates import Reading, find_candidates
from tasks.embed import embed
from tasks.logs import show_logs
from tasks.score import compare, score
from tasks.site import Site
from tasks.suites import available, names_of, scored_of
from tasks.summary import Missing, summarise


class EvaluationSettings(BaseModel):
    """How encoders are evaluated."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    reading: Reading = Reading()
    """Pooling and length of bare transformers."""
    precision: Precision = "fp32"
    """Arithmetic of the encoder; bf16 is faster and moves scores by hundredths of a point."""
    bootstrap: BootstrapConfig = BootstrapConfig()
    """How the 95 % interval of each figure is drawn."""


@flow(name="bsl-evaluate", flow_run_name="{models} on {suite}")
def evaluation(
    models: list[str], suite: list[str], config: EvaluationSettings | None = None, site: Site | None = None
) -> EvaluationRef:
    """Score encoders on the papers' sets.

    Args:
        models: Folders, Hub ids, `embedded:` names, `checkpoint/<key>` or `report/<key>`; each is compared with the
            first.
        suite: Suites such as `sts`, `sts17`, `all`, or sets as `<name>/<split>`.
        config: Precision, bootstrap, and how bare transformers are read.
        site: Store, mirror and device; by the worker's environment if absent.
    """
    show_logs()
    how = config or EvaluationSettings()
    place = site_from_environment(**(site.model_dump(exclude_unset=True) if site else {}))
    sets, missing = available(place, names_of(suite))
    found = find_candidates(place, models, how.reading, how.precision)

    scored = scored_of(sets)
    embedded = [embed(place, one.encoder, sets, one.config, how.precision) for one in found]
    scores = tuple(
        score(place, vectors, one.label, one.checkpoint, scored, how.bootstrap)
        for one, vectors in zip(found, embedded, strict=True)
    )
    compared = tuple(
        compare(place, embedded[0], vectors, (found[0].label, one.label), scored, how.bootstrap)
        for one, vectors in zip(found[1:], embedded[1:], strict=True)
    )
    return summarise(place, scores, compared, Missing(names=tuple(missing), reasons=missing))
