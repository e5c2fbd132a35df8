"""`bsl evaluate MODEL … --suite …`: score encoders on the papers' sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from bsl.flows.cli.terminal.options import (
    LABELLED,
    LabelColumns,
    Output,
    Settings,
    Site,
    check_encoders,
    check_sets,
    check_suites,
)
from bsl.flows.cli.terminal.printing import figures_of, print_result, print_sets
from bsl.flows.cli.terminal.start import begin
from bsl.models.encoder.config import CNNConfig
from bsl.models.encoder.pooling import POOLINGS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.storage.artifacts.refs import ArtifactRef
    from bsl.storage.artifacts.store import Store


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading an encoder's folder or file."""

    pooling: Annotated[
        str | None,
        Parameter(
            help=f"pooling of token vectors: {', '.join(POOLINGS)}, or several, such as cls+mean, which are "
            "concatenated [default: the folder's, or mean for a bare transformer]"
        ),
    ] = None
    max_length: Annotated[
        int | None, Parameter(help="maximum tokens per sentence, for a bare transformer [default: 64]")
    ] = None
    prompt: Annotated[
        str | None, Parameter(help="prefix of every text: the name of a prompt in the folder, or a text; '' for none")
    ] = None
    split: Annotated[
        Literal["treebank", "punctuation", "whitespace"] | None,
        Parameter(help="tokenization of sentences, for word vectors [default: treebank]"),
    ] = None
    case: Annotated[
        Literal["file", "kept", "lower"] | None, Parameter(help="case of words, for word vectors [default: file]")
    ] = None
    no_marks: Annotated[bool, Parameter(help="ignore punctuation marks, for word vectors")] = False
    cnn: Annotated[
        str | None,
        Parameter(help="widths of convolutions above a transformer for fine-tuning, for example 1,3,5 (IS-BERT)"),
    ] = None
    revision: Annotated[str | None, Parameter(help="commit of a Hub model")] = None

    @property
    def given(self) -> dict[str, Any]:
        """The options by the names of their settings (`bsl.tasks.evaluation.systems.Reading`).

        Raises:
            ValueError: The widths of convolutions are malformed.
        """
        words = {name: value for name, value in (("split", self.split), ("case", self.case)) if value}
        return {
            "pooling": self.pooling,
            "max_length": self.max_length,
            "revision": self.revision,
            "words": {**words, "marks": not self.no_marks},
            "cnn": _convolutions(self.cnn),
            "prompt": self.prompt,
        }


def evaluate(
    models: Annotated[
        tuple[str, ...],
        Parameter(
            required=True,
            help="folder, Hub id, embedded:<name>, checkpoint/<key>, report/<key>, or a file of word vectors",
        ),
    ],
    /,
    *,
    suite: Annotated[
        tuple[str, ...],
        Parameter(
            consume_multiple=(1, None),
            help="suites, sets such as stsb/dev or trec, and protocols that fine-tune; listed below [default: sts]",
        ),
    ] = ("sts",),
    columns: LabelColumns = LabelColumns(),
    document: Annotated[
        str | None,
        Parameter(
            group=LABELLED,
            help="column of files of labels with the same value in all rows of a writer or customer; the bootstrap "
            "draws these together",
        ),
    ] = None,
    reading: Reading = Reading(),
    settings: Settings = Settings(),
    place: Site = Site(),
    output: Output = Output(),
) -> int:
    """Score any encoder on the papers' sets; compare several on the same pairs.

    A suite is scored on those of its sets that are available; exit code 1 if a set that is named itself is missing.
    """
    suite = columns.of_sets(suite, document)
    check_suites(suite)
    check_encoders(models, place)
    check_sets(suite, place)
    start = begin(place, output)
    print_sets(suite, start.site.mirror)
    from bsl.tasks.evaluation.kinds import named_sets, names_of

    names_of(suite)  # a set without scores raises before a run starts
    from bsl.flows.config import override
    from bsl.flows.evaluation import evaluation
    from bsl.tasks.evaluation.systems import EvaluationSettings

    options = {"reading": reading.given, "precision": settings.precision or "auto"}
    config = override(EvaluationSettings(), options, settings.changes())
    ref = start.run(evaluation, [], models=list(models), suite=list(suite), config=config)
    missing = _show(start.site.open_store(), ref, output)
    return 1 if missing.keys() & {*named_sets(suite)} else 0


def suites_listed() -> str:
    """Return the suites and the fine-tuning protocols, as lines below the help."""
    from bsl.storage.datasets.registry import ALL, DATASETS, OTHER_SETS, suites_of

    return (
        f"suites: {', '.join(suites_of(DATASETS.values()))}, {ALL}\n"
        "your text and labels: own:FILE, labels:FILE\n"
        f"protocols that fine-tune (hours on a CPU): {', '.join(OTHER_SETS)}"
    )


def _convolutions(kernels: str | None) -> CNNConfig | None:
    try:
        return None if kernels is None else CNNConfig(kernels=tuple(map(int, kernels.split(","))))
    except ValueError as error:
        raise ValueError(f"--cnn {kernels}: expected odd numbers such as 1,3,5") from error


def _show(store: Store, ref: ArtifactRef, output: Output) -> dict[str, str]:
    """Print the papers' tables, all scores, differences and missing sets, or JSON with `--json`; return the missing."""
    from bsl.tasks.evaluation.kinds import tables
    from bsl.tasks.figures import EvaluationFigures
    from bsl.tasks.rendering.paper_tables import paper_tables

    def printed() -> Iterator[tuple[str, list[dict[str, str]]]]:
        yield from paper_tables(store.scan(ref, "scores").collect(), tables())
        yield from figures_of(store, ref)

    missing = store.manifest(ref).figures_as(EvaluationFigures).missing
    export = f"export:  bsl artifacts export {ref} TARGET --as markdown   (or latex, mteb)"
    reasons = {why: [name for name in missing if missing[name] == why] for why in missing.values()}
    lines = [f"missing: {', '.join(names)}: {why}" for why, names in reasons.items()]
    print_result(store, ref, output, printed, [*lines, export])
    return missing
