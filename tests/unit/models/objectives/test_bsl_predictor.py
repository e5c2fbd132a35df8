"""The published predictors: parameter counts and normalisations."""

import pytest
import torch

from models.objectives.bsl import Predictor
from models.objectives.config import BSLConfig
from models.training.config import paper_config, released_config


def count(width: int, config: BSLConfig) -> int:
    with torch.device("meta"):  # counts 212 M parameters without allocating them
        return sum(p.numel() for p in Predictor(width, config).parameters())


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # 768·6144+6144 + 2·6144 + 6144²+6144 + 2·6144 + 6144·768+768
        (paper_config().objective, 47_223_552),
        # three times 768·7680+7680 + 2·7680 + 7680²+7680 + 7680·768+768; REFERENCE: about 212 M, twice BERT-base
        (released_config().objective, 212_431_104),
    ],
)
def test_parameters_of_the_presets_on_bert_base(config, expected):
    assert count(768, config) == expected


@pytest.mark.parametrize(("norm", "extra"), [("batch", 4), ("layer", 4), ("none", 0)])
def test_norms_only_add_their_scales_and_shifts(norm, extra):
    linears = 8 * 16 + 16 + 16 * 16 + 16 + 16 * 8 + 8
    assert count(8, BSLConfig(k=2, norm=norm)) == linears + extra * 16


@pytest.mark.parametrize("norm", ["layer", "none"])
def test_without_batch_norm_rows_do_not_see_each_other(norm):
    torch.manual_seed(0)
    predictor, h_BD = Predictor(8, BSLConfig(k=2, norm=norm)), torch.randn(5, 8)
    torch.testing.assert_close(predictor(h_BD)[:2], predictor(h_BD[:2]))


def test_batch_norm_keeps_its_statistics_per_call():
    torch.manual_seed(0)
    predictor, h_BD = Predictor(8, BSLConfig(k=2)), torch.randn(6, 8)
    both, first = predictor(h_BD), predictor(h_BD[:3])
    assert not torch.allclose(both[:3], first)


def test_before_its_correction_the_released_code_sent_view_2_through_the_second_block_twice():
    torch.manual_seed(0)
    early = Predictor(8, BSLConfig(predictor="released-2021", k=2)).eval()  # in training mode, statistics would move
    late = Predictor(8, BSLConfig(predictor="released", k=2)).eval()
    late.load_state_dict(early.state_dict())
    h_BD = torch.randn(4, 8)
    first, second, third = early.blocks
    assert torch.equal(early(h_BD, 1), third(second(first(h_BD))))
    assert torch.equal(early(h_BD, 2), second(second(first(h_BD))))
    assert torch.equal(late(h_BD, 2), early(h_BD, 1))
