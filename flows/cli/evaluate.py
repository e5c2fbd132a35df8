"""`bsl evaluate MODEL … --suite …`: score encoders on the papers' sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

from cyclopts import Parameter

from flows.cli.terminal.options import Output, Settings, Site, check_encoders, check_sets, check_suites
from flows.cli.terminal.printing import figures_of, print_result
from flows.cli.terminal.start import begin
from models.encoder.config import CNNConfig, Pooling

if TYPE_CHECKING:
    from collections.abc import Iterator

    from storage.artifacts.refs import EvaluationRef
    from storage.artifacts.store import Store


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Reading:
    """Options for reading an encoder's folder or file."""

    pooling: Annotated[
        Pooling | None,
        Parameter(help="pooling of token vectors, for a bare transformer [default: mean]"),
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
        """The options by the names of their settings (`tasks.evaluation.systems.Reading`).

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
    reading: Reading = Reading(),
    settings: Settings = Settings(),
    place: Site = Site(),
    output: Output = Output(),
) -> None:
    """Score any encoder on the papers' sets; compare several on the same pairs."""
    check_encoders(models, place)
    check_suites(suite)
    check_sets(suite, place)
    start = begin(place, output)
    from tasks.evaluation.kinds import names_of

    names_of(suite)  # an unknown suite raises before a run starts
    from flows.config import override
    from flows.evaluation import evaluation
    from tasks.evaluation.systems import EvaluationSettings

    by_options = EvaluationSettings.model_validate(
        {"reading": reading.given, "precision": settings.precision or "auto"}
    )
    config = override(by_options, settings.changes())
    ref = start.run(evaluation, [], models=list(models), suite=list(suite), config=config)
    _show(start.site.open_store(), ref, output)


def suites_listed() -> str:
    """Return the suites and the fine-tuning protocols, as lines below the help."""
    from storage.datasets.registry import ALL
    from tasks.evaluation.kinds import suites, tuned_names

    return (
        f"suites: {', '.join(suites())}, {ALL}\n"
        "your text and labels: own:FILE, labels:FILE\n"
        f"protocols that fine-tune (hours on a CPU): {', '.join(tuned_names())}"
    )


def _convolutions(kernels: str | None) -> CNNConfig | None:
    try:
        return None if kernels is None else CNNConfig.model_validate({"kernels": kernels.split(",")})
    except ValueError as error:
        raise ValueError(f"--cnn {kernels}: expected odd numbers such as 1,3,5") from error


def _show(store: Store, ref: EvaluationRef, output: Output) -> None:
    """Print the papers' tables, all scores, differences and missing sets, or JSON with `--json`."""
    from tasks.evaluation.kinds import tables
    from tasks.rendering.paper_tables import paper_tables

    def printed() -> Iterator[tuple[str, list[dict[str, str]]]]:
        yield from paper_tables(store.scan(ref, "scores").collect(), tables())
        yield from figures_of(store, ref)

    missing = cast("dict[str, str]", store.manifest(ref).figures["missing"])
    export = f"export:  bsl artifacts export {ref} TARGET --as markdown   (or latex, mteb)"
    print_result(store, ref, output, printed, [f"missing: {name}: {why}" for name, why in missing.items()] + [export])
