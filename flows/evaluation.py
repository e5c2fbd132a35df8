"""Any encoder to its scores: no training, no corpus; several encoders also to their differences."""

from prefect import flow
from prefect.runtime import flow_run

from flows.scoring import EvaluationSettings, differences, frozen_scores, tuned_scores
from flows.site import site_of
from storage.refs import ComparisonRef, EvaluationRef, ScoresRef
from tasks.embed import embed
from tasks.evaluation.candidates import find_candidates
from tasks.evaluation.kinds import available, names_of
from tasks.evaluation.summary import Missing, summarise
from tasks.site import Site
from tasks.stage.logs import show_logs


def _run_name() -> str:
    asked = flow_run.parameters
    return f"{', '.join(asked['models'])} on {', '.join(asked['suite'])}"


@flow(name="bsl-evaluate", flow_run_name=_run_name)
def evaluation(
    models: list[str], suite: list[str], config: EvaluationSettings | None = None, site: Site | None = None
) -> EvaluationRef:
    """Score encoders on the papers' sets.

    Args:
        models: Folders, Hub ids, `embedded:` names, `checkpoint/<key>` or `report/<key>`; each is compared with the
            first.
        suite: Suites such as `sts`, `senteval`, `all`; sets such as `stsb/dev` or `trec`; `stsb-supervised` and the
            other protocols that fine-tune.
        config: Precision, bootstrap, and how bare transformers are read.
        site: Store, mirror and device; by the worker's environment if absent.
    """
    show_logs()
    how = config or EvaluationSettings()
    place = site_of(site)
    sets, missing = available(place, names_of(suite))
    found = find_candidates(place, models, how.reading, how.precision)

    frozen = tuple(one for one in sets if len(one.sentences()) > 0)
    scores: list[ScoresRef] = []
    compared: tuple[ComparisonRef, ...] = ()
    if frozen:
        embedded = [embed(place, one.encoder, frozen, one.config, how.precision) for one in found]
        for one, vectors in zip(found, embedded, strict=True):
            scores += frozen_scores(place, vectors, one, frozen, how)
        compared = differences(place, found, embedded, frozen, how.bootstrap)
    for one in found:
        scores += tuned_scores(place, one, sets, how)
    return summarise(place, tuple(scores), compared, Missing(names=tuple(missing), reasons=missing))
