"""A stage whose output changes needs another version, or caches return the old output.

stages.json pins the output of each stage in the tiny runs. A failure names the stages whose output changed under the
same key: restore it, or raise their versions. `python -m tests.golden.test_stages` pins again, and refuses such
outputs. A key contains versions, settings and inputs, so that changed settings need no other version.
"""

import importlib
import json
import os
import pkgutil
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Final

import pytest

from bsl import tasks
from bsl.storage.filesystem.names import MANIFEST
from bsl.tasks.stage.cached import Stage
from tests.golden.outputs import Output, outputs, packages
from tests.golden.tiny_runs import made, prepare
from tests.toy_sets import allow_any_rows

PINS: Final = Path(__file__).with_name("stages.json")
AGAIN: Final = "python -m tests.golden.test_stages"


def tiny_outputs(folder):
    """Run every stage in a prepared folder; return name → output of each call."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        allow_any_rows(patch, "stsb", "mr", "afs")
        site, calls = made()
        return outputs(site.open_store(), calls)


def pinned_outputs():
    """Return the pinned versions of packages, and name → pinned output."""
    pins = json.loads(PINS.read_text())
    return pins["packages"], {name: Output.parse(fields) for name, fields in pins["outputs"].items()}


def changed_under_same_key(now, pinned):
    """Describe the first calls with another output under the same key; calls on changed inputs are left out."""
    changed = {name: now[name].changes(pinned[name]) for name in now if name in pinned}
    return [
        f"{name} (version {now[name].version}): {changes}"
        for name, changes in changed.items()
        if changes and now[name].key == pinned[name].key and not any(changed.get(other) for other in now[name].after)
    ]


def stages():
    """Return the names of all stages."""
    modules = [importlib.import_module(found.name) for found in pkgutil.walk_packages(tasks.__path__, "bsl.tasks.")]
    return {value.name for module in modules for value in vars(module).values() if isinstance(value, Stage)}


def test_output_of_every_stage_matches_its_pin(tiny_folder, tmp_path):
    # If tests of pages made the runs before, their translations are known, and no shard would be translated.
    folder = prepare(tmp_path) if any(tiny_folder.rglob(MANIFEST)) else tiny_folder
    now, (versions, pinned) = tiny_outputs(folder), pinned_outputs()
    assert {name.partition(" ")[0] for name in now} == stages(), "tiny_runs.py must call every stage"
    changed = changed_under_same_key(now, pinned)
    assert not changed, (
        "changed output under the same key; restore it, or raise the version of the stage:\n" + "\n".join(changed)
    )
    is_stale = {
        name: name not in now
        or name not in pinned
        or bool(now[name].changes(pinned[name]))
        or now[name].version != pinned[name].version
        or (now[name].key != pinned[name].key and versions == packages())  # some keys contain versions of packages
        for name in {**pinned, **now}
    }
    stale = [name for name, is_so in is_stale.items() if is_so]
    assert not stale, f"other versions, settings or calls; pin again with `{AGAIN}`: {', '.join(stale)}"


def test_changed_output_names_the_first_stage_unless_its_key_changed():
    one = Output(version=1, key="a", after=(), exact="x", figures={"score": (1.0, 0.5)})
    two = replace(one, key="b", after=("one",))
    pinned = {"one": one, "two": two}
    rounded, other = replace(one, figures={"score": (1.0, 0.5004)}), replace(one, figures={"score": (1.0, 0.52)})
    assert changed_under_same_key({"one": rounded, "two": two}, pinned) == []
    (fault,) = changed_under_same_key({"one": other, "two": replace(two, exact="y")}, pinned)
    assert fault == "one (version 1): score 0.5 → 0.52"
    assert changed_under_same_key({"one": replace(other, version=2, key="c"), "two": two}, pinned) == []
    assert changed_under_same_key({"one": one, "two": replace(two, exact="y")}, pinned) == [
        "two (version 1): texts, whole numbers or names"
    ]


def pin():
    """Write the pins, unless an output changed under the same key."""
    with tempfile.TemporaryDirectory() as folder:
        now = tiny_outputs(prepare(Path(folder)))
    pinned = pinned_outputs()[1] if PINS.is_file() else {}
    if changed := changed_under_same_key(now, pinned):
        sys.exit("not pinned; raise the version of these stages, or restore their output:\n" + "\n".join(changed))
    # What differs by rounding keeps its figures, so that a diff shows changes alone.
    now = {
        name: replace(output, figures=pinned[name].figures)
        if name in pinned and not output.changes(pinned[name])
        else output
        for name, output in now.items()
    }
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(asdict(output))}" for name, output in now.items())
    PINS.write_text(f'{{"packages": {json.dumps(packages())},\n"outputs": {{\n{lines}\n}}}}\n')
    other = [name for name in now if pinned.get(name) != now[name]]
    sys.stdout.write(f"{len(now)} outputs are pinned; new or different: {', '.join(other) or 'none'}\n")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in tests/conftest.py; before torch is imported
    pin()
