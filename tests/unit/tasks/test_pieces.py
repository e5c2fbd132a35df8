"""Folds and seeds sent elsewhere are those that the sender looks for afterwards, whatever its paths are."""

import json

from storage.embedded import embedded_path
from tasks.evaluation.candidates import find_candidates
from tasks.evaluation.kinds import available
from tasks.evaluation.pieces import tune_elsewhere
from tasks.evaluation.settings import EvaluationSettings
from tasks.site import Site
from tasks.stage.spread import Errand, run_errand
from tasks.stage.watch import planning
from tests.tiny_encoder import write_tiny


def test_seeds_made_elsewhere_are_those_that_are_looked_for(tmp_path, monkeypatch):
    site = Site(store=str(tmp_path / "store"), mirror=str(embedded_path("stsb").parent), device="cpu", runner="dask")
    folder = write_tiny(tmp_path / "encoder")
    config = EvaluationSettings(seeds=3)
    candidates = find_candidates(site, [str(folder), "embedded:mini-sentence"], config.reading, "fp32")
    found = available(site, ["stsb-supervised"])
    sent: list[str] = []
    monkeypatch.setattr(
        "tasks.evaluation.pieces.spread", lambda _, errands: sent.extend(errand.model_dump_json() for errand in errands)
    )
    tune_elsewhere(site, candidates, found, config)
    assert not any(str(tmp_path) in text for text in sent)
    with planning() as elsewhere:
        for text in sent:
            run_errand(Errand.model_validate(json.loads(text)), site.abroad(2))
    with planning() as here:
        for candidate in candidates:
            for kind, sets in found.tuned():
                kind.scores(site, candidate, sets, config)
    assert [step.ref for step in elsewhere] == [step.ref for step in here if step.stage == "score_supervised"]
    assert len(sent) == 6
