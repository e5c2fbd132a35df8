"""`auto` is bf16 only on devices with native bf16; configurations are resolved at any depth."""

import platform

import pytest

from models.pretraining.config import LearningConfig
from models.runtime import precision
from models.runtime.precision import computed, emulates_bf16, explained, settled
from models.training.config import TrainingConfig
from models.translation.config import TranslatorConfig

X86 = platform.machine().lower() in ("x86_64", "amd64")
ZEN_3 = frozenset({"avx2", "fma"})
CASCADE_LAKE = ZEN_3 | {"avx512f", "avx512_vnni"}
ZEN_4 = CASCADE_LAKE | {"avx512_bf16"}
SAPPHIRE_RAPIDS = ZEN_4 | {"amx_bf16"}
GRAVITON_2, GRAVITON_3 = frozenset({"asimd"}), frozenset({"asimd", "bf16", "sve"})


@pytest.fixture
def processor(monkeypatch):
    """Simulate a processor with its features and the variables of oneDNN and torch."""
    for name in ("ONEDNN_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY"):
        monkeypatch.delenv(name, raising=False)

    def play(features, **variables):
        monkeypatch.setattr(precision, "cpu_features", lambda: features)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return play


@pytest.mark.parametrize(
    ("features", "expected"),
    [
        (ZEN_3, "fp32"), (CASCADE_LAKE, "fp32"), (ZEN_4, "bf16"), (SAPPHIRE_RAPIDS, "bf16"),
        (GRAVITON_2, "fp32"), (GRAVITON_3, "bf16"), (frozenset(), "fp32"),
    ],
)  # fmt: skip
def test_auto_precision_is_bf16_only_on_native_bf16_processors(processor, features, expected):
    processor(features)
    assert computed("auto", "cpu") == expected


@pytest.mark.skipif(not X86, reason="the variables name instruction sets of x86")
@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("ONEDNN_MAX_CPU_ISA", "AVX2", "fp32"), ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE", "fp32"),
        ("ONEDNN_MAX_CPU_ISA", "avx512_core_vnni", "fp32"), ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_BF16", "bf16"),
        ("ONEDNN_MAX_CPU_ISA", "AVX512_CORE_AMX", "bf16"), ("ONEDNN_MAX_CPU_ISA", "DEFAULT", "bf16"),
        ("ONEDNN_MAX_CPU_ISA", "nonsense", "bf16"), ("ATEN_CPU_CAPABILITY", "avx2", "fp32"),
        ("ATEN_CPU_CAPABILITY", "default", "fp32"), ("ATEN_CPU_CAPABILITY", "avx512", "bf16"),
    ],
)  # fmt: skip
def test_instruction_set_limits_make_auto_precision_fp32(processor, variable, value, expected):
    processor(ZEN_4, **{variable: value})
    assert computed("auto", "cpu") == expected
    assert (variable in emulates_bf16("cpu")) == (expected == "fp32")


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")])
def test_gpu_auto_precision_is_bf16_from_compute_capability_8(monkeypatch, capability, expected):
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: capability)
    monkeypatch.setattr("torch.version.hip", None)
    assert computed("auto", "cuda:1") == expected


def test_mps_defaults_to_fp32_and_explicit_precision_is_unchanged(processor):
    processor(ZEN_3)
    assert computed("auto", "mps") == "fp32"
    assert (computed("bf16", "cpu"), computed("fp32", "cpu")) == ("bf16", "fp32")


def test_explanation_gives_the_reason_and_warns_of_bf16_emulation(processor):
    processor(ZEN_3)
    assert explained("auto", "cpu") == "fp32 (no bf16 units on this processor)"
    assert "emulated" in explained("bf16", "cpu")
    assert explained("fp32", "cpu") == "fp32 (as set)"
    processor(ZEN_4)
    assert explained("auto", "cpu") == "bf16 (this processor has bf16 units)"
    assert explained("bf16", "cpu") == "bf16 (as set)"


def test_auto_precision_is_resolved_in_nested_configs_except_translators(processor):
    processor(ZEN_3)
    training, learning = TrainingConfig(), LearningConfig()
    hop = TranslatorConfig(model="m", source_lang="en", target_lang="de")
    assert hop.precision == "auto"
    made = settled({"one": (training, hop), "other": [learning]}, lambda: "cpu")
    assert made["one"][0] == training.model_copy(update={"precision": "fp32"})
    assert made["one"][1] is hop
    assert made["other"][0].precision == "fp32"
    assert settled(made, lambda: pytest.fail("nothing is left to ask the device for")) is made
