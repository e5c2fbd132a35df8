"""Target processors of an int8 graph: those with exact 8-bit products, or those where sums of two saturate.

An x86 processor without VNNI adds two products of an unsigned and a signed byte in 16 bits. 255 × 127 + 255 × 127
saturates at 32,767. With weights of 7 bits (ONNX Runtime's `reduce_range`) no sum exceeds 255 × 64 × 2 = 32,640. Such a
graph computes the same products on every processor.
"""

from __future__ import annotations

import platform
from typing import TYPE_CHECKING, Final, Literal

from bsl.models.runtime.precision import cpu_features

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Target = Literal["vnni", "avx2"]
"""`vnni`: weights of 8 bits, exact with AVX-512 VNNI or AVX-VNNI and on ARM; `avx2`: of 7 bits, exact everywhere."""

GRAPHS: Final[Mapping[Target, str]] = {"vnni": "model_qint8_avx512_vnni.onnx", "avx2": "model_qint8_avx2.onnx"}
"""Target → file name, as sentence-transformers names graphs with signed 8-bit weights for such processors."""
NOTE: Final = "bsl.int8_target"
"""Entry of a graph's metadata that states its target."""
SATURATES: Final = " (made for VNNI, which this processor lacks, so sums saturate; use --target avx2)"
_EXACT: Final = ("avx512_vnni", "avx_vnni")  # flags of Linux


def target_here() -> Target:
    """Return the target of this machine; `avx2` if the flags of an x86 processor are unknown."""
    return target_of(platform.machine(), cpu_features())


def target_of(machine: str, flags: Collection[str]) -> Target:
    """Return the target of a processor.

    Args:
        machine: Its architecture, as `platform.machine()` names it.
        flags: Its CPU flags, as Linux names them.
    """
    saturates = machine.lower() in ("x86_64", "amd64", "i686", "i386") and not any(flag in flags for flag in _EXACT)
    return "avx2" if saturates else "vnni"


def saturates_here(target: str | None) -> bool:
    """Return whether sums of a graph for `target` saturate on this machine; false for unknown targets."""
    return target == "vnni" and target_here() == "avx2"
