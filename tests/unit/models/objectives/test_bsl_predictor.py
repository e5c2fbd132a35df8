"""The published predictors: parameter counts and normalisations."""

import pytest
import torch

from bsl.flows.recipes.paper import PAPER_TRAINING, RELEASED_TRAINING
from bsl.models.objectives.bsl import Predictor
from bsl.models.objectives.bsl_config import BSLConfig


def count(width: int, config: BSLConfig) -> int:
    with torch.device("meta"):  # counts 212 M parameters without allocating them
        return sum(p.numel() for p in Predictor(width, config).parameters())


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # 768·6144+6144 + 2·6144 + 6144²+6144 + 2·6144 + 6144·768+768
        (PAPER_TRAINING.objective, 47_223_552),
        # three times 768·7680+7680 + 2·7680 + 7680²+7680 + 7680·768+768; REFERENCE: about 212 M, twice BERT-base
        (RELEASED_TRAINING.objective, 212_431_104),
    ],
)
def test_preset_predictors_have_the_published_parameter_counts(config, expected):
    assert count(768, config) == expected


@pytest.mark.parametrize(("norm", "extra"), [("batch", 4), ("layer", 4), ("none", 0)])
def test_norm_layers_add_only_scale_and_shift_parameters(norm, extra):
    linears = 8 * 16 + 16 + 16 * 16 + 16 + 16 * 8 + 8
    assert count(8, BSLConfig(k=2, norm=norm)) == linears + extra * 16


@pytest.mark.parametrize("norm", ["layer", "none"])
def test_predictor_rows_are_independent_without_batch_norm(norm):
    torch.manual_seed(0)
    predictor, h_BD = Predictor(8, BSLConfig(k=2, norm=norm)), torch.randn(5, 8)
    torch.testing.assert_close(predictor(h_BD)[:2], predictor(h_BD[:2]))


def test_batch_norm_uses_the_statistics_of_each_call():
    torch.manual_seed(0)
    predictor, h_BD = Predictor(8, BSLConfig(k=2)), torch.randn(6, 8)
    both, first = predictor(h_BD), predictor(h_BD[:3])
    assert not torch.allclose(both[:3], first)


def test_released_2021_predictor_repeats_block_2_for_view_2():
    torch.manual_seed(0)
    early = Predictor(8, BSLConfig(predictor="released-2021", k=2)).eval()  # in training mode, statistics would move
    late = Predictor(8, BSLConfig(predictor="released", k=2)).eval()
    late.load_state_dict(early.state_dict())
    h_BD = torch.randn(4, 8)
    first, second, third = early.blocks
    assert torch.equal(early(h_BD, 1), third(second(first(h_BD))))
    assert torch.equal(early(h_BD, 2), second(second(first(h_BD))))
    assert torch.equal(late(h_BD, 2), early(h_BD, 1))
