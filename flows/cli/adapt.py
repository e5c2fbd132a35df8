"""`bsl adapt TEXT …`: adapt an encoder to your text, and test it on held-out text."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from flows.cli.terminal.options import (
    ENCODER_FORMS,
    TEXT_FORMS,
    Output,
    Reading,
    Settings,
    Site,
    check_amount,
    check_encoders,
    check_files,
    check_sets,
    check_suites,
    check_texts,
)
from flows.cli.terminal.overrides import settings_in
from flows.cli.terminal.printing import browse_line, print_result, print_sources
from flows.cli.terminal.start import begin

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flows.recipes.adaptation import AdaptConfig
    from models.corpus.labels import Use
    from storage.artifacts.refs import ReportRef
    from storage.artifacts.store import Store

PRECISIONS = ("training", "label_training", "evaluation")  # sections of the settings with a precision


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Adaptation:
    """Options for the settings of an adaptation."""

    labels_only_judge: Annotated[
        bool, Parameter(help="train on views of the text, and use all labels for the verdict", negative="")
    ] = False
    suite: Annotated[
        tuple[str, ...],
        Parameter(
            consume_multiple=(1, None),
            help="general suites or sets in addition to STS-B; in sts and useb, no set may lose half a point",
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
        from flows.config import override
        from flows.recipes.adaptation import AdaptConfig

        from_file = settings_in(self.config)
        if self.suite and not isinstance(section := from_file.get("evaluation", {}), dict):
            raise ValueError(f"--config {self.config}: evaluation is {section!r}, expected a JSON object of settings")
        options = {"views": self.views, "translators": self.translators}
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
        Parameter(help="file of scored pairs or of texts with a class: half for training, half for the verdict"),
    ] = None,
    adaptation: Adaptation = Adaptation(),
    reading: Reading = Reading(),
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Adapt an encoder to your text; you get the new encoder only if it is better, else the original encoder."""
    check_texts(texts, place)
    check_files(labels)
    check_encoders([encoder], place)
    config = adaptation.configured(reading)
    check_suites(config.evaluation.sets)
    check_sets(config.evaluation.sets, place)
    adaptation.check_effect(config.use_of(labels=labels is not None, only_judge=adaptation.labels_only_judge))
    check_amount(texts, config, asks=labels is None)
    start = begin(place, output)
    if adaptation.suite:
        from tasks.evaluation.kinds import frozen_names

        frozen_names(config.evaluation.sets)
    details = print_sources(config.sources(texts, start.site.mirror), labels, output)
    from flows.adaptation import adapt as adapting
    from flows.config import difference
    from flows.recipes.adaptation import AdaptConfig

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
    from storage.artifacts.refs import ProofRef
    from tasks.rendering.evidence import MRR, proof_rows

    manifest = store.manifest(ref)
    inputs, verdict = manifest.provenance.inputs, manifest.figures["verdict"]
    proof = store.scan(ProofRef(key=inputs["proof"].key)).collect()
    folder = f"{store.url}/checkpoint/{inputs['adapted'].key}/encoder"

    def tables() -> Iterator[tuple[str, list[dict[str, str]]]]:
        rows = cast("dict[str, int]", manifest.figures["rows"])
        yield "Rows", [{name: f"{count:,}" for name, count in rows.items()}]
        yield f"On held-out text (× 100), and on general sets. {MRR}", proof_rows(proof)

    which = "adapted" if verdict == "BETTER" else f"{original}, unchanged"
    lines = [f"encoder: {folder}\n         ({which}; opens with SentenceTransformer)", browse_line()]
    print_result(store, ref, output, tables, lines, encoder=folder, proof=proof.to_dicts(), **details)
