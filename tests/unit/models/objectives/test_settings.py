"""Every objective: registered, with an example that runs, parameters, shares of processes; losses in float64."""

import doctest
import importlib
import pkgutil
from dataclasses import replace
from functools import partial

import numpy as np
import polars as pl
import pytest
import torch
from torch.nn.functional import cosine_similarity

from bsl.models import objectives
from bsl.models.encoder.config import EncoderConfig
from bsl.models.encoder.sentence_encoder import SentenceEncoder
from bsl.models.errors import TrainingError
from bsl.models.objectives import config
from bsl.models.objectives.bsl_config import BSLConfig
from bsl.models.objectives.contrastive_config import ContrastiveConfig, SimCSEConfig
from bsl.models.objectives.info_nce import info_nce, nt_xent
from bsl.models.training.config import TrainingConfig
from bsl.models.training.distributed import all_reduce_gradients
from bsl.models.training.loop import train
from bsl.storage.artifacts.keys import fingerprint
from bsl.storage.assets.embedded import embedded_path
from tests.fake_processes import as_process
from tests.tiny_encoder import every_field, pairs_of, tiny_encoder
from tests.tiny_training import OBJECTIVE_CONFIGS

ROWS, COLUMNS, TEMPERATURE = 7, 5, 0.3
SMALL = {"k": 2, "norm": "layer", "target_norm": "center"}
MODULES = sorted(found.name for found in pkgutil.walk_packages(objectives.__path__, "bsl.models.objectives."))
PINS = {  # training settings as artifact keys contain them: a changed field would recompute all checkpoints
    "bsl": "abaaed629bb80810",
    "contrastive": "0fd7546877766c50",
    "simcse": "cc6d814442cd2d00",
    "regression": "08c4a83b612ca22b",
    "masked-lm": "8db159aa006e0fe5",
    "tsdae": "8164dd140c42bebe",
    "isbert": "d4ed7ed4cfbdcf08",
    "softmax": "8774f83edc6bea0c",
    "scl": "92d9c73702881547",
    "cross-regression": "ba35935430a0d954",
    "cross-softmax": "0466d1afc4e09681",
    "distil": "22d6043c4ec7f358",
}


def draw(seed):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(2, ROWS, COLUMNS, generator=generator, dtype=torch.float64)


def powers(one, two):
    return (cosine_similarity(one[:, None], two[None], dim=-1) / TEMPERATURE).exp()


def restated_nt_xent(h1, h2):
    """Chen et al. (2020), equation 1, over all 2n sentences."""
    scores = powers(torch.cat([h1, h2]), torch.cat([h1, h2]))
    positives = torch.cat([powers(h1, h2).diagonal(), powers(h2, h1).diagonal()])
    return -(positives / (scores.sum(1) - scores.diagonal())).log().mean().item()


def restated_simcse(z1, z2):
    """Gao et al. (2021), equation 4."""
    return -(powers(z1, z2).diagonal() / powers(z1, z2).sum(1)).log().mean().item()


def test_contrastive_losses_equal_their_publications():
    one, two = draw(0)
    assert nt_xent(one, two, TEMPERATURE).item() == pytest.approx(restated_nt_xent(one, two), abs=1e-12)
    assert info_nce(one, two, TEMPERATURE).item() == pytest.approx(restated_simcse(one, two), abs=1e-12)
    assert info_nce(two, one, TEMPERATURE).item() != pytest.approx(restated_simcse(one, two), abs=1e-3)


