"""`bsl evaluate MODEL … --suite …`: any encoder's scores on the papers' sets."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, cast, get_args

from flows.cli.terminal.options import (
    add_json,
    add_precision,
    add_settings,
    add_site_options,
    print_figures,
    print_json,
    print_line,
    print_table,
    tables_of,
)
from flows.cli.terminal.overrides import changes_of
from flows.cli.terminal.start import begin
from models.encoder.config import CNNConfig, Pooling, WordsConfig

if TYPE_CHECKING:
    from storage.artifacts.refs import EvaluationRef
    from storage.artifacts.store import Store


def define_evaluate(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter  # names of protocols have hyphens, where lines break
    parser.add_argument("-h", "--help", action=_Help, nargs=0, help="show this, with the suites and their sets")
    parser.add_argument(
        "models",
        nargs="+",
        metavar="MODEL",
        help="folder, Hub id, embedded:<name>, checkpoint/<key>, report/<key>, or a file of word vectors",
    )
    parser.add_argument(
        "--suite",
        nargs="+",
        default=["sts"],
        help="suites, sets such as stsb/dev or trec, protocols that fine-tune (sts)",
    )
    parser.add_argument("--pooling", choices=get_args(Pooling), help="of a bare transformer (mean)")
    parser.add_argument("--max-length", type=int, help="tokens kept of a sentence, of a bare transformer (64)")
    parser.add_argument(
        "--prompt", help="put before every text: a name that the folder has for it, or the text ('' for none)"
    )
    for name in ("split", "case"):
        field = WordsConfig.model_fields[name]
        parser.add_argument(
            f"--{name}", choices=get_args(field.annotation), help=f"of sentences for word vectors ({field.default})"
        )
    parser.add_argument("--no-marks", action="store_true", help="punctuation marks are no words to word vectors")
    parser.add_argument(
        "--cnn",
        metavar="KERNELS",
        help="where fine-tuned: put convolutions of these widths above a transformer (IS-BERT: 1,3,5)",
    )
    parser.add_argument("--revision", help="commit of a Hub model")
    add_precision(parser, "of the encoder")
    add_settings(parser, "such as seeds=3 or stsb.epochs=1")
    add_json(parser)
    add_site_options(parser)
    parser.set_defaults(call=_evaluate)


def _convolutions(kernels: str | None) -> CNNConfig | None:
    try:
        return None if kernels is None else CNNConfig.model_validate({"kernels": kernels.split(",")})
    except ValueError as error:
        raise ValueError(f"--cnn {kernels}: expected odd numbers such as 1,3,5") from error


class _Help(argparse.Action):
    """Help that lists the kinds of evaluation, which are imported for it alone."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from tasks.evaluation.kinds import ALL, suites, tuned_names

        parser.epilog = (
            f"suites: {', '.join(suites())}, {ALL}\n"
            f"protocols that fine-tune, for hours on a CPU: {', '.join(tuned_names())}"
        )
        parser.print_help()
        parser.exit()


def _evaluate(arguments: argparse.Namespace) -> int:
    start = begin(arguments)
    from tasks.evaluation.kinds import names_of

    names_of(arguments.suite)  # a suite that does not exist is refused before a run starts
    from flows.config import override
    from flows.evaluation import evaluation
    from tasks.evaluation.systems import EvaluationSettings, Reading

    cut = {name: getattr(arguments, name) for name in ("split", "case") if getattr(arguments, name)}
    reading = Reading(
        pooling=arguments.pooling,
        max_length=arguments.max_length,
        revision=arguments.revision,
        words=WordsConfig(**cut, marks=not arguments.no_marks),
        cnn=_convolutions(arguments.cnn),
        prompt=arguments.prompt,
    )
    named = EvaluationSettings(reading=reading, precision=arguments.precision)
    config = override(named, changes_of(arguments.set))
    ref = start.run(evaluation, [], models=arguments.models, suite=arguments.suite, config=config)
    if ref is None:
        return 1
    store = start.site.open_store()
    if arguments.json:
        print_json({"evaluation": ref.path, **tables_of(store, ref)})
    else:
        _conclude(store, ref)
    return 0


def _conclude(store: Store, ref: EvaluationRef) -> None:
    from tasks.evaluation.kinds import tables
    from tasks.rendering.paper_tables import paper_tables
    from tasks.reporting.publish import page_of

    for title, rows in paper_tables(store.scan(ref, "scores").collect(), tables()):
        print_table(title, rows)
    print_figures(store, ref)
    for name, reason in cast("dict[str, str]", store.manifest(ref).figures["missing"]).items():
        print_line(f"missing: {name}: {reason}")
    print(f"page:    {page_of(store, ref)}")
    print(f"export:  bsl artifacts export {ref} FOLDER --as mteb   (or markdown, latex)")
