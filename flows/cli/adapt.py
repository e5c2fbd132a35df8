"""`bsl adapt TEXT …`: an encoder adapted to your text, with proof."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.cli.options import add_site_options, print_table
from flows.cli.starting import be_quiet, failed
from flows.server import start_server, use_server
from flows.site import site_of

if TYPE_CHECKING:
    import argparse

    from storage.refs import ReportRef
    from storage.store import Store


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
    parser.add_argument("--suite", nargs="+", help="general sets that may not be forgotten (embedded:stsb/test)")
    parser.add_argument("--views", choices=["auto", "crops", "round trips", "both"], help="what is learnt (auto)")
    parser.add_argument("--translators", metavar="NAME", help="embedded, opus-mt, '' for none (embedded)")
    parser.add_argument("--lang", help="ISO 639 code of the text (en)")
    parser.add_argument("--columns", nargs="+", help="columns that hold text, where the guess is wrong")
    parser.add_argument("--document", help="column whose equal values make a document, where the guess is wrong")
    parser.add_argument("--config", metavar="FILE", help="JSON of further settings, as `bsl adapt` prints on its page")
    add_site_options(parser)
    parser.set_defaults(call=_adapt)


def _adapt(arguments: argparse.Namespace) -> int:
    changes = changes_of(arguments)  # what is misspelt is said before anything is started
    from flows.config import overridden
    from flows.recipes.adapt import DEFAULT_ENCODER, AdaptConfig

    config = overridden(AdaptConfig(), changes)
    server = use_server()
    if not arguments.debug:
        be_quiet()
    embedded = start_server()
    site = site_of(vars(arguments))
    from storage.texts import sources

    own = sources(
        arguments.texts,
        mirror=site.mirror,
        lang=config.lang,
        columns=config.columns,
        title=config.title,
        document=config.document,
    )
    print_table("What your files were taken to hold (--columns and --document overrule)", [s.told for s in own])
    from flows.adapt import adapt
    from flows.cli.watching import watching

    if embedded is not None:
        embedded.wait()
    start, store = arguments.encoder or DEFAULT_ENCODER, site.open_store()
    with watching(store, []):
        state = adapt(arguments.texts, start, arguments.labels, changes or None, site, return_state=True)
    if not state.is_completed():
        return failed(state.result(raise_on_failure=False))
    _conclude(store, state.result(), start, server)
    return 0


def changes_of(arguments: argparse.Namespace) -> dict[str, Any]:
    """The settings that a person changes: those of the file, then those of the command line.

    Raises:
        ValueError: the file is no JSON object.
    """
    changes: dict[str, Any] = {}
    if arguments.config is not None:
        changes = json.loads(Path(arguments.config).read_text(encoding="utf-8"))
        if not isinstance(changes, dict):
            raise ValueError(f"--config {arguments.config}: expected a JSON object of settings")
    given = {name: getattr(arguments, name) for name in ("views", "translators", "lang", "columns", "document")}
    changes |= {name: value for name, value in given.items() if value is not None}
    if arguments.suite:
        changes["evaluation"] = {**changes.get("evaluation", {}), "sets": arguments.suite}
    return changes


def _conclude(store: Store, ref: ReportRef, start: str, server: str) -> None:
    from models.report.adaptation import proof_rows
    from storage.refs import ProofRef

    manifest = store.manifest(ref)
    inputs = {entry.kind: entry.key for entry in manifest.provenance.inputs.values()}
    print_table(
        "On held-out text (× 100), and on general sets",
        proof_rows(store.scan(ProofRef(key=inputs["proof"])).collect()),
    )
    figures = manifest.figures
    print(f"{figures['verdict']}: {figures['reason']}. {figures['advice']}")
    print(f"report:  {store.fetch(ref) / 'report.md'}")
    better = figures["verdict"] == "BETTER"
    place, which = f"checkpoint/{inputs['checkpoint']}", "adapted" if better else f"{start}, unchanged"
    print(f"encoder: {store.url}/{place}/encoder   ({which}; loads with SentenceTransformer)")
    print(f"browse:  bsl ui   ({server})")
