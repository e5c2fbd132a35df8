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
ISA = "ONEDNN_MAX_CPU_ISA"


@pytest.fixture
def processor(monkeypatch):
    """Simulate a processor with its features and the variables of oneDNN and torch."""
    for name in (ISA, "ATEN_CPU_CAPABILITY"):
        monkeypatch.delenv(name, raising=False)

    def play(features, **variables):
        monkeypatch.setattr(precision, "cpu_features", lambda: features)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)

    return play


@pytest.mark.parametrize(
    ("features", "asked", "expected"),
    [
        (ZEN_3, "bf16", "bf16 (as set; slower than fp32: no bf16 units on this processor)"),
        (CASCADE_LAKE, "fp32", "fp32 (as set)"),
        (CASCADE_LAKE, "auto", "fp32 (no bf16 units on this processor)"),
        (ZEN_4, "auto", "bf16 (this processor has bf16 units)"),
        (ZEN_4, "bf16", "bf16 (as set)"),
        (SAPPHIRE_RAPIDS, "auto", "bf16 (this processor has bf16 units)"),
        (GRAVITON_2, "auto", "fp32 (no bf16 units on this processor)"),
        (GRAVITON_3, "auto", "bf16 (this processor has bf16 units)"),
        (frozenset(), "auto", "fp32 (no bf16 units on this processor)"),
        # Measured: 152 GFLOP/s in fp32, 85 in bf16 (Intel Xeon with AVX512_BF16, AMX hidden).
        pytest.param(HIDDEN_AMX, "auto", "fp32 (without AMX, this processor is slower in bf16)",
                     marks=pytest.mark.skipif(not X86, reason="AMX is an extension of x86")),
    ],
)  # fmt: skip
def test_auto_precision_is_bf16_only_on_processors_with_fast_bf16(processor, features, asked, expected):
    processor(features)
    assert explained(asked, "cpu") == expected
    assert computed(asked, "cpu") == expected[:4]


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="Linux lists the features")
def test_features_include_vendor_and_flags_of_the_first_processor():
    if X86:
        assert {"fpu", "sse2"} < cpu_features()
        assert ("GenuineIntel" in Path("/proc/cpuinfo").read_text()) == ("GenuineIntel" in cpu_features())
    assert not any(":" in feature for feature in cpu_features())


@pytest.mark.skipif(not X86, reason="the variables name instruction sets of x86")
@pytest.mark.parametrize(
    ("features", "variable", "value", "reason"),
    [
        (ZEN_4, ISA, "AVX2", ISA), (ZEN_4, ISA, "AVX512_CORE", ISA), (ZEN_4, ISA, "avx512_core_vnni", ISA),
        (ZEN_4, ISA, "AVX512_CORE_BF16", None), (ZEN_4, ISA, "AVX512_CORE_AMX", None), (ZEN_4, ISA, "DEFAULT", None),
        (ZEN_4, ISA, "nonsense", None), (ZEN_4, "ATEN_CPU_CAPABILITY", "avx2", "ATEN_CPU_CAPABILITY"),
        (ZEN_4, "ATEN_CPU_CAPABILITY", "default", "ATEN_CPU_CAPABILITY"),
        (ZEN_4, "ATEN_CPU_CAPABILITY", "avx512", None),
        (SAPPHIRE_RAPIDS, ISA, "AVX512_CORE_BF16", "disables AMX"), (SAPPHIRE_RAPIDS, ISA, "AVX512_CORE_AMX", None),
    ],
)  # fmt: skip
def test_instruction_set_limits_make_auto_precision_fp32(processor, features, variable, value, reason):
    processor(features, **{variable: value})
    assert computed("auto", "cpu") == ("fp32" if reason else "bf16")
    assert (reason or "") in why_fp32("cpu")
    assert bool(why_fp32("cpu")) == bool(reason)


@pytest.mark.parametrize(("capability", "expected"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")])
def test_gpu_auto_precision_is_bf16_from_compute_capability_8(monkeypatch, capability, expected):
    monkeypatch.setattr("torch.cuda.get_device_capability", lambda device: capability)
    monkeypatch.setattr("torch.version.hip", None)
    assert computed("auto", "cuda:1") == expected
    assert computed("auto", "mps") == "fp32"


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
