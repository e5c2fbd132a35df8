"""`auto` is bf16 only on devices that are faster in bf16; configurations are resolved at any depth."""

import platform
from pathlib import Path

import pytest

from bsl.models.evaluation.config import ScoringConfig
from bsl.models.runtime import precision
from bsl.models.runtime.precision import computed, cpu_features, explained, why_fp32, with_resolved_precision
from bsl.models.training.config import TrainingConfig
from bsl.models.translation.config import TranslatorConfig

X86 = platform.machine().lower() in ("x86_64", "amd64")
ZEN_3 = frozenset({"avx2", "fma"})
CASCADE_LAKE = ZEN_3 | {"avx512f", "avx512_vnni"}
ZEN_4 = CASCADE_LAKE | {"avx512_bf16"}
HIDDEN_AMX = ZEN_4 | {"GenuineIntel"}  # Sapphire Rapids on a virtual machine without AMX
SAPPHIRE_RAPIDS = HIDDEN_AMX | {"amx_bf16"}
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
def test_auto_precision_is_bf16_only_on_processors_with_fast_bf16(processor, features, expected):
    processor(features)
    assert computed("auto", "cpu") == expected


@pytest.mark.skipif(not X86, reason="AMX is an extension of x86")
def test_intel_processor_without_amx_computes_in_fp32(processor):
    """Measured: 152 GFLOP/s in fp32, 85 in bf16 (Intel Xeon with AVX512_BF16, AMX hidden)."""
    processor(HIDDEN_AMX)
    assert explained("auto", "cpu") == "fp32 (without AMX, this processor is slower in bf16)"


@pytest.mark.skipif(not X86, reason="AMX is an extension of x86")
@pytest.mark.parametrize(("limit", "expected"), [("AVX512_CORE_BF16", "fp32"), ("AVX512_CORE_AMX", "bf16")])
def test_limit_below_amx_makes_auto_precision_fp32_on_intel(processor, limit, expected):
    processor(SAPPHIRE_RAPIDS, ONEDNN_MAX_CPU_ISA=limit)
    assert computed("auto", "cpu") == expected
    assert ("disables AMX" in why_fp32("cpu")) == (expected == "fp32")


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="Linux lists the features")
def test_features_include_vendor_and_flags_of_the_first_processor():
    listing = Path("/proc/cpuinfo").read_text()
    if X86:
        assert {"fpu", "sse2"} < cpu_features()
        assert ("GenuineIntel" in listing) == ("GenuineIntel" in cpu_features())
    assert not any(":" in feature for feature in cpu_features())


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
    assert (variable in why_fp32("cpu")) == (expected == "fp32")


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")])
def test_gpu_auto_precision_is_bf16_from_compute_capability_8(monkeypatch, capability, expected):
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: capability)
    monkeypatch.setattr("torch.version.hip", None)
    assert computed("auto", "cuda:1") == expected


def test_mps_defaults_to_fp32_and_explicit_precision_is_unchanged(processor):
    processor(ZEN_3)
    assert computed("auto", "mps") == "fp32"
    assert (computed("bf16", "cpu"), computed("fp32", "cpu")) == ("bf16", "fp32")


def test_explanation_gives_the_reason_and_warns_of_slow_bf16(processor):
    processor(ZEN_3)
    assert explained("auto", "cpu") == "fp32 (no bf16 units on this processor)"
    assert explained("bf16", "cpu") == "bf16 (as set; slower than fp32: no bf16 units on this processor)"
    assert explained("fp32", "cpu") == "fp32 (as set)"
    processor(ZEN_4)
    assert explained("auto", "cpu") == "bf16 (this processor has bf16 units)"
    assert explained("bf16", "cpu") == "bf16 (as set)"


def test_auto_precision_is_resolved_in_nested_configs_except_translators(processor):
    processor(ZEN_3)
    training, scoring = TrainingConfig(), ScoringConfig()
    hop = TranslatorConfig(model="m", source_lang="en", target_lang="de")
    assert hop.precision == "auto"
    made = with_resolved_precision({"one": (training, hop), "other": [scoring]}, lambda: "cpu")
    assert made["one"][0] == training.model_copy(update={"precision": "fp32"})
    assert made["one"][1] is hop
    assert made["other"][0].precision == "fp32"
    assert with_resolved_precision(made, lambda: pytest.fail("nothing is left to ask the device for")) is made
