"""BERT-flow on vectors of a real encoder: the likelihood rises, and a killed fit resumes."""

import polars as pl
import pytest
import torch

from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import EvaluationError, InterruptedRunError, ResumeError
from bsl.models.training.snapshots import Execution
from bsl.models.transforms.bert_flow import Flow
from bsl.models.transforms.config import FlowConfig
from bsl.models.transforms.glow import FlatAdam, Glow
from bsl.storage.assets.embedded import embedded_path

QUICK = FlowConfig(max_steps=20, batch_size=32)


@pytest.fixture(scope="module")
def vectors_ND():
    """Return vectors of 800 NLI sentences from `bert-mini`."""
    folder = embedded_path("bert-mini")
    encoder = SentenceEncoder.load(folder, EncoderConfig(model="embedded:bert-mini", pooling="first-last"))
    texts = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")["premise"].unique(maintain_order=True)
    return torch.tensor(encoder.encode(texts.head(800).to_list()))


@pytest.fixture(scope="module")
def fitted(vectors_ND):
    return QUICK.fitted(vectors_ND)


def test_fitting_lowers_bits_per_dimension_of_unseen_vectors(vectors_ND):
    seen_ND, unseen_ND = vectors_ND[:600], vectors_ND[600:]
    start = Flow.fit(seen_ND, QUICK.model_copy(update={"max_steps": 0}), Execution())
    fitted = Flow.fit(seen_ND, QUICK.model_copy(update={"max_steps": 60, "epochs": 10}), Execution())
    assert fitted.figures["steps"] == 60
    assert fitted.figures["bits_per_dimension"] < fitted.figures["bits_per_dimension_at_start"] - 0.1
    with torch.no_grad():
        before, after = (float(flow.network.bits_per_dimension(unseen_ND)) for flow in (start, fitted))
    assert after < before - 0.1


def test_fit_is_determined_by_the_seed_and_restored_from_its_tensors(vectors_ND, fitted):
    z_ND = fitted.apply(vectors_ND)
    assert (z_ND.shape, z_ND.dtype) == (vectors_ND.shape, torch.float32)
    again = type(fitted)(fitted.config, fitted.tensors)
    assert again.linear() is None
    other = QUICK.model_copy(update={"seed": 1, "mixing": "reversal"}).fitted(vectors_ND)
    for flow, is_same in ((again, True), (QUICK.fitted(vectors_ND), True), (other, False)):
        assert torch.allclose(flow.apply(vectors_ND), z_ND, rtol=0, atol=0) is is_same


def test_stopped_fit_resumes_to_identical_tensors(vectors_ND, fitted, tmp_path):
    told, asked = [], iter([False] * 6 + [True])
    with pytest.raises(InterruptedRunError, match="stopped on request after step 7 of 20"):
        QUICK.fitted(vectors_ND, Execution(work=tmp_path, should_stop=lambda: next(asked)))
    goes_on = Execution(work=tmp_path, on_progress=lambda *said: told.append(said[:2]))
    resumed = QUICK.fitted(vectors_ND, goes_on)
    assert all(torch.equal(resumed.tensors[name], tensor) for name, tensor in fitted.tensors.items())
    assert resumed.figures == fitted.figures
    assert told == [(20, 20)]
    with pytest.raises(ResumeError, match="of another run, with other data, settings"):
        QUICK.model_copy(update={"lr": 1e-2}).fitted(vectors_ND, Execution(work=tmp_path))


def test_optimizer_step_equals_the_released_update_rule(vectors_ND):
    config = QUICK.model_copy(update={"clip": 0.01, "lr": 1e-2})
    ours, theirs = (Glow(vectors_ND.shape[1], config) for _ in range(2))
    ours.init_actnorm(vectors_ND[:64])
    theirs.load_state_dict(ours.state_dict())
    adam = FlatAdam(ours, config)
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in theirs.parameters()]
    for number in range(3):
        batch_BD = vectors_ND[64 * number : 64 * (number + 1)]
        ours.bits_per_dimension(batch_BD).backward()
        adam.step()
        gradients = torch.autograd.grad(theirs.bits_per_dimension(batch_BD), list(theirs.parameters()))
        norm = sum(float(g.double().square().sum()) for g in gradients) ** 0.5
        assert norm > config.clip
        with torch.no_grad():
            for p, g, (m, v) in zip(theirs.parameters(), gradients, moments, strict=True):
                g = g * (config.clip / norm)
                m.copy_(0.9 * m + 0.1 * g)
                v.copy_(0.999 * v + 0.001 * g**2)
                p -= config.lr * (m / (v.sqrt() + config.eps) + config.weight_decay * p)
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)


def test_unsuitable_vectors_and_diverging_fits_are_refused(vectors_ND):
    constant, rare = vectors_ND.index_fill(1, torch.tensor([4]), 0.5), vectors_ND.index_fill(1, torch.tensor([3]), 0.0)
    # A unit behind a ReLU that seldom fires: its scale is a million, and compounds.
    rare[::200, 3] = 1.0
    cases = [
        (vectors_ND[:, :7], {}, r"a flow of 3 levels needs vectors of width 8 or more \(found 7\)"),
        (vectors_ND[:1], {}, "cannot fit a flow on 1 vectors, expected at least 2"),
        (constant, {}, r"1 of \d+ dimensions are constant over 800 vectors \(first: dimension 4\)"),
        (rare, {}, r"1 of \d+ dimensions hardly vary in the first 32 vectors \(first: dimension 3\)"),
        (vectors_ND, {"lr": 1e30}, "bits per dimension are nan at step 20.*Lower transform.lr"),
    ]
    for vectors, settings, message in cases:
        with pytest.raises(EvaluationError, match=message):
            QUICK.model_copy(update=settings).fitted(vectors)
    QUICK.model_copy(update={"max_steps": 2, "batch_size": 800}).fitted(rare)
