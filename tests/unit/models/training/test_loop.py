"""The training loop: learning, checkpoint selection, reproducibility to the bit, and early stops."""

import numpy as np
import polars as pl
import pytest
import torch
from scipy.stats import spearmanr

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import NonFiniteLossError
from bsl.models.training.config import CollapseConfig
from bsl.models.training.loop import train
from bsl.models.training.snapshots import Execution, write_snapshot
from bsl.storage.artifacts.schemas import TRAINING_LOG
from tests.tiny_encoder import tiny_encoder, write_tiny
from tests.tiny_training import CONFIG, DEV, PAIRS, STEPS, run


@pytest.fixture(params=["bert", "modernbert"])
def folder(request, tmp_path):
    return write_tiny(tmp_path / "model", request.param, layers=1)


@pytest.fixture
def bert(tmp_path):
    return write_tiny(tmp_path / "model", layers=1)


def same_tensors(one, two):
    return all(torch.equal(one[name], two[name]) for name in one.keys() | two.keys())


def same(one, two):
    return same_tensors(one.state_dict(), two.state_dict())


def changed(folder, dev=DEV, **fields):
    return run(folder, CONFIG.model_copy(update=fields), dev)


def test_training_lowers_the_loss_and_is_reproducible_by_seed_and_precision(folder, tmp_path):
    first, second = run(folder), run(folder)
    loss = first.log["loss"].drop_nulls()
    assert loss[-3:].mean() < loss[:3].mean() - 0.1
    write_snapshot(tmp_path / "1", first.state)
    write_snapshot(tmp_path / "2", second.state)
    names = sorted(path.name for path in (tmp_path / "1").iterdir())
    assert {f"{part}.safetensors" for part in ("online", "target", "predictor", "target_norm")} < set(names)
    for name in names:
        assert (tmp_path / "1" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()
    assert first.log.equals(second.log)
    assert not same(first.encoder, changed(folder, seed=4).encoder)
    short = changed(folder, precision="bf16").encoder
    assert {p.dtype for p in short.parameters()} == {torch.float32}
    assert not same(first.encoder, short)


def test_training_changes_neither_input_encoder_nor_random_state(bert):
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)
    encoder, tokenizer = tiny_encoder(bert, layers=1)
    before = {name: tensor.clone() for name, tensor in encoder.state_dict().items()}
    torch.manual_seed(11)
    result = train(PAIRS, SentenceEncoder(encoder, tokenizer), CONFIG, dev=DEV)
    assert torch.equal(torch.rand(1), expected)
    assert same_tensors(encoder.state_dict(), before)
    assert not same(result.encoder, encoder)


def test_log_has_a_row_per_step_and_reports_progress(bert):
    progress = []
    result = run(bert, on_progress=lambda *a: progress.append(a))
    log = result.log
    assert log.schema == TRAINING_LOG
    assert log["step"].to_list() == list(range(STEPS + 1))
    assert log.filter(pl.col("alignment").is_not_null())["step"].to_list() == [0, 3, 6, 9, 12]
    assert log["loss"].null_count() == 1
    assert log["dev_spearman"][0] == result.start_dev
    assert log["momentum"][-1] == 1.0  # the cosine ramp ends with a frozen target
    assert result.throughput.pairs_per_s > 0
    assert progress[-1][:2] == (STEPS, STEPS)
    assert "best dev" in progress[-1][2]
    # `tenth` rounds down and the default up: of 12 steps 1 and 2.
    for every, evaluated in (("tenth", range(STEPS + 1)), (None, range(0, STEPS + 1, 2))):
        assert changed(bert, eval_every=every).log.drop_nulls("dev_spearman")["step"].to_list() == list(evaluated)


def test_select_returns_the_best_evaluation_or_the_last_step(bert):
    best, last = run(bert), changed(bert, select="last")
    curve = best.log.filter(pl.col("step") > 0).drop_nulls("dev_spearman")
    assert best.best_dev == curve["dev_spearman"].max()
    assert best.best_step == curve.sort("dev_spearman", "step", descending=[True, False])["step"][0]
    assert (last.best_step, last.best_dev) == (STEPS, curve["dev_spearman"][-1])
    assert same_tensors(last.encoder.state_dict(), last.state.tensors["online"])
    without = run(bert, dev=None)
    assert (without.best_dev, without.best_step, without.start_dev) == (None, STEPS, None)
    assert without.log["dev_spearman"].null_count() == STEPS + 1


