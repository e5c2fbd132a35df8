"""`bsl adapt TEXT …`: adapt an encoder to your text, and test it on held-out text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

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
    check_suites,
    check_texts,
)
from bsl.flows.cli.terminal.overrides import settings_in
from bsl.flows.cli.terminal.printing import ANSWERS, browse_line, print_result, print_sources
from bsl.flows.cli.terminal.start import begin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.flows.recipes.adaptation import AdaptConfig
    from bsl.models.corpus.labels import Use
    from bsl.storage.artifacts.refs import ReportRef
    from bsl.storage.artifacts.store import Store

_FILL_IN = "fill in its column `label`, then give it with --labels"
PRECISIONS = ("training", "label_training", "evaluation")  # sections of the settings with a precision


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """Options for the settings of an adaptation."""

    labels_only_judge: Annotated[
        bool, Parameter(help="train on views of the text, and use all labels for the verdict", negative="")
    ] = False
    accept: Annotated[
        bool, Parameter(help="without labels: export the adapted encoder, although no gain is proved", negative="")
    ] = False
    used_for: Annotated[
        Literal["classify", "group", "similarity", "search"] | None,
        Parameter(
            name="--for",
            help="use of the encoder that decides the verdict [default: classify for labels of classes, similarity for "
            "scored pairs]",
        ),
    ] = None
    suite: Annotated[
        tuple[str, ...],
        Parameter(
            consume_multiple=(1, None),
            help="general suites or sets in addition to STS-B; in sts, no set may lose half a point",
        ),
    ] = ()
    views: Annotated[
        Literal["auto", "crops", "round-trips", "both", "dropout"] | None,
        Parameter(help="views to train on if training uses no labels [default: auto]"),
    ] = None
    translators: Annotated[str | None, Parameter(help="embedded, opus-mt, or '' for none [default: embedded]")] = None
    settings: Settings = Settings()
    config: Annotated[Path | None, Parameter(help="JSON file of settings, as on the page of `bsl adapt`")] = None

    def configured(self, reading: Reading) -> AdaptConfig:
        """Return the settings; `--set` and `--precision` override options, and options override `--config`.

        Raises:
            ValueError: The file or its `evaluation` is not a JSON object, or a field or value is invalid.
        """
        from bsl.flows.config import override
        from bsl.flows.recipes.adaptation import AdaptConfig

        from_file = settings_in(self.config)
        if self.suite and not isinstance(section := from_file.get("evaluation", {}), dict):
            raise ValueError(f"--config {self.config}: evaluation is {section!r}, expected a JSON object of settings")
        options = {
            "views": self.views,
            "translators": self.translators,
            "accept": self.accept or None,
            "used_for": self.used_for,
        }
        given = {name: value for name, value in options.items() if value is not None} | reading.given
        suite = {"evaluation": {"sets": self.suite}} if self.suite else {}
        return override(AdaptConfig(), from_file, given, suite, self.settings.changes(PRECISIONS))

    def check_effect(self, use: Use) -> None:
        """Refuse `--set` of the section that training does not use.

        Args:
            use: Use of the labels: `adapt` if the encoder trains on them.
        """
        on_labels = use == "adapt"
        used, unused = ("label_training", "training") if on_labels else ("training", "label_training")
        if unused in self.settings.changes():
            raise ValueError(
                f"--set {unused}: no effect, because the encoder trains on {'labels' if on_labels else 'views'}. "
                f"Set the field of {used} instead"
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
    columns: LabelColumns = LabelColumns(),
    adaptation: Adaptation = Adaptation(),
    reading: Reading = Reading(),
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Adapt an encoder to your text; you get the new encoder only if it is better, else the original encoder."""
    from bsl.models.evaluation.uses import deciding_use
    from bsl.storage.sources.labels import label_source

    check_texts(texts, place)
    check_labels(labels)
    check_encoders([encoder], place)
    labels = columns.of_file(labels, reading.encoding)
    config = adaptation.configured(reading)
    check_suites(config.evaluation.sets)
    check_sets(config.evaluation.sets, place)
    adaptation.check_effect(config.use_of(labels=labels is not None, only_judge=adaptation.labels_only_judge))
    deciding_use(config.used_for, label_source(labels).kind if labels else None)
    check_amount(texts, config, labels)
    start = begin(place, output)
    if adaptation.suite:
        from bsl.tasks.evaluation.kinds import frozen_names

        frozen_names(config.evaluation.sets)
    from bsl.storage.sources.labels import sources_and_labels

    details = print_sources(*sources_and_labels(config, texts, labels, start.site.mirror), output)
    from bsl.flows.adaptation import adapt as adapting
    from bsl.flows.config import difference
    from bsl.flows.recipes.adaptation import AdaptConfig

    ref = start.run(
        adapting,
        [],
        texts=list(texts),
        encoder=encoder,
        labels=labels,
        labels_only_judge=adaptation.labels_only_judge,
        config=difference(AdaptConfig(), config) or None,
    )
    _show(start.site.open_store(), ref, output, encoder or config.encoder.model, details)


def _show(store: Store, ref: ReportRef, output: Output, original: str, details: dict[str, Any]) -> None:
    """Print the evidence, the verdict and the paths of page and encoder, or JSON with `--json`."""
    import polars as pl

    from bsl.storage.artifacts.refs import ProofRef
    from bsl.tasks.embedding.to_label import TO_LABEL
    from bsl.tasks.figures import AdaptationFigures
    from bsl.tasks.rendering.evidence import MRR, answer_rows, proof_rows
    from bsl.tasks.reporting.publish import page_of

    manifest = store.manifest(ref)
    figures, inputs = manifest.figures_as(AdaptationFigures), manifest.provenance.inputs
    proof = store.scan(ProofRef(key=inputs["proof"].key)).collect()
    folder = f"{store.url}/checkpoint/{inputs['adapted'].key}/encoder"

    def tables() -> Iterator[tuple[str, list[dict[str, str]]]]:
        yield "Rows", [{name: f"{count:,}" for name, count in figures.rows.items()}]
        if answers := answer_rows(proof, figures.draws):
            yield ANSWERS, answers
        others = proof_rows(proof.filter(pl.col("use").is_null()), figures.draws)
        yield f"Other figures on held-out text (× 100), and on general sets. {MRR}", others

    which = "adapted" if figures.adapted else f"{original}, unchanged"
    to_label = page_of(store, ref).with_name(TO_LABEL)
    lines = [
        *([figures.split] if figures.split else []),
        *([f"label:   {to_label}\n         ({_FILL_IN})"] if to_label.exists() else []),
        *([f"{figures.classifier} Use it: bsl classify {ref} new.csv out.csv"] if figures.classifier else []),
        f"encoder: {folder}\n         ({which}; opens with SentenceTransformer)",
        browse_line(),
    ]
    print_result(store, ref, output, tables, lines, encoder=folder, proof=proof.to_dicts(), **details)
