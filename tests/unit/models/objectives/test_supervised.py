"""Supervised objectives (labels and scores) equal float64 restatements of their publications."""

import math

import numpy as np
import pytest
import torch
from pydantic import ValidationError

from bsl.models.encoder.layouts import Tokens
from bsl.models.errors import TrainingError
from bsl.models.objectives.objective import Batch
from bsl.models.objectives.scl import contrast, contrasts_of, further_pairs
from bsl.models.objectives.supervised import PairClassifier, binary_cross_entropy, cross_entropy, sigmoid_error
from bsl.models.objectives.supervised_config import SCLConfig, SoftmaxConfig
from tests.equal_losses import assert_equal_losses
from tests.tiny_encoder import pairs_of, tiny_encoder

WIDTH = 5
LABELS = [0, 1, 2, 0, 0, 2, 1, 0]
GROUPS = [7, 7, 7, 7, 3, 3, 9, 7]


def batch_of(ids=range(16)):
    tokens = Tokens(np.array(ids, dtype=np.int32), np.arange(17), 0)
    known = {"label": np.array(LABELS), "group": np.array(GROUPS, dtype=np.uint64)}
    return Batch(tokens, np.arange(8), np.arange(8, 16), known)


def draw(seed):
    generator = torch.Generator().manual_seed(seed)
    u, v = (torch.randn(len(LABELS), WIDTH, generator=generator, dtype=torch.float64) for _ in range(2))
    return u.requires_grad_(), v.requires_grad_()


def restated_cross_entropy(u, v, labels, classifier, features):
    """SBERT section 3: −log softmax(W (u, v, |u − v|)) of the label; the layers are affine maps."""
    made = {"u": u, "v": v, "|u-v|": abs(u - v), "u*v": u * v}
    x = torch.cat([made[name] for name in features], dim=1)
    for layer in classifier.layers:
        x = x @ layer.weight.T + layer.bias
    return -x.log_softmax(1)[range(len(labels)), labels].mean()


def restated_scl(u, v, batch, temperature):
    """SCL's equation 2, by anchor and positive; the mean is over anchors, as in its code."""
    labels, groups = batch.columns["label"], batch.columns["group"]
    log_shares, anchors = (u @ v.T / temperature).log_softmax(1), np.flatnonzero(labels == 0)
    return -sum(log_shares[i, (labels == 0) & (groups == groups[i])].mean() for i in anchors) / len(anchors)


@pytest.mark.parametrize(
    "config", [SoftmaxConfig(), SoftmaxConfig(features=("|u-v|", "u*v")), SoftmaxConfig(head="two-layer")], ids=str
)
def test_pair_classification_loss_equals_its_publication(config):
    torch.manual_seed(0)
    classifier = PairClassifier(WIDTH, config).double()
    assert classifier.layers[0].in_features == len(config.features) * WIDTH
    u, v = draw(0)
    ours = cross_entropy(classifier(u, v), torch.tensor(LABELS))
    theirs = restated_cross_entropy(u, v, LABELS, classifier, config.features)
    assert_equal_losses(ours, theirs, [u, v, *classifier.parameters()], 1e-12, 1e-12)


@pytest.mark.parametrize(("similarity", "temperature"), [("dot", 1.0), ("dot", 0.1), ("cosine", 0.05)])
def test_scl_contrastive_loss_equals_its_publication(similarity, temperature):
    u, v = draw(1)
    config = SCLConfig(similarity=similarity, temperature=temperature)
    ours = contrast(u, v, contrasts_of(batch_of(), config), config)
    sides = (u, v) if similarity == "dot" else [x / x.norm(dim=1, keepdim=True) for x in (u, v)]
    assert_equal_losses(ours, restated_scl(*sides, batch_of(), temperature), [u, v], 1e-12, 1e-12)


@pytest.mark.parametrize(("positives", "negatives"), [(1, 1), (2, 3), (9, 9), (None, 2)])
def test_sampled_positives_and_negatives_are_limited_to_the_available(positives, negatives):
    contrasts = contrasts_of(batch_of(), SCLConfig(positives=positives, negatives=negatives))
    candidates = contrasts_of(batch_of(), SCLConfig())
    for drawn, among, number in (
        (contrasts.positives, candidates.positives, positives),
        (contrasts.negatives, candidates.negatives, negatives),
    ):
        assert not (drawn & ~among).any()
        bound = among.sum(axis=1) if number is None else np.minimum(number, among.sum(axis=1))
        assert drawn.sum(axis=1).tolist() == bound.tolist()
    own = contrasts.positives[np.arange(4), contrasts.anchors]
    assert own.all()  # an anchor's own hypothesis is never left out


