"""`bsl embed`, `bsl search`, `bsl pairs`: use an encoder on the sentences of a file."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from bsl.flows.cli.terminal.checks import check_encoders, check_files, check_new_file
from bsl.flows.cli.terminal.log_lines import printable
from bsl.flows.cli.terminal.options import (
    COUNT,
    ENCODER_FORMS,
    NEW_PATH,
    SEVERAL,
    AskedPrecision,
    Output,
    Place,
    option_of,
)
from bsl.flows.cli.terminal.printing import print_json, print_table
from bsl.flows.cli.terminal.start import begin_here
from bsl.models.encoder.config import EncoderConfig, EncoderOverrides
from bsl.storage.sources.reading_config import FORMATS, ReadingConfig

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bsl.models.runtime.precision import Precision
    from bsl.storage.sources.sources import SourceSpec
    from bsl.tasks.serving.search import Index
    from bsl.tasks.stage.run_context import RunContext

Model = Annotated[str, Parameter(help=ENCODER_FORMS)]
_FORMS = f"file ({FORMATS}), folder, or pattern with *"
Corpus = Annotated[str, Parameter(help=_FORMS)]
if TYPE_CHECKING:
    AskedEncoding = str | None
    AskedPrompt = str | None
else:
    AskedEncoding = option_of(ReadingConfig, "encoding")
    AskedPrompt = option_of(EncoderOverrides, "prompt")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Use:
    """Options for reading and embedding sentences, and runtime settings."""

    column: Annotated[str | None, Parameter(help="column of sentences [default: the only column of text]")] = None
    keep: Annotated[tuple[str, ...], SEVERAL, Parameter(help="other columns to copy or show, such as id")] = ()
    encoding: AskedEncoding = None
    precision: AskedPrecision = None
    place: Place = field(default_factory=dict)


def search(
    model: Model,
    corpus: Corpus,
    query: Annotated[tuple[str, ...], Parameter(help="sentences to search for")] = (),
    /,
    *,
    top: Annotated[int, COUNT, Parameter(help="number of sentences for each query")] = 10,
    interactive: Annotated[bool, Parameter(help="read queries from the terminal until an empty line")] = False,
    use: Use = Use(),
    output: Output = Output(),
) -> int:
    """Find the sentences of a corpus that are most similar to a query."""
    if not (query or interactive) or not all(text.strip() for text in query):
        raise ValueError('expected a query, for example bsl search MODEL CORPUS "a man plays", or --interactive')
    index = _opened_index(model, corpus, use, answers_queries=True)

    def answer(queries: list[str]) -> None:
        queries = list(map(_as_text, queries))
        results = dict(zip(queries, index.search(queries, top), strict=True))
        if output.json:
            print_json({text: [_with_kept(index, *hit) for hit in hits] for text, hits in results.items()})
            return
        for text, hits in results.items():
            rows = [{"cosine": f"{score:.3f}", **_kept(index, hit), "sentence": hit} for score, hit in hits]
            print_table(text, rows, are_texts=True)

    if query:
        answer(list(query))
    while interactive:
        print("query: ", end="", file=sys.stderr, flush=True)
        if not (line := sys.stdin.readline().strip()):
            break
        answer([line])
    return 0


def _kept(index: Index, sentence: str) -> dict[str, str]:
    return {name: "" if value is None else str(value) for name, value in index.beside.get(sentence, {}).items()}


def _other(index: Index, sentence: str) -> dict[str, str]:
    return {f"other {name}": value for name, value in _kept(index, sentence).items()}


def _with_kept(index: Index, score: float, *sentences: str) -> list[object]:
    """Return a hit or a pair for JSON: cosine and sentences, with `--keep` also the columns of each."""
    kept = [index.beside.get(sentence, {}) for sentence in sentences] if index.beside else []
    return [score, *sentences, *kept]


def _as_text(word: str) -> str:
    """Return a word of the command line as text: in an ASCII locale, Python passes UTF-8 as lone surrogates."""
    return os.fsencode(word).decode("utf-8", "surrogateescape")


def embed(
    model: Model,
    source: Annotated[str, Parameter(name="IN", help=_FORMS)],
    target: Annotated[
        Path,
        NEW_PATH,
        Parameter(name="OUT.parquet", help="new file with columns text and embedding (and --keep), rows as in IN"),
    ],
    /,
    *,
    prompt: AskedPrompt = None,
    use: Use = Use(),
    output: Output = Output(),
) -> None:
    """Write the vectors of a file's sentences."""
    if target.suffix != ".parquet":
        raise ValueError(f"{target}: expected a name that ends in .parquet, such as vectors.parquet")
    check_new_file(target, source)
    with _using(model, source, use) as (site, spec, precision):
        from bsl.tasks.serving.search import embed_file
        from bsl.tasks.stage.ui import progress_of

        encoder = EncoderConfig(model=model, prompt=prompt)
        rows, empty = embed_file(site, encoder, spec, target, precision, progress_of("embedding, sentences"), use.keep)
    if output.json:
        print_json({"sentences": rows - empty, "rows": rows, "empty": empty, "file": target})
    else:
        note = f"; rows without text, with a null as vector: {empty:,}" if empty else ""
        print(printable(f"{rows - empty:,} sentences{note}: {target}"))


