"""Steps on fixed shapes learn like packed steps; batches without a fixed shape give the reason."""

import logging
from types import SimpleNamespace

import polars as pl
import pytest
import torch

from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, ISBERTConfig
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.objectives.language_modeling.config import MaskedLMConfig
from bsl.models.objectives.supervised_config import RegressionConfig, SCLConfig
from bsl.models.training import static_steps
from tests import tiny_training
from tests.tiny_encoder import write_tiny
from tests.tiny_training import CONFIG, PAIRS, run

CPU = torch.device("cpu")
OBJECTIVES = {
    "bsl": BSLConfig(k=2, momentum=0.9, target_norm="standardize"),
    "BSL+": BSLConfig(k=2, momentum=0.9, target_norm="standardize", contrastive_weight=0.5),
    "bsl of several widths": BSLConfig(k=2, momentum=0.9, dims=(8,)),
    "anchored": ContrastiveConfig(anchor_weight=1.0),
    "distillation with a queue": DistilConfig(queue=4, projection="dropped"),
    "distillation of one view": DistilConfig(views="first"),
    "is-bert": ISBERTConfig(),
    "rehearsal": RegressionConfig(anchor_weight=2.0),
}


def config_of(objective, **changes):
    # A large epsilon suppresses gradients that are pure rounding, as before batch normalisation.
    return CONFIG.model_copy(
        update={"objective": objective, "max_steps": 3, "lr": 1e-3, "eps": 1e-2, "warmup": 0.0, **changes}
    )


@pytest.fixture
def taken(monkeypatch):
    """Return a list that collects the batches of fixed-shape steps."""
    made, in_place = [], static_steps._in_place

    def counted(*given):
        made.append(given[1])
        return in_place(*given)

    monkeypatch.setattr(static_steps, "_in_place", counted)
    return made


@pytest.mark.parametrize(("name", "architecture"), [*((name, "bert") for name in OBJECTIVES), ("bsl", "modernbert")])
def test_static_shape_steps_equal_packed_steps(tmp_path, taken, monkeypatch, name, architecture):
    if name == "rehearsal":
        half_scored = PAIRS.with_columns(score=pl.when(pl.int_range(pl.len()) % 2 == 0).then("score"))
        monkeypatch.setattr(tiny_training, "PAIRS", half_scored)
    folder, config = write_tiny(tmp_path / "model", architecture, dropout=0.0, layers=1), config_of(OBJECTIVES[name])
    packed = run(folder, config, static_shapes=False)
    assert not taken
    fixed = run(folder, config, static_shapes=True)
    assert len(taken) == 3
    for column in ("loss", "grad_norm"):
        assert fixed.log[column][1:].to_list() == pytest.approx(packed.log[column][1:].to_list(), rel=1e-4, abs=1e-5)
    found, expected = (dict(result.state.tensors, best={}) for result in (fixed, packed))
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_resumed_run_has_the_weights_of_an_uninterrupted_run(tmp_path):
    """With dropout, negatives and several shapes: the memory of a shape is not part of the state."""
    folder = write_tiny(tmp_path / "model", layers=1)
    config = config_of(OBJECTIVES["BSL+"], max_steps=6)
    whole = run(folder, config, static_shapes=True)
    asked = iter([False, False, True])
    with pytest.raises(Exception, match="3 of 6"):
        run(folder, config, static_shapes=True, work=tmp_path / "work", should_stop=lambda: next(asked))
    resumed = run(folder, config, static_shapes=True, work=tmp_path / "work")
    torch.testing.assert_close(resumed.state.tensors["online"], whole.state.tensors["online"], rtol=0, atol=0)


def test_smaller_last_batches_and_a_cpu_by_default_use_packed_steps(tmp_path, taken):
    """12 pairs in batches of 5: every third batch has 2."""
    folder, config = write_tiny(tmp_path / "model"), config_of(CONFIG.objective, drop_last=False, max_steps=6)
    run(folder, config)
    assert not taken
    run(folder, config, static_shapes=True)
    assert [len(batch) for batch in taken] == [5] * 4


@pytest.mark.parametrize(
    ("objective", "reason"),
    [(MaskedLMConfig(), "MaskedLM selects its inputs on the CPU"), (SCLConfig(), "SCL reads group, label on the CPU")],
)
def test_objective_with_cpu_inputs_logs_reason_for_packed_steps(tmp_path, taken, caplog, objective, reason):
    with caplog.at_level(logging.INFO, static_steps.__name__):
        run(write_tiny(tmp_path / "model"), config_of(objective), static_shapes=True, dev=None)
    assert not taken
    assert f"training steps are packed instead of static shapes: {reason}" in caplog.messages


def test_failed_step_restores_the_buffers():
    """A failed capture leaves its own empty tensors in the buffers."""

    class Broken(torch.nn.Module):
        online = SimpleNamespace(device=CPU)

        def __init__(self):
            super().__init__()
            self.register_buffer("queue", torch.ones(2))

        def forward(self, *_):
            self.queue = torch.zeros(2)
            raise RuntimeError("operation not permitted when stream is capturing")

    broken = Broken()
    before = broken.queue
    with pytest.raises(RuntimeError, match="not permitted"):
        static_steps._in_place(SimpleNamespace(objective=broken, step=0), None, CONFIG, None)
    assert broken.queue is before
