"""Distillation equals its publications in float64; queue, projection and export."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives.distillation import RIDGE, Distil, VectorQueue, linear_fit
from bsl.models.objectives.distillation_config import DistilConfig
from tests.equal_losses import assert_equal_losses
from tests.exports import exported
from tests.tiny_encoder import ORIGINALS, WIDTH, pairs_of, tiny_encoder, write_tiny

TEACHER_WIDTH, PLACES = 7, 6
STUDENT_T, TEACHER_T = 0.3, 0.2
TEMPERATURES = {"student_temperature": STUDENT_T, "teacher_temperature": TEACHER_T}
CASES = {
    "similarities": DistilConfig(**TEMPERATURES),
    "similarities and vectors": DistilConfig(**TEMPERATURES, vectors_weight=0.5, distance="cosine"),
    "queue": DistilConfig(**TEMPERATURES, queue=PLACES, activation="tanh"),
    "vectors": DistilConfig(loss="vectors"),
    "first views": DistilConfig(loss="vectors", distance="cosine", views="first", projection="dropped"),
}


def restated_divergence(h, t, queue):
    """Return KL(p ‖ q) over the queue and the teacher's batch, or else over the other sentences of the batch."""
    others = [torch.cat([queue, t])] * 2 if len(queue) else [h, t]
    log_q, log_p = (
        cosine_similarity(x[:, None], others[None], dim=-1) / temperature
        for x, others, temperature in zip((h, t), others, (STUDENT_T, TEACHER_T), strict=True)
    )
    if not len(queue):
        log_q, log_p = (x[~torch.eye(len(h)).bool()].view(len(h), -1) for x in (log_q, log_p))
    log_q, log_p = log_q.log_softmax(1), log_p.log_softmax(1)
    return (log_p.exp() * (log_p - log_q)).sum(1).mean()


def restated_distance(h, t, kind):
    return ((h - t) ** 2).mean() if kind == "mse" else (1 - cosine_similarity(h, t)).mean()


def restated(config, h, t, queue):
    """Return the loss of one view."""
    if config.loss == "vectors":
        return restated_distance(h, t, config.distance)
    loss = restated_divergence(h, t, queue)
    return loss + config.vectors_weight * restated_distance(h, t, config.distance) if config.vectors_weight else loss


@pytest.fixture
def setting(tmp_path):
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    generator = np.random.default_rng(4)
    known = generator.normal(size=(20, TEACHER_WIDTH)).astype(np.float32)
    return encoder, pairs_of(tokenizer, teacher=generator.normal(size=(4, TEACHER_WIDTH))), known


def met(setting, config):
    encoder, pairs, known = setting
    torch.manual_seed(1)
    objective = Distil(encoder, config)
    objective.fit_to_teacher(pairs, known)
    return objective.double()


@pytest.mark.parametrize("config", CASES.values(), ids=CASES)
def test_loss_and_gradients_equal_the_restated_formula(setting, config):
    objective, pairs = met(setting, config), setting[1]
    queue = objective.queue.vectors = torch.nn.functional.normalize(objective.queue.vectors, dim=-1)
    views = [pairs.view_1, pairs.view_2] if config.views == "both" else [pairs.view_1]
    vectors = [objective.projection(objective.online(*pairs.tokens.padded(view))) for view in views]
    plain = sum(restated(config, h, torch.as_tensor(pairs.columns["teacher"]), queue) for h in vectors) / len(views)
    parameters = dict(objective.named_parameters())
    assert_equal_losses(objective(pairs), plain, list(parameters.values()), 1e-9, 1e-9)
    projected = config.compares_vectors
    assert any("linear.weight" in name for name in parameters) == projected
    assert objective.online.width == (TEACHER_WIDTH if projected and config.projection == "kept" else WIDTH)


def test_full_queue_drops_the_oldest_vectors_first():
    queue = VectorQueue()
    queue.fill(np.eye(3, dtype=np.float32).repeat(4, axis=0), 5)
    assert queue.vectors.shape == (5, 3)
    for slopes, left in [("12", "12"), ("34", "1234"), ("56", "23456"), ("123456789", "56789")]:
        queue.push(torch.tensor([[float(slope), 1.0, 0] for slope in slopes]))
        torch.testing.assert_close(queue.vectors.norm(dim=1), torch.ones(5))
        found = sorted(str(round(x / y)) for x, y, _ in queue.vectors.tolist() if x > 0 and y > 0)
        assert "".join(found) == left


def test_queue_longer_than_the_corpus_is_refused(setting):
    with pytest.raises(TrainingError, match=r"objective\.queue is 21, but there are only 20 sentences.*at most 10"):
        met(setting, DistilConfig(queue=21))


def test_linear_fit_equals_the_ridge_regression_solution():
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(200, 4, generator=generator, dtype=torch.float64)
    t = h @ torch.randn(4, 3, generator=generator, dtype=torch.float64) + 0.5
    weight, bias = linear_fit(h, t)
    centred = h - h.mean(0)
    ridge = RIDGE * (centred**2).mean() * 200
    slopes = torch.linalg.inv(centred.T @ centred + ridge * torch.eye(4)) @ centred.T @ (t - t.mean(0))
    torch.testing.assert_close(weight, slopes.T)
    torch.testing.assert_close(h.mean(0) @ weight.T + bias, t.mean(0))


@pytest.mark.parametrize("projection", ["kept", "dropped"])
def test_projection_fits_a_student_with_normalized_vectors_and_is_exported(tmp_path, projection):
    """A kept projection is applied before the scaling, so its input differs in length from the student's vectors."""
    folder = write_tiny(tmp_path / "start")
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24, normalize=True))
    wide = (encoder.encode(ORIGINALS) @ np.random.default_rng(0).normal(size=(WIDTH, 2 * WIDTH))).astype(np.float32)
    config = DistilConfig(loss="vectors", distance="cosine", projection=projection, projection_start="fitted")
    objective = Distil(encoder.network, config)
    taught = replace(pairs_of(encoder.tokenizer, ORIGINALS, ORIGINALS), columns={"teacher": wide})
    objective.fit_to_teacher(taught, wide)
    objective.eval()
    assert objective(taught).item() < 0.1
    made = exported(encoder.with_network(objective.online), tmp_path / "out", ORIGINALS).encode(ORIGINALS)
    assert made.shape == (4, 2 * WIDTH if projection == "kept" else WIDTH)
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
