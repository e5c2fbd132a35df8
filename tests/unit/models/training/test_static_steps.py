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
from bsl.models.training.optimizer import set_step
from tests import tiny_training
from tests.tiny_encoder import write_tiny
from tests.tiny_training import CONFIG, PAIRS, run

CPU = torch.device("cpu")
OBJECTIVES = {
    "bsl": BSLConfig(k=2, momentum=0.9, target_norm="standardize"),
    "BSL+": BSLConfig(k=2, momentum=0.9, target_norm="standardize", contrastive_weight=0.5),
    "bsl of several widths": BSLConfig(k=2, momentum=0.9, dims=(8,)),
    "contrastive": ContrastiveConfig(),
    "anchored": ContrastiveConfig(anchor_weight=1.0),
    "distillation": DistilConfig(),
    "distillation with a queue": DistilConfig(queue=4, projection="dropped"),
    "distillation of one view": DistilConfig(views="first"),
    "is-bert": ISBERTConfig(),
    "regression": RegressionConfig(),
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
    for part, tensors in packed.state.tensors.items():
        if part != "best":
            for key, tensor in tensors.items():
                torch.testing.assert_close(fixed.state.tensors[part][key], tensor, rtol=1e-4, atol=1e-5, msg=key)


def test_resumed_run_has_the_weights_of_an_uninterrupted_run(tmp_path):
    """With dropout, negatives and several shapes: the memory of a shape is not part of the state."""
    folder = write_tiny(tmp_path / "model", layers=1)
    config = config_of(OBJECTIVES["BSL+"], max_steps=6)
    whole = run(folder, config, static_shapes=True)
    asked = iter([False, False, True])
    with pytest.raises(Exception, match="3 of 6"):
        run(folder, config, static_shapes=True, work=tmp_path / "work", should_stop=lambda: next(asked))
    resumed = run(folder, config, static_shapes=True, work=tmp_path / "work")
    for name, tensor in whole.state.tensors["online"].items():
        assert torch.equal(resumed.state.tensors["online"][name], tensor)


def test_smaller_last_batches_use_packed_steps(tmp_path, taken):
    """12 pairs in batches of 5: every third batch has 2."""
    run(write_tiny(tmp_path / "model"), config_of(CONFIG.objective, drop_last=False, max_steps=6), static_shapes=True)
    assert [len(batch) for batch in taken] == [5] * 4


@pytest.mark.parametrize(
    ("objective", "reason"),
    [
        (MaskedLMConfig(), "MaskedLM selects its inputs on the CPU"),
        (SCLConfig(), "SCL reads group, label on the CPU"),
    ],
)
def test_objective_with_cpu_inputs_logs_reason_for_packed_steps(tmp_path, taken, caplog, objective, reason):
    with caplog.at_level(logging.INFO, static_steps.__name__):
        run(write_tiny(tmp_path / "model"), config_of(objective), static_shapes=True, dev=None)
    assert not taken
    said = [record.getMessage() for record in caplog.records if record.name == static_steps.__name__]
    assert said == [f"training steps are packed instead of static shapes: {reason}"]


def test_cpu_uses_packed_steps_by_default(tmp_path, taken):
    run(write_tiny(tmp_path / "model"), config_of(CONFIG.objective))
    assert not taken


def test_tensor_and_float_learning_rates_give_equal_weights():
    """Captured steps read the learning rate from its tensor."""
    rates, weights = (0.1, 0.02, 0.5), []
    for kind in (float, torch.tensor):
        weight = torch.nn.Parameter(torch.tensor([1.0, -2.0]))
        optimizer = torch.optim.AdamW([weight], lr=kind(0.3), fused=True)
        for step, rate in enumerate(rates, start=1):
            set_step(optimizer, rate, step, CONFIG)
            weight.grad = weight.detach() * step
            optimizer.step()
        weights.append(weight.detach())
    torch.testing.assert_close(*weights)


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
