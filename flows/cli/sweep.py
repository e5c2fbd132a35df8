"""`bsl sweep STUDY`, `bsl sweep own --text FILE`, `bsl sweep RECIPE --over FIELD=VALUE,VALUE`, and `bsl reproduce`."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Group, Parameter

from bsl.flows.cli.terminal.options import (
    ENCODER_FORMS,
    TEXT_FORMS,
    LabelColumns,
    Output,
    Reading,
    Settings,
    Site,
    check_amount,
    check_encoders,
    check_labels,
    check_sets,
    check_texts,
)
from bsl.flows.cli.terminal.overrides import value_of
from bsl.flows.cli.terminal.printing import print_result, print_sources
from bsl.flows.cli.terminal.start import begin
from bsl.models.evaluation.reproduction import MARGIN
from bsl.storage.record import LARGEST
from bsl.tasks.rendering.numbers import MISSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from bsl.flows.sweep.grid import Grid
    from bsl.flows.sweep.own import OwnRequest
    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store


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


@Parameter(name="*", group=Group("Study own: your text", sort_key=0))
@dataclass(frozen=True, kw_only=True)
class Own:
    """Options of the study `own`, on the user's text."""

    text: Annotated[tuple[str, ...], Parameter(consume_multiple=(1, None), help=TEXT_FORMS)] = ()
    labels: Annotated[
        str | None, Parameter(help="file of texts with a class, or of scored pairs; their test rows decide")
    ] = None
    encoder: Annotated[
        str | None, Parameter(help=f"original encoder: {ENCODER_FORMS} [default: embedded:mini-sentence]")
    ] = None
    translators: Annotated[
        Literal["embedded", "opus-mt"] | None, Parameter(help="translators of round trips [default: embedded]")
    ] = None

    def request(self, place: Site, columns: LabelColumns, encoding: str | None) -> OwnRequest | None:
        """Return the options, checked against files and models; None if none is given.

        Args:
            place: Store and mirror to search.
            columns: Columns of the labels.
            encoding: Encoding of the files.

        Raises:
            ValueError: Other options are given without `--text`, or columns of labels without `--labels`.
            SourceError, AssetError, ArtifactMissingError: A file or encoder does not exist.
        """
        from bsl.flows.sweep.own import OwnRequest

        given = {name: value for name, value in asdict(self).items() if value}
        if given and not self.text:
            raise ValueError(f"--{next(iter(given))}: needs --text. Add --text FILE")
        check_texts(self.text, place)
        check_labels(self.labels)
        check_encoders([self.encoder], place)
        labels = columns.of_file(self.labels, encoding)
        return OwnRequest(**given | ({"labels": labels} if labels else {})) if given else None


