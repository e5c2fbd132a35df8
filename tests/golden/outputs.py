"""The outputs of the tiny runs, short enough to read in a diff; compared with the pinned ones.

An output is a digest of all that is exact (texts, whole numbers, names of files and columns) and figures of all that is
arithmetic: for the floating-point numbers of each column, file or page their root mean square, and their projection on
a fixed vector. Processors and numbers of threads change the last digits of these. Charts count by their names only:
rounding can drop a coordinate's decimals, and their figures are in tables.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import polars as pl
from safetensors.numpy import load_file

from bsl.storage.artifacts.manifest import installed_versions
from bsl.storage.artifacts.refs import STATE

TOLERANCE: Final = 1e-3
"""Largest difference of figures, relative to their root mean square."""
_TEXTS: Final = (".md", ".csv", ".txt")
_DECIMAL: Final = re.compile(r"-?\d+\.\d+(?:e-?\d+)?")
_OF_THIS_MACHINE: Final = re.compile(
    r"(?<=torch:)[^|\s`]+|(?<=transformers:)[^|\s`]+|(?<=bsl:)[^|\s`]+|\b[0-9a-f]{6,64}\b"
)
"""Versions in signatures and keys of artifacts; a key depends on versions of packages."""


@dataclass(frozen=True)
class Output:
    """The artifact of one call of a stage."""

    version: int
    key: str
    after: tuple[str, ...]
    exact: str
    figures: Mapping[str, tuple[float, float]]

    @classmethod
    def parse(cls, fields):
        """Return an output from its JSON form."""
        figures = {name: (rms, projection) for name, (rms, projection) in fields["figures"].items()}
        return cls(**{**fields, "after": tuple(fields["after"]), "figures": figures})

    def changes(self, pinned):
        """Describe how this output differs from the pinned one by more than rounding; empty if it does not."""
        if self.figures.keys() != pinned.figures.keys():
            return "other columns or files"
        moved = [
            f"{name} {before:g} → {after:g}"
            for name, figures in pinned.figures.items()
            for before, after in zip(figures, self.figures[name], strict=True)
            if abs(after - before) > TOLERANCE * max(figures[0], 1e-9)
        ]
        exact = [] if self.exact == pinned.exact else ["texts, whole numbers or names"]
        return "; ".join([*exact, *moved])


def packages():
    """Return the versions that keys of artifacts contain."""
    named = {name: found for name, found in installed_versions().items() if name not in ("python", "bsl-pipeline")}
    return {name: found.partition("+")[0] for name, found in named.items()}


def outputs(store, calls):
    """Return name → output of calls; a stage's second call is called `embed 2`."""
    names: dict[str, str] = {}
    counts: dict[str, int] = {}
    found: dict[str, Output] = {}
    for stage, ref in calls:
        counts[stage] = counts.get(stage, 0) + 1
        name = names[ref.path] = stage if counts[stage] == 1 else f"{stage} {counts[stage]}"
        manifest = store.manifest(ref)
        texts, numbers = _contents(store, ref)
        found[name] = Output(
            version=manifest.provenance.stage_version,
            key=ref.key[:12],
            after=tuple(dict.fromkeys(names[entry.path] for entry in manifest.provenance.inputs.values())),
            exact=hashlib.sha256("\n".join(texts).encode()).hexdigest()[:16],
            figures={column: _figures(values) for column, values in sorted(numbers.items())},
        )
    return found


def _contents(store, ref):
    """Return all exact parts of an artifact as texts, and all floating-point numbers by column, file or page."""
    texts: list[str] = []
    numbers: dict[str, np.ndarray] = {}
    manifest, folder = store.manifest(ref), store.fetch(ref)
    for table in sorted(manifest.tables):
        for column in store.scan(ref, table).collect().iter_columns():
            values, name = column, f"{table}.{column.name}"
            while isinstance(values.dtype, pl.List | pl.Array):
                values = values.explode()
            if values.dtype.is_float():
                texts.append(f"{name} {len(column)} {values.is_null().sum()}")
                numbers[name] = values.fill_null(0).fill_nan(-1).to_numpy()
            else:
                texts.append(f"{name} {_OF_THIS_MACHINE.sub('', json.dumps(column.to_list(), default=str))}")
    for name in sorted(manifest.files):
        path = Path(folder) / name
        texts.append(name)
        if name.startswith(f"{STATE}/"):  # it repeats the encoder, with random states
            continue
        if path.suffix in _TEXTS:
            text = _OF_THIS_MACHINE.sub("", path.read_text())
            texts.append(_DECIMAL.sub("", text))
            numbers[name] = np.array([float(number) for number in _DECIMAL.findall(text)])
        elif path.suffix == ".safetensors":
            numbers[name] = np.concatenate([[], *(x.ravel() for _, x in sorted(load_file(path).items()))])
        elif path.suffix == ".npy":
            numbers[name] = np.load(path).astype(float).ravel()
    return texts, numbers


def _figures(values):
    values = values.astype(float)
    size = max(len(values), 1)
    projected = float(values @ np.cos(np.arange(1, len(values) + 1))) / np.sqrt(size)
    return _short(np.sqrt(np.mean(values**2)) if len(values) else 0.0), _short(projected)


def _short(value):
    return float(f"{value:.6g}")
