"""CTranslate2 on a simulated GPU: a stub replaces the library, so no GPU is needed."""

import ctypes
import logging
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import ClassVar

import ctranslate2
import pytest

from bsl.models.errors import TranslationError
from bsl.models.translation import gpu, loading
from bsl.models.translation.config import Resources, TranslatorConfig
from bsl.models.translation.ctranslate import convert_once
from bsl.models.translation.loading import load_translator, resolve
from tests.tiny_marian import SENTENCES, build_tiny_marian

CPU = Resources("cpu", cores=1)
AUTO = TranslatorConfig(model="tiny", source_lang="en", target_lang="de")
MISSING = "Library libcublas.so.12 is not found or cannot be loaded"
REAL = ctranslate2.Translator


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    return build_tiny_marian(tmp_path_factory.mktemp("marian"))


@pytest.fixture(autouse=True)
def _no_cached_answers():
    gpu.fault.cache_clear()
    loading._warn.cache_clear()
    yield
    gpu.fault.cache_clear()
    loading._warn.cache_clear()


class FailsAtFirstBatch:
    num_translators = 1

    def __init__(self, *_, **__):
        pass

    def score_batch(self, *_, **__):
        raise RuntimeError(MISSING)


class ComputesOnTheCpu:
    """A GPU with correct products."""

    loads = 0
    compute_types: ClassVar[set[str]] = set()

    def __init__(self, path, **options):
        self.is_gpu = options["device"] == "cuda"
        type(self).loads += self.is_gpu
        self.compute_types.add(f"{options['device']} {options['compute_type']}")
        self._real = REAL(path, device="cpu", compute_type="float32")

    def score_batch(self, sources, targets):
        return self._real.score_batch(sources, targets)


class ComputesWrongly(ComputesOnTheCpu):
    """A GPU that reads wrong numbers."""

    def score_batch(self, sources, targets):
        return super().score_batch(sources, [targets[0][::-1]] if self.is_gpu else targets)


@pytest.fixture
def simulated(monkeypatch):
    def play(translator, gpus=1):
        kinds = {"float32", "float16", "int8", "int8_float16"}
        monkeypatch.setattr(ctranslate2, "Translator", translator)
        monkeypatch.setattr(ctranslate2, "get_cuda_device_count", lambda: gpus)
        monkeypatch.setattr(ctranslate2, "get_supported_compute_types", lambda kind, number=0: kinds)

    return play


def test_missing_gpu_libraries_fall_back_to_transformers(simulated, tiny, tmp_path, caplog):
    simulated(FailsAtFirstBatch)
    with caplog.at_level(logging.WARNING):
        settled = [resolve(AUTO.model_copy(update={"beam": beam}), "cuda") for beam in (1, 2, 3)]
    assert {(config.backend, config.precision) for config in settled} == {("transformers", "fp16")}
    [warning] = [record.getMessage() for record in caplog.records]
    assert MISSING in warning
    assert "pip install 'bsl-pipeline[gpu]'" in warning
    # The chosen engine needs no ctranslate2; here it runs on the CPU.
    done = load_translator(tiny, settled[0], CPU, tmp_path / "converted").translate(SENTENCES[:20])
    assert len({translation.text for translation in done}) > 10
    assert not (tmp_path / "converted").exists()
    with pytest.raises(TranslationError, match=r"not support fp16 on cuda \(Library libcublas.*it supports: none"):
        resolve(AUTO.model_copy(update={"backend": "ctranslate2"}), "cuda")


def test_passed_gpu_check_selects_ctranslate2_and_is_cached(simulated, caplog):
    simulated(ComputesOnTheCpu, gpus=2)
    ComputesOnTheCpu.loads = 0
    for _ in range(3):
        settled = resolve(AUTO, "cuda")
        assert (settled.backend, settled.precision) == ("ctranslate2", "fp16")
    assert ComputesOnTheCpu.loads == 2, "each GPU, once a process"
    assert resolve(AUTO, "cuda:1").backend == "ctranslate2"
    assert ComputesOnTheCpu.loads == 3
    assert gpu.precisions("cuda") == ("fp32", "fp16", "int8")
    assert not caplog.records


def test_int8_on_gpu_computes_other_operations_in_fp16(simulated):
    simulated(ComputesOnTheCpu)
    ComputesOnTheCpu.compute_types.clear()
    assert gpu.fault("cuda", "int8") is None
    assert ComputesOnTheCpu.compute_types == {"cuda int8_float16", "cpu float32"}
    assert gpu.compute_type("int8", "cpu") == "int8"


@pytest.mark.parametrize(
    ("translator", "device", "precision", "reason"),
    [
        (ComputesOnTheCpu, "mps", "fp16", "it runs only on CPUs and NVIDIA GPUs"),
        (ComputesOnTheCpu, "cuda:1", "fp16", "found 1 NVIDIA GPUs, expected cuda:1"),
        (ComputesOnTheCpu, "cuda", "bf16", "GPU 0 does not support bf16"),
        (ComputesWrongly, "cuda", "int8", "GPU 0 computes wrong products in int8 (found a first log-probability of -"),
    ],
)
def test_fault_names_what_does_not_work(simulated, translator, device, precision, reason):
    simulated(translator)
    assert (gpu.fault(device, precision) or "").startswith(reason)


@pytest.mark.parametrize(
    ("raised", "message"),
    [
        (MISSING, r"does not work on cuda: Library libcublas.*bsl-pipeline\[gpu\]"),
        ("CUDA failed with error out of memory", "cuda: not enough memory for the translator"),
    ],
)
def test_gpu_error_does_not_name_the_model_folder(simulated, tiny, tmp_path, monkeypatch, raised, message):
    def fail(*_, **__):
        raise RuntimeError(raised)

    simulated(ComputesOnTheCpu)
    resolve(AUTO, "cuda")  # the GPU passes the check and fails later
    monkeypatch.setattr(ctranslate2, "Translator", fail)
    with pytest.raises(TranslationError, match=message) as caught:
        load_translator(tiny, AUTO, Resources("cuda", cores=1), tmp_path / "converted")
    assert str(tiny) not in str(caught.value)


def test_damaged_converted_model_error_asks_to_check_the_copy(tiny, tmp_path):
    convert_once(tiny, tmp_path / "converted")
    (tmp_path / "converted" / "model.bin").write_bytes(b"no model")
    with pytest.raises(TranslationError, match="Check that the copy is complete"):
        load_translator(tiny, resolve(AUTO, "cpu"), CPU, tmp_path / "converted")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the wheel's libraries have Linux names")
def test_cublas_libraries_are_loaded_globally_in_order_and_a_broken_one_is_named(simulated, tmp_path, monkeypatch):
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    for name in ("libcublas.so.12", "libcublasLt.so.12"):
        (folder / name).write_bytes(b"no library")
    module = ModuleType("nvidia")  # a namespace package, like the one that NVIDIA's wheels share
    module.__spec__ = ModuleSpec("nvidia", None, is_package=True)
    module.__spec__.submodule_search_locations = [str(tmp_path / "nvidia")]
    monkeypatch.setitem(sys.modules, "nvidia", module)
    simulated(ComputesOnTheCpu)
    assert "libcublasLt.so.12" in (gpu.fault("cuda", "fp16") or "")
    opened = []
    monkeypatch.setattr(ctypes, "CDLL", lambda path, mode=0: opened.append((path, mode)))
    gpu.load_cublas()
    assert opened == [(str(folder / name), ctypes.RTLD_GLOBAL) for name in ("libcublasLt.so.12", "libcublas.so.12")]
