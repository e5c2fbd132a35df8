"""`bsl sweep STUDY`, `bsl sweep own --text FILE`, `bsl sweep RECIPE --over FIELD=VALUE,VALUE`, and `bsl reproduce`."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Group, Parameter

from bsl.flows.cli.terminal.checks import check_amount, check_encoders, check_inputs, check_sets
from bsl.flows.cli.terminal.options import (
    COUNT,
    FILES,
    NOT_GIVEN,
    LabelColumns,
    Output,
    Settings,
    Site,
    SweepSite,
    options_of,
)
from bsl.flows.cli.terminal.overrides import refuse_contradictions, value_of
from bsl.flows.cli.terminal.printing import print_result, print_sources
from bsl.flows.cli.terminal.start import begin
from bsl.flows.own_options import OwnRequest
from bsl.models.evaluation.config import MARGIN
from bsl.storage.sources.reading_config import ReadingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bsl.tasks.stage.run_context import RunContext


if TYPE_CHECKING:
    OwnOptions = Mapping[str, Any]
    FileOptions = Mapping[str, Any]
else:
    OwnOptions = options_of(OwnRequest, OwnRequest.model_fields, Group("Study own: your text", sort_key=0))
    FileOptions = options_of(ReadingConfig, ReadingConfig.model_fields, FILES)


def own_request(
    given: Mapping[str, Any], site: RunContext, columns: LabelColumns, encoding: str | None
) -> OwnRequest | None:
    """Return the options of the study `own`; None if none is given.

    Args:
        given: The options.
        site: Store and mirror to search.
        columns: Columns of the labels.
        encoding: Encoding of the files.

    Raises:
        ValueError: Other options are given without `--text`, or columns of labels without `--labels`.
        SourceError, AssetError, ArtifactMissingError: A file or encoder does not exist.
    """
    if given and "text" not in given:
        raise ValueError(f"--{next(iter(given))}: needs --text. Add --text FILE")
    check_inputs(given.get("text", ()), given.get("labels"), site)
    check_encoders([given.get("encoder")], site)
    labels = columns.of_file(given.get("labels"), encoding)
    return OwnRequest(**{**given, **({"labels": labels} if labels else {})}) if given else None


def sweep(
    names: Annotated[
        tuple[str, ...],
        Parameter(
            help="a declared study, own for your text, or recipes; an unknown name lists the studies", required=True
        ),
    ],
    /,
    *,
    over: Annotated[
        tuple[str, ...],
        Parameter(
            metavar="FIELD=VALUES",
            help="values of a field, for example training.objective.momentum=0.5,0.999 or recipe=nli,entail; may be "
            "repeated for a grid",
        ),
    ] = (),
    seeds: Annotated[int, Parameter(help="runs of each point, with training.seed 0, 1, …")] = 1,
    against: Annotated[
        tuple[str, ...], Parameter(help="point that all others are compared with; may be repeated")
    ] = (),
    own: OwnOptions = NOT_GIVEN,
    columns: LabelColumns = LabelColumns(),
    reading: FileOptions = NOT_GIVEN,
    workers: Annotated[
        int | None,
        COUNT,
        Parameter(help="processes of this machine that share the runs [default: 1]; with --pool: runs at a time [256]"),
    ] = None,
    settings: Settings = Settings(),
    place: SweepSite = NOT_GIVEN,
    output: Output = Output(),
) -> int:
    """Run a grid of configurations with several seeds, and compare them in one table."""
    from bsl.flows.run_context import MOST_SEEDS, check_workers, run_context_of
    from bsl.flows.sweep.grid import grid, refuse_varied
    from bsl.flows.sweep.own import Start, check_own, declared, own_config

    if not 1 <= seeds <= MOST_SEEDS:
        raise ValueError(f"--seeds {seeds}: expected 1 to {MOST_SEEDS}")
    site = run_context_of(place)
    name, axes = names[0], axes_of(over, names)
    request = own_request(own, site, columns, reading.get("encoding"))
    if reading and not request:
        raise ValueError(f"--{next(iter(reading))}: only study own reads your text. Add --text FILE")
    stated = {f"ingest.own_text.{field}": value for field, value in {**reading, "labels": own.get("labels")}.items()}
    refuse_contradictions({**stated, "encoder.model": own.get("encoder")}, settings.changes())
    options = [f"ingest.own_text.{field}={json.dumps(value)}" for field, value in reading.items()]
    settings = replace(settings, settings=(*options, *settings.settings))
    changes = settings.changes()
    check_workers(workers, site)
    if site.pool and not os.environ.get("PREFECT_API_URL"):
        raise ValueError(
            "--pool: the embedded Prefect server has no workers. Set PREFECT_API_URL to a server with workers"
        )
    check_own(name, request)
    # For study own, as if its encoder could be trained at all points. Usage errors raise before a server starts.
    study = declared(own_config(request, changes, site.mirror), request, Start())[0] if request else None
    planned = grid(name, axes, changes, against, study)
    # Of several points, those that do not train ignore the precision of training.
    changes = settings.changes(dict.fromkeys(part for config in planned.configs for part in config.precisions))
    refuse_varied(axes, changes)
    check_sets([name for config in planned.configs for name in config.evaluation.sets], site)
    text, details = planned.configs[0].ingest.own_text, {}
    start = begin(site, output)
    if request and text:
        from bsl.storage.sources.labels import sources_and_labels

        sources, labels = sources_and_labels(text, request.text, request.labels, site.mirror)
        check_amount(sources, text.hold_out, labels)
        details = print_sources(sources, labels, output)
    from bsl.flows.sweep.sweep import ablation
    from bsl.tasks.figures import SweepFigures

    ref = start.run(
        ablation,
        () if request else planned.configs,
        name=name,
        over=axes,
        seeds=seeds,
        overrides=changes or None,
        against=list(against),
        workers=workers,
        own=request,
    )
    store = site.open_store()
    print_result(store, ref, output, **details)
    return 1 if store.manifest(ref).figures_as(SweepFigures).faults else 0


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


def reproduce(
    row: Annotated[str, Parameter(help="a published row, such as BSL-BERT, or a recipe of a published row")],
    /,
    *,
    seeds: Annotated[int, Parameter(help="runs, with training.seed 0, 1, …; 2 or more for a verdict")] = 1,
    margin: Annotated[
        float, Parameter(help="maximum difference, in points, from the published figure for REPRODUCED")
    ] = MARGIN,
    settings: Settings = Settings(),
    place: Site = NOT_GIVEN,
    output: Output = Output(),
) -> int:
    """Run the recipe of a published row, and compare its figures with the row."""
    from bsl.flows.run_context import MOST_SEEDS, run_context_of

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
    start = begin(run_context_of(place), output)
    from bsl.flows.sweep.sweep import reproduction
    from bsl.models.evaluation.verdict import STOPPED
    from bsl.storage.artifacts.refs import ReportRef
    from bsl.tasks.figures import ReportFigures

    ref = start.run(reproduction, configs, row=row, seeds=seeds, margin=margin, overrides=changes or None)
    store = start.site.open_store()
    print_result(store, ref, output)
    inputs = store.manifest(ref).provenance.inputs.values()
    runs = [store.manifest(ReportRef(key=entry.key)) for entry in inputs if entry.kind == "report"]
    return 1 if any(run.figures_as(ReportFigures).verdict == STOPPED for run in runs) else 0