def sweep(
    names: Annotated[
        tuple[str, ...],
        Parameter(
            help="a declared study, own for your text, or recipes; an unknown name lists the studies", required=True
        ),
    ],
    /,
    *,
    points: Points = Points(),
    own: Own = Own(),
    columns: LabelColumns = LabelColumns(),
    reading: Reading = Reading(),
    workers: Annotated[
        int | None,
        Parameter(help="processes of this machine that share the runs [default: 1]; with --pool: runs at a time [256]"),
    ] = None,
    pool: Annotated[bool, Parameter(help="run each point as a run of deployment bsl-pipeline/any")] = False,
    settings: Settings = Settings(),
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Run a grid of configurations with several seeds, and compare them in one table."""
    from bsl.flows.run_context import MOST_SEEDS

    for option, number, most in (("seeds", points.seeds, MOST_SEEDS), ("workers", workers, LARGEST)):
        if number is not None and not 1 <= number <= most:
            raise ValueError(f"--{option} {number}: expected 1 to {most}")
    name, axes, request = names[0], axes_of(points.over, names), own.request(place, columns, reading.encoding)
    if reading.given and not request:
        raise ValueError(f"--{next(iter(reading.given))}: only study own reads your text. Add --text FILE")
    settings = reading.among(settings, "ingest.own_text")
    changes = settings.changes()
    _refuse_twice(axes, changes)
    if workers and (place.cluster or os.environ.get("BSL_CLUSTER")):
        raise ValueError(
            f"--workers {workers}: the workers of --cluster or BSL_CLUSTER run the points. Remove one of them"
        )
    if pool and not os.environ.get("PREFECT_API_URL"):
        raise ValueError(
            "--pool: the embedded Prefect server has no workers. Set PREFECT_API_URL to a server with workers"
        )
    planned = _planned(name, axes, changes, points.against, request, place)  # usage errors raise before a server starts
    if settings.precision:
        # Of several points, those that do not train ignore the precision of training.
        changes = settings.changes(dict.fromkeys(part for config in planned.configs for part in config.precisions))
        _refuse_twice(axes, changes)
        planned = _planned(name, axes, changes, points.against, request, place)
    check_sets([name for config in planned.configs for name in config.evaluation.sets], place)
    text = planned.configs[0].ingest.own_text if request else None
    if request and text:
        check_amount(request.text, text, request.labels)
    start = begin(place, output, pool=pool or None)
    from bsl.flows.sweep.sweep import ablation

    details = {}
    if request and text:
        from bsl.storage.sources.labels import sources_and_labels

        details = print_sources(*sources_and_labels(text, request.text, request.labels, start.site.mirror), output)
    ref = start.run(
        ablation,
        () if request else planned.configs,
        name=name,
        over=axes,
        seeds=points.seeds,
        overrides=changes or None,
        against=list(points.against),
        workers=workers,
        own=request,
    )
    show_sweep(start.site.open_store(), ref, output, **details)


def _planned(
    name: str,
    axes: Mapping[str, Sequence[Any]],
    changes: Mapping[str, Any],
    against: Sequence[str],
    request: OwnRequest | None,
    place: Site,
) -> Grid:
    """Return the points; for the study `own`, as if its encoder could be trained at all of them."""
    from bsl.flows.run_context import run_context_of
    from bsl.flows.sweep import own
    from bsl.flows.sweep.grid import grid

    own.check_own(name, request)
    if request is None:
        return grid(name, axes, changes, against)
    base = request.config(changes, run_context_of(place.given).mirror)
    study, _ = own.declared(base, request, own.Start())
    return grid(name, own.axes(axes), changes, against, study)


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


def show_sweep(store: Store, ref: ArtifactRef, output: Output, **more: object) -> None:
    """Print a sweep's tables, faults, notes and the path of its page, or JSON with `--json` and the fields `more`."""
    from bsl.tasks.figures import SweepFigures
    from bsl.tasks.reporting.sweep.page import comparisons, fault_lines, set_rows

    figures = store.manifest(ref).figures_as(SweepFigures)

    def tables() -> Iterator[tuple[str, list[dict[str, str]]]]:
        table = store.scan(ref).collect()
        yield "Figures × 100, mean over seeds ± standard deviation", set_rows(table)
        for heading, rows in comparisons(table, figures.shown):
            yield f"{heading}; 95 % intervals over seeds and questions", rows

    print_result(store, ref, output, tables, [*fault_lines(figures.faults), *figures.notes], **more)


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
    from bsl.flows.run_context import MOST_SEEDS

    if not 1 <= seeds <= MOST_SEEDS:
        raise ValueError(f"--seeds {seeds}: expected 1 to {MOST_SEEDS} runs")
    if not 0 < margin <= 100:
        raise ValueError(f"--margin {margin}: expected a number of points above 0, at most 100, for example {MARGIN}")
    from bsl.flows.config import override
    from bsl.flows.recipes import recipe
    from bsl.flows.recipes.published_rows import row_of

    base = recipe(row_of(row)[1])
    changes = settings.changes(base.precisions)
    configs = override(base, changes).runs(1)
    start = begin(place, output)
    from bsl.flows.sweep.sweep import reproduction

    ref = start.run(reproduction, configs, row=row, seeds=seeds, margin=margin, overrides=changes or None)
    from bsl.tasks.reporting.reproduction import figure_rows

    store = start.site.open_store()
    rows = without_empty(figure_rows(store.scan(ref).collect()), "margin")
    print_result(store, ref, output, lambda: [(f"Published and measured, × 100; margin {margin:g}", rows)])


def without_empty(rows: Sequence[dict[str, str]], *names: str) -> list[dict[str, str]]:
    """Return rows without the named columns and without those that have no value in any row, for a narrow table."""
    empty = {name for name in rows[0] if all(row[name] == MISSING for row in rows)}
    return [{name: cell for name, cell in row.items() if name not in {*names, *empty}} for row in rows]
