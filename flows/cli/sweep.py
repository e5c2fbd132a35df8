"""`bsl sweep STUDY`, `bsl sweep RECIPE RECIPE …`, `bsl sweep RECIPE --over FIELD=VALUE,VALUE`, and `bsl reproduce`."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, cast

from cyclopts import Parameter

from flows.cli.terminal.options import Output, Settings, Site, check_sets
from flows.cli.terminal.overrides import value_of
from flows.cli.terminal.printing import print_result
from flows.cli.terminal.start import begin
from models.evaluation.reproduction import MARGIN
from tasks.rendering.numbers import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from storage.artifacts.refs import SweepRef
    from storage.artifacts.store import Store


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Points:
    """Options for the points of a sweep."""

    over: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="FIELD=VALUES",
            help="values of a field, for example training.objective.momentum=0.5,0.999 or recipe=nli,entail; may be "
            "repeated for a grid",
        ),
    ] = ()
    seeds: Annotated[int, Parameter(help="runs of each point, with training.seed 0, 1, …")] = 1
    against: Annotated[tuple[str, ...], Parameter(help="point that all others are compared with; may be repeated")] = ()


def sweep(
    names: Annotated[
        tuple[str, ...],
        Parameter(help="a declared study, or recipes; an unknown name lists the studies", required=True),
    ],
    /,
    *,
    points: Points = Points(),
    lanes: Annotated[
        int | None, Parameter(help="parallel runs, each in its own process [default: 1 here, 256 on a pool]")
    ] = None,
    pool: Annotated[bool, Parameter(help="run each point as a run of deployment bsl-pipeline/any")] = False,
    settings: Settings = Settings(),
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Run a grid of configurations with several seeds, and compare them in one table."""
    for option, number in (("seeds", points.seeds), ("lanes", lanes)):
        if number is not None and number < 1:
            raise ValueError(f"--{option} {number}: expected 1 or more")
    axes, changes = axes_of(points.over, names), settings.changes()
    _refuse_twice(axes, changes)
    if pool and not os.environ.get("PREFECT_API_URL"):
        raise ValueError(
            "--pool: the embedded Prefect server has no workers. Set PREFECT_API_URL to a server with workers"
        )
    from flows.sweep.grid import grid

    name = names[0]
    configs = grid(name, axes, changes, points.against).configs  # usage errors raise before a server starts
    if settings.precision:
        sections = [part for part in configs[0].precisions if all(part in config.precisions for config in configs)]
        changes = settings.changes(sections)
        _refuse_twice(axes, changes)
        configs = grid(name, axes, changes, points.against).configs
    check_sets([name for config in configs for name in config.evaluation.sets], place)
    start = begin(place, output, pool=pool or None)
    from flows.sweep.sweep import ablation

    ref = start.run(
        ablation,
        configs,
        name=name,
        over=axes,
        seeds=points.seeds,
        overrides=changes or None,
        against=list(points.against),
        lanes=lanes,
    )
    show_sweep(start.site.open_store(), ref, output)


def axes_of(options: Sequence[str], names: Sequence[str]) -> dict[str, list[Any]]:
    """Parse `field=value,value` or `field=[…]` (JSON) into field → values.

    Args:
        options: Values of `--over`.
        names: Names of recipes; several names are the axis `recipe`.

    Raises:
        ValueError: An option has another form, or repeats a field.
    """
    axes: dict[str, list[Any]] = {"recipe": list(names)} if len(names) > 1 else {}
    for option in options:
        field, equals, text = option.partition("=")
        if not equals or not text or field in axes:
            raise ValueError(f"--over {option}: expected each field once as FIELD=VALUE,VALUE: training.lr=1e-4,3e-4")
        parsed = value_of(text)
        if text.startswith("[") and not isinstance(parsed, list):
            raise ValueError(
                f"--over {option}: not a JSON list. Close the list and quote its strings, as in training.lr=[1e-4,3e-4]"
            )
        axes[field] = parsed if isinstance(parsed, list) else [value_of(part) for part in text.split(",")]
    return axes


def _refuse_twice(axes: Mapping[str, Any], changes: Mapping[str, Any]) -> None:
    if twice := [field for field in axes if _is_set(field, changes)]:
        raise ValueError(
            f"{twice[0]}: --over varies the field, but --set or --precision sets it for all points. Remove one of them"
        )


def _is_set(field: str, changes: object) -> bool:
    """Return whether changes set a field."""
    section, _, inner = field.partition(".")
    if not isinstance(changes, dict) or section not in changes:
        return False
    return not inner or _is_set(inner, changes[section])


def show_sweep(store: Store, ref: SweepRef, output: Output, **more: object) -> None:
    """Print a sweep's tables, faults, notes and the path of its page, or JSON with `--json` and the fields `more`."""
    from tasks.reporting.sweep.page import comparisons, fault_lines, set_rows

    figures = cast("dict[str, Any]", store.manifest(ref).figures)  # recorded by the stage

    def tables() -> Iterator[tuple[str, list[dict[str, str]]]]:
        table = store.scan(ref).collect()
        yield "Figures × 100, mean over seeds ± standard deviation", set_rows(table)
        for heading, rows in comparisons(table, figures["shown"]):
            yield f"{heading}; 95 % intervals over seeds and questions", rows

    print_result(store, ref, output, tables, [*fault_lines(figures["faults"]), *figures["notes"]], **more)


def reproduce(
    row: Annotated[str, Parameter(help="a published row, such as BSL-BERT, or a recipe of a published row")],
    /,
    *,
    seeds: Annotated[int, Parameter(help="runs, with training.seed 0, 1, …; 2 or more for a verdict")] = 1,
    margin: Annotated[
        float, Parameter(help="maximum difference, in points, from the published figure for REPRODUCED")
    ] = MARGIN,
    settings: Settings = Settings(),
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Run the recipe of a published row, and compare its figures with the row."""
    if seeds < 1:
        raise ValueError(f"--seeds {seeds}: expected 1 or more runs")
    if not 0 < margin < math.inf:
        raise ValueError(f"--margin {margin}: expected a number of points above 0, for example {MARGIN}")
    from flows.config import override
    from flows.recipes import recipe
    from flows.recipes.published_rows import row_of

    base = recipe(row_of(row)[1])
    changes = settings.changes(base.precisions)
    configs = override(base, changes).runs(1)
    start = begin(place, output)
    from flows.sweep.sweep import reproduction

    ref = start.run(reproduction, configs, row=row, seeds=seeds, margin=margin, overrides=changes or None)
    from tasks.reporting.reproduction import figure_rows

    store = start.site.open_store()
    rows = without_empty(figure_rows(store.scan(ref).collect()), "margin")
    print_result(store, ref, output, lambda: [(f"Published and measured, × 100; margin {margin:g}", rows)])


def without_empty(rows: Sequence[dict[str, str]], *names: str) -> list[dict[str, str]]:
    """Return rows without the named columns and without those that have no value in any row, for a narrow table."""
    empty = {name for name in rows[0] if all(row[name] == MISSING for row in rows)}
    return [{name: cell for name, cell in row.items() if name not in {*names, *empty}} for row in rows]