def test_losses_are_computed_in_full_precision_inside_autocast():
    h1, h2 = draw(9).float()
    for loss in (nt_xent, info_nce, partial(info_nce, symmetric=True)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            short = loss(h1, h2, 0.05)
        assert short.item() == loss(h1, h2, 0.05).item()


@pytest.fixture
def encoder(tmp_path):
    return tiny_encoder(tmp_path, dropout=0.1)


@pytest.mark.parametrize("name", OBJECTIVE_CONFIGS)
def test_gradients_reach_exactly_the_learning_parameters(encoder, name):
    config = OBJECTIVE_CONFIGS[name]()
    if "k" in type(config).model_fields:
        config = config.model_copy(update=SMALL)
    torch.manual_seed(0)
    objective = config.build(*encoder)
    objective(pairs_of(encoder[1], **every_field())).backward()
    learning = {id(p) for p in objective.learning_parameters()}
    for part, module in objective.named_children():
        for p in module.parameters():
            assert (id(p) in learning) == p.requires_grad == (part != "target")
            assert p.requires_grad or p.grad is None
    assert sum(p.grad is not None and bool(p.grad.abs().sum() > 0) for p in encoder[0].parameters()) > 20
    state = {f"{part}.{n}" for part, module in objective.named_children() for n in module.state_dict()}
    assert state == set(objective.state_dict())  # the saved parts contain the whole state


@pytest.mark.parametrize("name", ["masked-lm", "tsdae", "cross-regression", "cross-softmax"])
def test_gradients_of_processes_sum_to_the_single_process_gradient(tmp_path, name):
    """Objectives that compute a share of the loss; the fake group communicates nothing, so each has its own part."""
    encoder, tokenizer = tiny_encoder(tmp_path, dropout=0.0)
    torch.manual_seed(1)
    objective = OBJECTIVE_CONFIGS[name]().build(encoder, tokenizer).double()
    pairs = pairs_of(tokenizer, **every_field())

    def gradients():
        objective.zero_grad()
        np.random.seed(3)  # noqa: NPY002  the run draws masks from the global generator
        objective(pairs).backward()
        all_reduce_gradients(objective, objective.learning_parameters())
        return [None if p.grad is None else p.grad.clone() for p in objective.learning_parameters()]

    whole, shares = gradients(), []
    for rank in range(2):
        with as_process(rank, of=2):
            shares.append(gradients())
    found = [(sum(parts), expected) for expected, *parts in zip(whole, *shares, strict=True) if expected is not None]
    assert len(found) > 20
    for ours, expected in found:
        torch.testing.assert_close(ours, expected, rtol=1e-6, atol=1e-9)


def test_every_objective_config_is_registered_with_name_citation_example_and_pinned_hash():
    classes = {config.objective_class() for config in OBJECTIVE_CONFIGS.values()}
    assert len(classes) == len(OBJECTIVE_CONFIGS)
    assert all(config().name == name for name, config in OBJECTIVE_CONFIGS.items())
    assert all(config.title and config.citation.endswith(".") for config in OBJECTIVE_CONFIGS.values())
    parser = doctest.DocTestParser()
    assert [kind.__name__ for kind in classes if not parser.get_examples(kind.__doc__)] == []
    found = {name: fingerprint(TrainingConfig(objective=kind()))[:16] for name, kind in OBJECTIVE_CONFIGS.items()}
    assert found == PINS, "a new objective adds its line"


def test_docstring_examples_give_the_documented_output(encoder):
    kinds = [settings.objective_class() for settings in OBJECTIVE_CONFIGS.values()]
    given = {"torch": torch, "encoder": encoder[0], "tokenizer": encoder[1]}
    given["batch"] = pairs_of(encoder[1], **every_field())
    names = vars(config) | {kind.__name__: kind for kind in kinds} | given
    torch.manual_seed(0)
    for module in MODULES:
        assert doctest.testmod(importlib.import_module(module), extraglobs=names).failed == 0


def test_simcse_encodes_the_first_view_twice_with_different_dropout(encoder, tmp_path):
    objective = SimCSEConfig(head="none", temperature=1.0).build(encoder[0])
    pairs = pairs_of(encoder[1])
    torch.manual_seed(4)
    twice = objective.online.embed_rows(pairs.tokens, np.concatenate([pairs.view_1, pairs.view_1]))
    assert (twice[:4] - twice[4:]).abs().max() > 1e-3
    for view_2 in (pairs.view_1, pairs.view_2):
        torch.manual_seed(4)
        loss = objective(replace(pairs, view_2=view_2))
        assert loss.item() == pytest.approx(info_nce(twice[:4], twice[4:], 1.0).item(), abs=1e-6)
    with pytest.raises(TrainingError, match=r"has no dropout.*Set encoder\.dropout"):
        SimCSEConfig().build(tiny_encoder(tmp_path, dropout=0.0)[0])


class BareConfig(SimCSEConfig):
    @classmethod
    def objective_class(cls):
        class Bare(super().objective_class()):
            def __init__(self, online, settings):
                super().__init__(online, settings)
                self.scale = torch.nn.Parameter(torch.ones(()))

        return Bare


def test_objective_whose_parameter_snapshots_would_lose_is_refused(tmp_path):
    with pytest.raises(TypeError, match=r"snapshots would lose scale\. Put it into an nn\.Module"):
        BareConfig().build(tiny_encoder(tmp_path)[0])


STEPS = 20
USUAL = {"precision": "fp32", "lr": 1e-3, "batch_size": 16, "max_steps": STEPS, "eval_every": STEPS, "select": "last"}


@pytest.mark.parametrize(
    ("objective", "rise"),  # of dev Spearman: a third of the observed
    [(BSLConfig(target_norm="standardize"), 0.03), (ContrastiveConfig(), 0.08), (SimCSEConfig(), 0.04)],
    ids=["bsl", "contrastive", "simcse"],
)
def test_training_lowers_the_loss_and_raises_the_dev_score(shallow, objective, rise):
    torch.set_num_threads(1)
    dropout = 0.1 if objective.name == "simcse" else None
    encoder = SentenceEncoder.load(shallow, EncoderConfig(model="shallow", dropout=dropout))
    sample = pl.read_parquet(embedded_path("nli-sample") / "train.parquet")
    short = sample.filter(pl.col("premise").str.len_chars() < 60, pl.col("label") == 0)
    pairs = short.select(text_1="premise", text_2="hypothesis").head(16 * STEPS)
    dev = pl.read_parquet(embedded_path("stsb") / "dev.parquet").filter(pl.col("sentence1").str.len_chars() < 60)
    config = TrainingConfig(objective=objective, collapse=None, **USUAL)
    result = train(pairs, encoder, config, dev=dev.head(200))
    loss = result.log["loss"].drop_nulls()
    assert len(loss) == STEPS
    assert loss.tail(3).mean() < loss.head(3).mean()
    assert result.best_dev - result.start_dev > rise