def pairs(
    model: Model,
    corpus: Corpus,
    /,
    *,
    top: Annotated[int, COUNT, Parameter(help="number of pairs")] = 20,
    above: Annotated[float, Parameter(help="list only pairs with a greater cosine")] = -1.0,
    use: Use = Use(),
    output: Output = Output(),
) -> None:
    """Find the most similar pairs of sentences in a corpus."""
    if not -1 <= above < 1:
        raise ValueError(f"--above {above:g}: expected a cosine, a number from -1 to below 1, such as 0.9")
    index = _opened_index(model, corpus, use)
    found = index.pairs(top, above)
    if output.json:
        print_json([_with_kept(index, *pair) for pair in found])
    elif found:
        rows = [
            {
                "cosine": f"{score:.3f}",
                **_kept(index, first),
                "sentence": first,
                **_other(index, second),
                "other": second,
            }
            for score, first, second in found
        ]
        print_table(corpus, rows, are_texts=True)
    else:
        print(printable(f"no pair of sentences has a cosine above {above:g}"))


def _opened_index(model: str, corpus: str, use: Use, *, answers_queries: bool = False) -> Index:
    """Embed a corpus and return its index."""
    with _using(model, corpus, use) as (site, source, precision):
        from bsl.tasks.serving.search import index

        found = index(site, model, source, precision, use.keep, answers_queries=answers_queries)
    print(printable(f"{corpus}: {found.taken}"), file=sys.stderr)
    return found


@contextmanager
def _using(model: str, path: str, use: Use) -> Iterator[tuple[RunContext, SourceSpec, Precision]]:
    """Yield run context, source and precision for using an encoder, and show progress on standard error."""
    check_files(path)
    with begin_here(use.place, path) as site:
        check_encoders([model], site)
        from bsl.storage.sources.sources import SourceSpec

        spec = SourceSpec(path=path, columns=tuple(filter(None, [use.column])), encoding=use.encoding)
        _check_columns(spec, use)
        from bsl.models.runtime.precision import explained
        from bsl.tasks.stage.device import device_of

        precision = use.precision or "auto"
        print(printable(f"precision: {explained(precision, device_of(site))}"), file=sys.stderr)
        yield site, spec, precision


def _check_columns(spec: SourceSpec, use: Use) -> None:
    """Check the named columns, and print which columns of tables are guessed to be text."""
    from bsl.storage.sources.read import check_beside, check_columns
    from bsl.storage.sources.sources import resolve_sources

    sources = resolve_sources(spec)
    check_beside(sources, use.keep)
    found = {source.format: check_columns(source) for source in sources}
    columns = dict.fromkeys(name for kind, names in found.items() if kind != "txt" for name in names)
    if columns and use.column is None:
        listed = " and ".join(f"`{column}`" for column in columns)
        print(printable(f"{spec.path}: text in {listed} (change it with --column)"), file=sys.stderr)