def test_sampled_negatives_depend_only_on_the_batch():
    batches = batch_of(), batch_of(), batch_of(range(15, -1, -1))
    one, again, two = (contrasts_of(batch, SCLConfig(negatives=2)).negatives for batch in batches)
    assert (one == again).all()
    assert (one != two).any()


def test_augment_control_classifies_the_pairs_contrasted_by_scl():
    batch = batch_of()
    premises, hypotheses, labels = further_pairs(batch, contrasts_of(batch, SCLConfig()))
    pairs = set(zip(premises.tolist(), hypotheses.tolist(), labels.tolist(), strict=True))
    labels_of = {i: [LABELS[j] if GROUPS[i] == GROUPS[j] else 2 for j in range(8)] for i in (0, 3, 4, 7)}
    assert pairs == {(i, j, label) for i, row in labels_of.items() for j, label in enumerate(row) if i != j}
    assert len(premises) == len(pairs)


@pytest.fixture
def encoder(tmp_path):
    return tiny_encoder(tmp_path, dropout=0.0)


def real_batch(tokenizer, labels, groups=(1, 1, 2, 2)):
    return pairs_of(tokenizer, label=np.array(labels), group=np.array(groups, dtype=np.uint64))


def both_sides(objective, batch):
    return objective.online.embed_rows(batch.tokens, np.concatenate([batch.view_1, batch.view_2])).chunk(2)


@pytest.mark.parametrize(
    ("weight", "labels"), [(0.0, [0, 0, 1, 2]), (0.3, [0, 0, 1, 2]), (1.0, [0, 0, 1, 2]), (0.3, [1, 2, 1, 2])]
)
def test_scl_weight_mixes_cross_entropy_and_contrastive_loss(encoder, weight, labels):
    """A batch without anchors uses only cross-entropy."""
    config = SCLConfig(weight=weight)
    objective, batch = config.build(encoder[0]), real_batch(encoder[1], labels)
    u, v = both_sides(objective, batch)
    plain = restated_cross_entropy(u, v, labels, objective.classifier, config.features)
    contrastive = restated_scl(u, v, batch, 1.0) if 0 in labels else 0.0
    theirs, loss = (1 - weight) * plain + weight * contrastive, objective(batch)
    assert loss.item() == pytest.approx(theirs.item(), abs=1e-5)
    loss.backward()
    assert all(torch.isfinite(p.grad).all() for p in objective.learning_parameters() if p.grad is not None)


def test_augment_control_adds_pairs_to_the_cross_entropy(encoder):
    objective = (config := SCLConfig(control="augment", weight=0.5)).build(encoder[0])
    batch = real_batch(encoder[1], [0, 0, 1, 2])
    u, v = both_sides(objective, batch)
    premises, hypotheses, labels = further_pairs(batch, contrasts_of(batch, config))
    first, second = [*range(4), *premises], [*range(4), *hypotheses]
    theirs = restated_cross_entropy(u[first], v[second], [0, 0, 1, 2, *labels], objective.classifier, config.features)
    assert objective(batch).item() == pytest.approx(theirs.item(), abs=1e-5)
    assert config.label != SCLConfig().label


def test_labels_outside_the_classes_and_duplicate_features_are_refused(encoder):
    objective = SoftmaxConfig(classes=2).build(encoder[0])
    with pytest.raises(TrainingError, match=r"a batch has labels from 0 to 2, expected 0 to 1\. Set .*classes"):
        objective(real_batch(encoder[1], [0, 1, 2, 0]))
    with pytest.raises(ValidationError, match="a feature occurs twice"):
        SoftmaxConfig(features=("u", "u"))


def test_cross_encoder_losses_equal_their_formulas_and_stay_finite():
    generator = torch.Generator().manual_seed(1)
    values = torch.randn(6, generator=generator, dtype=torch.float64).requires_grad_()
    scores = torch.rand(6, generator=generator, dtype=torch.float64)
    sigmas = 1 / (1 + torch.exp(-values))
    cross = -(scores * sigmas.log() + (1 - scores) * (1 - sigmas).log()).mean()
    squared = ((sigmas - scores) ** 2).mean()
    assert_equal_losses(binary_cross_entropy(values, scores), cross, [values], 1e-12, 1e-12)
    assert_equal_losses(sigmoid_error(values, scores), squared, [values], 1e-12, 1e-12)
    assert math.isfinite(binary_cross_entropy(torch.tensor([1e4, -1e4]), torch.tensor([0.0, 1.0])).item())
