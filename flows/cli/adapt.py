"""`bsl adapt TEXT …`: adapt an encoder to your text, and test it on held-out text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from bsl.flows.cli.terminal.checks import check_amount, check_encoders, check_inputs, check_sets
from bsl.flows.cli.terminal.options import (
    ENCODER_FORMS,
    FILES,
    FIRST,
    NOT_GIVEN,
    SETTINGS,
    SEVERAL,
    LabelColumns,
    Output,
    Settings,
    Site,
    options_of,
)
from bsl.flows.cli.terminal.overrides import refuse_contradictions, settings_in
from bsl.flows.cli.terminal.printing import browse_line, encoder_lines, print_result, print_sources
from bsl.flows.cli.terminal.start import begin
from bsl.flows.own_options import AdaptOptions
from bsl.storage.sources.reading_config import TEXT_FORMS, ReadingConfig

if TYPE_CHECKING:
    from collections.abc import Mapping

    from bsl.flows.recipes.adaptation import AdaptConfig
    from bsl.models.corpus.labels import Use
    from bsl.storage.artifacts.refs import ReportRef
    from bsl.storage.artifacts.store import Store

_FILL_IN = "fill in its column `label`, then give it with --labels"
PRECISIONS = ("training", "label_training", "evaluation")  # sections of the settings with a precision


if TYPE_CHECKING:
    GivenOptions = Mapping[str, Any]
else:
    GivenOptions = options_of(
        AdaptOptions,
        AdaptOptions.model_fields,
        SETTINGS,
        used_for=Parameter(name="--for", group=FIRST),
        accept=Parameter(group=FIRST),
        **dict.fromkeys(ReadingConfig.model_fields, Parameter(group=FILES)),
    )


def adapt(
    texts: Annotated[tuple[str, ...], Parameter(help=TEXT_FORMS, required=True)],
    /,
    *,
    encoder: Annotated[
        str | None, Parameter(help=f"original encoder: {ENCODER_FORMS} [default: embedded:mini-sentence]")
    ] = None,
    labels: Annotated[
        str | None,
        Parameter(
            help="table with a text column and a column of classes, or two text columns and a score; half for "
            "training, half for the verdict"
        ),
    ] = None,
    suite: Annotated[
        tuple[str, ...],
        SEVERAL,
        Parameter(help="general suites or sets in addition to STS-B; in sts, no set may lose half a point"),
    ] = (),
    columns: LabelColumns = LabelColumns(),
    options: GivenOptions = NOT_GIVEN,
    labels_only_judge: Annotated[
        bool, Parameter(group=SETTINGS, help="train on views of the text, and use all labels for the verdict")
    ] = False,
    settings: Settings = Settings(),
    config: Annotated[
        Path | None, Parameter(group=SETTINGS, help="JSON file of settings, as on the page of `bsl adapt`")
    ] = None,
    place: Site = NOT_GIVEN,
    output: Output = Output(),
) -> None:
    """Adapt an encoder to your text; you get the new one only if it is better."""
    from bsl.flows.run_context import run_context_of
    from bsl.models.evaluation.uses import deciding_use
    from bsl.storage.sources.labels import sources_and_labels

    site = run_context_of(place)
    check_inputs(texts, labels, site)
    check_encoders([encoder], site)
    labels = columns.of_file(labels, options.get("encoding"))
    refuse_contradictions({"encoder.model": encoder}, settings.changes())
    merged = configured(options, suite, config, settings)
    check_sets(merged.evaluation.sets, site)
    check_effect(settings, merged.use_of(labels=labels is not None, only_judge=labels_only_judge))
    start = begin(site, output)
    sources, labelled = sources_and_labels(merged, texts, labels, site.mirror)
    deciding_use(merged.used_for, labelled.kind if labelled else None)
    check_amount(sources, merged.hold_out, labelled)
    details = print_sources(sources, labelled, output)
    from bsl.flows.adaptation import adapt as adapting

    ref = start.run(
        adapting,
        [],
        texts=list(texts),
        encoder=encoder,
        labels=labels,
        labels_only_judge=labels_only_judge,
        config=merged,
    )
    _show(site.open_store(), ref, output, encoder or merged.encoder.model, details)


def configured(
    options: Mapping[str, Any], suite: tuple[str, ...], config: Path | None, settings: Settings
) -> AdaptConfig:
    """Return the settings; options, `--set` and `--precision` override `--config`.

    Args:
        options: Given options, by the names of their settings.
        suite: Names of general sets; empty for those of the settings.
        config: JSON file of settings.
        settings: `--set` and `--precision`.

    Raises:
        ValueError: The file or its `evaluation` is not a JSON object, a field or value is invalid, or an option and
            `--set` contradict each other.
    """
    from bsl.flows.config import override
    from bsl.flows.recipes.adaptation import AdaptConfig

    from_file = settings_in(config)
    if suite and not isinstance(section := from_file.get("evaluation", {}), dict):
        raise ValueError(f"--config {config}: evaluation is {section!r}, expected a JSON object of settings")
    sets = {"evaluation": {"sets": suite}} if suite else {}
    refuse_contradictions({**options, "evaluation.sets": suite or None}, settings.changes())
    return override(AdaptConfig(), from_file, options, sets, settings.changes(PRECISIONS))


def check_effect(settings: Settings, use: Use) -> None:
    """Refuse `--set` of the section that training does not use.

    Args:
        settings: `--set`.
        use: Use of the labels: `adapt` if the encoder trains on them.
    """
    on_labels = use == "adapt"
    used, unused = ("label_training", "training") if on_labels else ("training", "label_training")
    if unused in settings.changes():
        raise ValueError(
            f"--set {unused}: no effect, because the encoder trains on {'labels' if on_labels else 'views'}. "
            f"Set the field of {used} instead"
        )


def _show(store: Store, ref: ReportRef, output: Output, original: str, details: dict[str, Any]) -> None:
    """Print the evidence, the verdict and the paths of page and encoder, or JSON with `--json`."""
    from bsl.storage.artifacts.refs import ProofRef
    from bsl.tasks.embedding.to_label import TO_LABEL
    from bsl.tasks.figures import AdaptationFigures
    from bsl.tasks.reporting.publish import page_of

    manifest = store.manifest(ref)
    inputs = manifest.provenance.inputs
    proof = store.scan(ProofRef(key=inputs["proof"].key)).collect().to_dicts()
    which = "adapted" if manifest.figures_as(AdaptationFigures).adapted else f"{original}, unchanged"
    encoder, told = encoder_lines(store, inputs["adapted"].key, which)
    to_label = page_of(store, ref).with_name(TO_LABEL)
    lines = [
        *([f"label:   {to_label}\n         ({_FILL_IN})"] if to_label.exists() else []),
        told,
        browse_line(),
    ]
    print_result(store, ref, output, lines, encoder=encoder, proof=proof, **details)
