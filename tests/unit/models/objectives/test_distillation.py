"""Distillation equals its publications in float64; queue, projection, and a student that approaches its teacher."""

import copy
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives.distillation import RIDGE, Distil, VectorQueue, linear_fit
from bsl.models.objectives.distillation_config import DistilConfig
from bsl.models.training.config import TrainingConfig
from bsl.models.training.loop import train
from bsl.models.training.token_cache import TeacherVectors
from tests.exports import exported
from tests.tiny_encoder import BACK_DE, ORIGINALS, WIDTH, pairs_of, tiny_encoder, write_shallow, write_tiny

ASSETS = Path(__file__).parents[4] / "storage" / "assets"
TEACHER_WIDTH, PLACES = 7, 6
STUDENT_T, TEACHER_T = 0.3, 0.2
CASES = [
    DistilConfig(student_temperature=STUDENT_T, teacher_temperature=TEACHER_T),
    DistilConfig(student_temperature=STUDENT_T, teacher_temperature=TEACHER_T, vectors_weight=0.5, distance="cosine"),
    DistilConfig(student_temperature=STUDENT_T, teacher_temperature=TEACHER_T, queue=PLACES, activation="tanh"),
    DistilConfig(loss="vectors"),
    DistilConfig(loss="vectors", distance="cosine", views="first", projection="dropped"),
]


def named(config):
    return f"{config.loss}-{config.distance}-{config.queue}-{config.vectors_weight}"


def dot(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True))


def cosine(a, b):
    return dot(a, b) / torch.sqrt(dot(a, a) * dot(b, b))


def restated_divergence(h, t, others_of):
    """Return KL(p ‖ q) as sums over the compared sentences, which differ by network and row."""
    total = 0.0
    for i in range(len(h)):
        mine, theirs = others_of(i)
        q = [torch.exp(cosine(h[i], other) / STUDENT_T) for other in mine]
        p = [torch.exp(cosine(t[i], other) / TEACHER_T) for other in theirs]
        q, p = [x / sum(q) for x in q], [x / sum(p) for x in p]
        total = total + sum(a * (torch.log(a) - torch.log(b)) for a, b in zip(p, q, strict=True))
    return total / len(h)


def restated_distance(h, t, kind):
    if kind == "mse":
        return sum((h[i, d] - t[i, d]) ** 2 for i in range(len(h)) for d in range(h.shape[1])) / h.numel()
    return sum(1 - cosine(h[i], t[i]) for i in range(len(h))) / len(h)


def restated(config, h, t, queue):
    """Return the loss of one view."""
    if config.loss == "vectors":
        return restated_distance(h, t, config.distance)

    def others_of(i):
        if config.queue:
            every = [*queue, *t]
            return every, every
        rest = [j for j in range(len(h)) if j != i]
        return [h[j] for j in rest], [t[j] for j in rest]

    loss = restated_divergence(h, t, others_of)
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
    return objective.double(), pairs


@pytest.mark.parametrize("config", CASES, ids=named)
def test_loss_and_gradients_equal_the_restated_formula(setting, config):
    objective, pairs = met(setting, config)
    queue = objective.queue.vectors = torch.nn.functional.normalize(objective.queue.vectors, dim=-1)
    views = [pairs.view_1, pairs.view_2] if config.views == "both" else [pairs.view_1]
    vectors = [objective.projection(objective.online(*pairs.tokens.padded(view))) for view in views]
    plain = sum(restated(config, h, torch.as_tensor(pairs.columns["teacher"]), queue) for h in vectors) / len(views)
    parameters = dict(objective.named_parameters())
    expected = torch.autograd.grad(plain, parameters.values(), allow_unused=True)
    loss = objective(pairs)
    assert loss.item() == pytest.approx(plain.item(), abs=1e-9)
    found = torch.autograd.grad(loss, parameters.values(), allow_unused=True)
    both = [(a, b) for a, b in zip(expected, found, strict=True) if a is not None]
    assert max((a - b).abs().max().item() for a, b in both) <= 1e-9
    assert max(a.abs().max().item() for a, _ in both) > 1e-4
    projected = config.compares_vectors
    assert any("linear.weight" in name for name in parameters) == projected
    assert objective.online.width == (TEACHER_WIDTH if projected and config.projection == "kept" else WIDTH)


def test_loss_is_zero_when_student_similarities_equal_the_teacher(setting):
    objective, pairs = met(setting, CASES[0])
    with torch.no_grad():
        h = objective.online(*pairs.tokens.padded(pairs.view_1))
        alike = CASES[0].model_copy(update={"teacher_temperature": STUDENT_T})
        objective.config = alike
        assert objective.loss(h, 3 * h).item() == pytest.approx(0, abs=1e-12)


