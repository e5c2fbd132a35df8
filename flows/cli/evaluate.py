"""`bsl evaluate MODEL … --suite …`: score encoders on the papers' sets."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any, Final

from cyclopts import Group, Parameter

from bsl.flows.cli.terminal.checks import check_encoders, check_sets
from bsl.flows.cli.terminal.log_lines import printable
from bsl.flows.cli.terminal.options import (
    FIRST,
    LABELLED,
    NOT_GIVEN,
    SETTINGS,
    SEVERAL,
    EvaluationOptions,
    LabelColumns,
    Output,
    Site,
    options_of,
)
from bsl.flows.cli.terminal.overrides import refuse_contradictions
from bsl.flows.cli.terminal.printing import print_result, print_sets
from bsl.flows.cli.terminal.start import begin
from bsl.models.encoder.config import CNNConfig, EncoderOverrides, WordsConfig

WORDS: Final = Group("Word vectors", sort_key=2)

if TYPE_CHECKING:
    from collections.abc import Mapping

    EncoderOptions = Mapping[str, Any]
    WordOptions = Mapping[str, Any]
else:
    EncoderOptions = options_of(EncoderOverrides, ("pooling", "max_length", "prompt", "revision"), FIRST)
    WordOptions = options_of(WordsConfig, ("split", "case"), WORDS)


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
        SEVERAL,
        Parameter(
            help="suites (sts, sts-tok, sts17, sts17-bsl, sts17-other, senteval, afs, all), sets such as stsb/dev or "
            "trec, your text (own:FILE) and labels (labels:FILE), or protocols that fine-tune, in hours on a CPU: "
            "stsb-supervised, stsb-cross-encoder, afs-10-fold, afs-10-fold-disjoint, afs-cross-topic, "
            "afs-cross-encoder-10-fold, afs-cross-encoder-10-fold-disjoint, afs-cross-encoder-cross-topic "
            "[default: sts]"
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
    reading: EncoderOptions = NOT_GIVEN,
    words: WordOptions = NOT_GIVEN,
    no_marks: Annotated[bool, Parameter(group=WORDS, help="ignore punctuation marks, for word vectors")] = False,
    cnn: Annotated[
        str | None,
        Parameter(
            group=SETTINGS,
            help="widths of convolutions above a transformer for fine-tuning, for example 1,3,5 (IS-BERT)",
        ),
    ] = None,
    settings: EvaluationOptions = EvaluationOptions(),
    place: Site = NOT_GIVEN,
    output: Output = Output(),
) -> int:
    """Score encoders on the papers' sets or your labels; compare several.

    A suite is scored on those of its sets that are available; exit code 1 if a set that is named itself is missing.
    """
    from bsl.flows.config import override
    from bsl.flows.run_context import run_context_of
    from bsl.tasks.evaluation.config import EvaluationSettings

    site = run_context_of(place)
    suite = columns.of_sets(suite, document)
    check_encoders(models, site)
    check_sets(suite, site)
    given = {**reading, "words": {**words, "marks": not no_marks}, "cnn": _convolutions(cnn)}
    options = {"reading": given, "precision": settings.precision or "auto"}
    stated = {f"reading.{name}": value for name, value in reading.items()}
    stated |= {f"reading.words.{name}": value for name, value in words.items()}
    stated |= {"reading.words.marks": False if no_marks else None, "precision": settings.precision}
    stated["reading.cnn.kernels"] = given["cnn"] and given["cnn"].kernels
    refuse_contradictions(stated, settings.changes())
    config = override(EvaluationSettings(), options, settings.changes())
    start = begin(site, output)
    print_sets(suite, site.mirror)
    from bsl.flows.evaluation import evaluation
    from bsl.tasks.evaluation.kinds import named_sets
    from bsl.tasks.figures import EvaluationFigures

    ref = start.run(evaluation, [], models=list(models), suite=list(suite), config=config)
    store = site.open_store()
    figures = store.manifest(ref).figures_as(EvaluationFigures)
    for note in figures.notes:
        print(printable(f"note: {note}"), file=sys.stderr)
    export = f"export:  bsl artifacts export {ref} TARGET --as markdown   (or latex, mteb)"
    print_result(store, ref, output, [export])
    return 1 if figures.missing.keys() & {*named_sets(suite)} else 0


def _convolutions(kernels: str | None) -> CNNConfig | None:
    try:
        return None if kernels is None else CNNConfig(kernels=tuple(map(int, kernels.split(","))))
    except ValueError as error:
        raise ValueError(f"--cnn {kernels}: expected odd numbers such as 1,3,5") from error
