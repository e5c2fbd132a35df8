"""Any encoder to its scores: no training, no corpus; several encoders also to their differences."""

from __future__ import annotations

from prefect import flow
from prefect.runtime import flow_run

from flows.precision import computed, settled, tell_precision
from flows.run_context import run_context_of
from flows.scoring import differences, encoder_system, frozen_scores, tuned_scores
from storage.artifacts.refs import EvaluationRef
from tasks.evaluation.candidates import find_candidates
from tasks.evaluation.kinds import available, names_of, tables
from tasks.evaluation.settings import EvaluationSettings
from tasks.reporting.evaluation import Missing, summarise
from tasks.stage.log_context import show_logs
from tasks.stage.run_context import RunContext


def _run_name() -> str:
    asked = flow_run.parameters
    return f"{', '.join(asked['models'])} on {', '.join(asked['suite'])}"


@flow(name="bsl-evaluate", flow_run_name=_run_name)
def evaluation(
    models: list[str], suite: list[str], config: EvaluationSettings | None = None, site: RunContext | None = None
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
    settings = config or EvaluationSettings()
    place = run_context_of(site)
    tell_precision(place, {"evaluation": settings.precision})
    asked, precision = settings.precision, computed(settings.precision, place)
    settings = settled(settings, place)
    found = available(place, names_of(suite))
    candidates = find_candidates(place, models, settings.reading, asked)

    embedded = candidates if found.embedded() else []
    systems = [encoder_system(place, candidate, found, precision) for candidate in embedded]
    scores = [
        *(scores for system in systems for scores in frozen_scores(place, system, found, settings)),
        *tuned_scores(place, candidates, found, settings),
    ]
    compared = differences(place, systems[0], systems[1:], found, settings) if systems else ()
    return summarise(place, tuple(scores), compared, Missing.of(found.missing), tables())
