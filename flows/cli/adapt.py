"""`bsl adapt TEXT …`: an encoder adapted to your text, with proof."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.terminal.log_lines import printable
from flows.cli.terminal.options import (
    BROWSE,
    TAKEN,
    add_json,
    add_precision,
    add_reading_options,
    add_settings,
    add_site_options,
    given_reading,
    print_json,
    print_line,
    print_table,
)
from flows.cli.terminal.overrides import changes_of, value_of
from flows.cli.terminal.start import begin

if TYPE_CHECKING:
    import argparse

    from storage.artifacts.refs import ReportRef
    from storage.artifacts.store import Store


def define_adapt(parser: argparse.ArgumentParser) -> None:
    """The verb."""
    parser.add_argument(
        "texts",
        nargs="+",
        metavar="TEXT",
        help="files (txt, csv, tsv, jsonl, parquet), folders, patterns, embedded:<name>",
    )
    parser.add_argument(
        "--encoder", help="folder, Hub id, embedded:<name>, checkpoint/<key>, report/<key> (embedded:mini-sentence)"
    )
    parser.add_argument("--labels", metavar="FILE", help="scored pairs, or texts with a class: they decide then")
    parser.add_argument(
        "--suite",
        nargs="+",
        help="general sets to ask beside STS-B; of those with intervals (sts, useb) none may lose half a point",
    )
    parser.add_argument(
        "--views", choices=["auto", "crops", "round trips", "both", "dropout"], help="what is learnt (auto)"
    )
    parser.add_argument("--translators", metavar="NAME", help="embedded, opus-mt, '' for none (embedded)")
    add_reading_options(parser)
    add_precision(parser, "of training and evaluation", None)
    add_settings(parser, "such as training.lr=1e-5 or translated=500")
    parser.add_argument("--config", metavar="FILE", help="JSON of further settings, as `bsl adapt` prints on its page")
    add_json(parser)
    add_site_options(parser)
    parser.set_defaults(call=_adapt)


def _adapt(arguments: argparse.Namespace) -> int:
    from flows.config import difference, override
    from flows.recipes.adaptation import AdaptConfig

    config = override(AdaptConfig(), *layers_of(arguments))  # what is misspelt is said before anything is started
    if arguments.suite:
        from tasks.evaluation.kinds import frozen_names

        frozen_names(config.evaluation.sets)
    begun = begin(arguments)
    from storage.sources.labels import label_source

    own = config.sources(arguments.texts, begun.site.mirror)
    labels = label_source(arguments.labels).told if arguments.labels else None
    if not arguments.json:
        print_table(TAKEN, [source.told for source in own])
        if labels is not None:
            print(printable(labels))
    from flows.adaptation import adapt

    start = arguments.encoder
    changes = difference(AdaptConfig(), config)
    ref = begun.run(adapt, [], texts=arguments.texts, encoder=start, labels=arguments.labels, config=changes or None)
    if ref is None:
        return 1
    store = begun.site.open_store()
    outcome = _outcome(store, ref)
    if arguments.json:
        print_json(outcome | {"taken": [source.told for source in own], "labels": labels})
    else:
        _conclude(outcome, start or config.encoder.model)
    return 0


def layers_of(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Return the settings that a person changes: those of the file, then those of options, then those of `--set`.

    Raises:
        ValueError: the file is no JSON object, or a setting has another form.
    """
    file = value_of(Path(arguments.config).read_text(encoding="utf-8")) if arguments.config is not None else {}
    if not isinstance(file, dict):
        raise ValueError(f"--config {arguments.config}: expected a JSON object of settings")  # noqa: TRY004
    if arguments.suite and not isinstance(scored := file.get("evaluation", {}), dict):
        raise ValueError(f"--config {arguments.config}: evaluation is {scored!r}, expected a JSON object of settings")
    given = {name: getattr(arguments, name) for name in ("views", "translators")}
    options = {name: value for name, value in given.items() if value is not None} | given_reading(arguments)
    suite = {"evaluation": {"sets": arguments.suite}} if arguments.suite else {}
    precision = {"precision": arguments.precision} if arguments.precision is not None else {}
    computed = dict.fromkeys(("training", "evaluation"), precision) if precision else {}
    return [file, options, suite, computed, changes_of(arguments.set)]


def _outcome(store: Store, ref: ReportRef) -> dict[str, Any]:
    from storage.artifacts.refs import ProofRef
    from tasks.reporting.publish import page_of

    manifest = store.manifest(ref)
    inputs = {name: entry.key for name, entry in manifest.provenance.inputs.items()}
    return {
        "report": ref.path,
        "page": str(page_of(store, ref)),
        "encoder": f"{store.url}/checkpoint/{inputs['adapted']}/encoder",
        **{name: manifest.figures[name] for name in ("verdict", "reason", "advice", "missing")},
        "proof": store.scan(ProofRef(key=inputs["proof"])).collect().to_dicts(),
    }


def _conclude(outcome: dict[str, Any], start: str) -> None:
    import polars as pl

    from storage.artifacts.schemas import PROOF
    from tasks.rendering.evidence import MRR, proof_rows

    proof = pl.DataFrame(outcome["proof"], schema=PROOF)
    print_table(f"On held-out text (× 100), and on general sets. {MRR}", proof_rows(proof))
    print_line(f"{outcome['verdict']}: {outcome['reason']}. {outcome['advice']}")
    print(f"report:  {outcome['page']}")
    which = "adapted" if outcome["verdict"] == "BETTER" else f"{start}, unchanged"
    print(f"encoder: {outcome['encoder']}\n         ({which}; opens with SentenceTransformer)")
    print(BROWSE)