def test_full_queue_drops_the_oldest_vectors_first():
    queue = VectorQueue()
    queue.fill(np.eye(3, dtype=np.float32).repeat(4, axis=0), 5)
    assert queue.vectors.shape == (5, 3)

    def push(*slopes):
        queue.push(torch.tensor([[float(slope), 1.0, 0] for slope in slopes]))
        torch.testing.assert_close(queue.vectors.norm(dim=1), torch.ones(5))
        return sorted(round(float(x / y)) for x, y, _ in queue.vectors.tolist() if x > 0 and y > 0)

    assert push(1, 2) == [1, 2]
    assert push(3, 4) == [1, 2, 3, 4]
    assert push(5, 6) == [2, 3, 4, 5, 6]
    assert push(*range(11, 20)) == [15, 16, 17, 18, 19]


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
    assert (h @ weight.T + bias - t).abs().max() < 0.1


@pytest.mark.parametrize("projection", ["kept", "dropped"])
def test_fitted_projection_starts_with_lower_loss_than_random(setting, projection):
    encoder, pairs, known = setting
    losses = []
    for start in ("random", "fitted"):
        config = DistilConfig(loss="vectors", projection=projection, projection_start=start)
        objective, _ = met((copy.deepcopy(encoder), pairs, known), config)
        losses.append(objective(pairs).item())
    assert losses[1] < 0.7 * losses[0]


@pytest.mark.parametrize("projection", ["kept", "dropped"])
def test_fitted_projection_fits_a_student_with_normalized_vectors(tmp_path, projection):
    """A kept projection is applied before the scaling, so its input differs in length from the student's vectors."""
    folder = write_tiny(tmp_path)
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24, normalize=True))
    pairs = pairs_of(encoder.tokenizer, ORIGINALS, ORIGINALS)
    vectors = encoder.encode(ORIGINALS)
    wide = (vectors @ np.random.default_rng(0).normal(size=(WIDTH, 2 * WIDTH))).astype(np.float32)
    config = DistilConfig(loss="vectors", distance="cosine", projection=projection, projection_start="fitted")
    objective = Distil(encoder.network, config)
    taught = replace(pairs, columns={"teacher": wide})
    objective.fit_to_teacher(taught, wide)
    objective.eval()
    assert objective(taught).item() < 0.1


def test_bilingual_student_approaches_an_english_teacher_and_exports(shallow, tmp_path):
    """Train on one encoder's English vectors and parallel text; compare held-out cosines of English and German."""
    torch.set_num_threads(1)
    rows = pl.read_parquet(ASSETS / "held-out" / "tatoeba-de.parquet")
    text = rows.filter(pl.col("de").str.len_chars() < 60).with_row_index("sentence_id")
    english = SentenceEncoder.load(shallow, EncoderConfig(model="shallow", normalize=True))
    vectors = english.encode(text["en"].to_list()[:400])
    vectors = (vectors - vectors.mean(axis=0)).astype(np.float32)
    learnt, kept = text[:320], text[320:400]
    folder = write_shallow(tmp_path / "start", "bert-mini-mul")
    student = SentenceEncoder.load(folder, EncoderConfig(model="shallow"))
    config = TrainingConfig(
        precision="fp32",
        objective=DistilConfig(loss="vectors", distance="cosine"),
        lr=1e-3,
        batch_size=16,
        max_steps=20,
        select="last",
        collapse=None,
    )
    pairs = learnt.select(pl.col("sentence_id").cast(pl.UInt64), text_1="en", text_2="de")
    teacher = TeacherVectors(np.arange(320, dtype=np.uint64), vectors[:320])

    def nearness(network, column):
        found = student.with_network(network).encode(kept[column].to_list())
        found = found - found.mean(axis=0)
        goal = vectors[320:]
        return float(((found * goal).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(goal, axis=1)).mean())

    before = {column: nearness(student.network, column) for column in ("en", "de")}
    result = train(pairs, student, config, teacher=teacher)
    after = {column: nearness(result.encoder, column) for column in ("en", "de")}
    assert all(after[column] > before[column] + 0.1 for column in before), (before, after)
    losses = result.log["loss"].drop_nulls()
    assert losses.tail(5).mean() < losses.head(5).mean()
    exported(student.with_network(result.encoder), tmp_path / "out", kept["de"].to_list())


def test_exported_student_applies_projection_before_normalization(tmp_path):
    folder, width = write_tiny(tmp_path / "start"), 48
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="tiny", max_length=24, normalize=True))
    objective = Distil(encoder.network, DistilConfig(queue=2))
    pairs = pairs_of(encoder.tokenizer)
    vectors = np.random.default_rng(0).normal(size=(4, width)).astype(np.float32)
    objective.fit_to_teacher(replace(pairs, columns={"teacher": vectors}), vectors)
    made = exported(encoder.with_network(objective.online.eval()), tmp_path / "out", BACK_DE).encode(BACK_DE)
    assert made.shape == (4, width)
    assert np.linalg.norm(made, axis=1) == pytest.approx(np.ones(4), abs=1e-5)