@pytest.mark.parametrize("momentum", [0.0, 1.0])
def test_momentum_0_copies_online_weights_and_1_freezes_target(bert, momentum):
    objective = CONFIG.objective.model_copy(update={"momentum": momentum, "momentum_schedule": "constant"})
    state = changed(bert, objective=objective).state
    start, _ = tiny_encoder(bert, layers=1)
    expected = state.tensors["online"] if momentum == 0 else start.state_dict()
    assert same_tensors(state.tensors["target"], expected)
    assert not same_tensors(state.tensors["online"], start.state_dict())


# No negatives, a target equal to the online network (δ = 0), a high learning rate.
COPIED = CONFIG.objective.model_copy(update={"target_norm": "none", "momentum": 0.0, "momentum_schedule": "constant"})
COLLAPSING = CONFIG.model_copy(
    update={"collapse": CollapseConfig(max_dev_drop=0.1, patience=1), "objective": COPIED, "lr": 0.3, "epochs": 20}
)


@pytest.mark.parametrize("select", ["best", "best-or-start", "last"])
def test_collapsed_run_stops_and_returns_the_start_encoder(bert, tmp_path, select):
    config = COLLAPSING.model_copy(update={"select": select})
    start, tokenizer = tiny_encoder(bert, layers=1)
    # The start's own cosines as scores: on no processor does a step of this chaotic training exceed its Spearman of 1.
    vectors = SentenceEncoder(start, tokenizer).encode(DEV["sentence1"].to_list() + DEV["sentence2"].to_list())
    first, second = np.split(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), 2)
    dev = DEV.with_columns(score=pl.Series((first * second).sum(axis=1)).rank("ordinal").cast(pl.Float64))
    result = run(bert, config, dev, work=tmp_path)
    assert result.best_step == 0
    assert result.best_dev == result.start_dev
    assert same(result.encoder, start)
    assert "representations collapsed by step" in result.finding
    assert all(name in result.finding for name in ("momentum", "effective_rank", "std", "dev_spearman"))
    assert 0 < result.steps < 20 * 8
    again = run(bert, config, dev, work=tmp_path)  # a stopped run does not start again
    assert (again.finding, again.steps, again.throughput.pairs_per_s) == (result.finding, result.steps, 0)
    assert same(again.encoder, start)


@pytest.mark.parametrize("step", [1, 4])
def test_nan_loss_error_names_step_and_saves_the_batch(bert, tmp_path, step):
    encoder, tokenizer = tiny_encoder(bert, layers=1)
    calls = iter(range(1, 10_000))

    def overflow(module, inputs, output):
        return output * float("inf") if module.training and next(calls) >= 2 * step - 1 else output

    # Online encoder and target run once each per step.
    encoder.backbone.embeddings.register_forward_hook(overflow)
    config = CONFIG.model_copy(update={"objective": CONFIG.objective.model_copy(update={"target_dropout": True})})
    frame = PAIRS.with_row_index("pair_id")
    with pytest.raises(NonFiniteLossError, match=f"loss is nan at step {step}") as caught:
        train(frame, SentenceEncoder(encoder, tokenizer), config, execution=Execution(work=tmp_path / "work"))
    assert caught.value.saved_in is not None
    assert caught.value.saved_in in str(caught.value)
    batch = pl.read_parquet(caught.value.saved_in)
    assert sorted(batch["row"]) == sorted(caught.value.rows)
    assert batch.drop("row").equals(frame[sorted(caught.value.rows)])


def test_best_of_four_dev_score_uses_the_best_similarity(bert):
    encoder = SentenceEncoder.load(bert, EncoderConfig(model="tiny", max_length=24))
    a, b = (encoder.encode(list(side)).astype("float64") for side in (DEV["sentence1"], DEV["sentence2"]))
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    others = {"dot": (a * b).sum(1), "manhattan": -abs(a - b).sum(1), "euclidean": -((a - b) ** 2).sum(1)}
    for values in others.values():  # a dev set that orders its pairs as this similarity does
        dev = DEV.with_columns(score=values)
        for name, expected in (("cosine", spearmanr(cosines, values).statistic), ("best-of-four", 1.0)):
            found = changed(bert, dev, dev_similarity=name, max_steps=1).start_dev
            assert found == pytest.approx(expected)
