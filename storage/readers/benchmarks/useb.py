"""Read USEB's evaluation archive (Wang et al., 2021): AskUbuntu, CQADupStack, TwitterPara and SciDocs.

Rankings become one table of queries and their documents; paraphrases become a table of labelled pairs.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

import polars as pl

from storage.errors import SourceError
from storage.readers.blocks import read_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

RANKING: Final = pl.Schema(
    {  # type: ignore[arg-type]  # polars types nested ones as values
        "subset": pl.String,
        "query": pl.String,  # null for a document ranked for all queries of its subset
        "document": pl.String,  # null in the row of a query
        "text": pl.String,
        "relevant": pl.List(pl.String),  # for a query; null for a document
    }
)
"""Queries with their relevant documents; documents in the order that breaks ties."""
PARAPHRASES: Final = pl.Schema({"subset": pl.String, "sentence1": pl.String, "sentence2": pl.String, "votes": pl.Int64})
"""Pairs of tweets, with the number of judges who call them paraphrases."""
FORUM_SPLITS: Final = {"dev": "valid", "test": "test"}
NO_SUBSET: Final = "all"
_VOTES: Final = re.compile(r"\((\d{1,9}), ?\d+\)")

_Row = tuple[str, str | None, str | None, str, list[str] | None]


def read_askubuntu(files: Sequence[str], split: str) -> pl.DataFrame:  # noqa: ARG001 - the file is the split's
    """Return `RANKING` of text_tokenized.txt and dev.txt or test.txt: titles, with candidates in BM25 order.

    Queries without a relevant candidate are excluded, as in USEB.

    Raises:
        SourceError: a line has another format, or refers to a question without text.
    """
    pool, listing = files
    titles = {fields[0].strip(): fields[1].strip() for _, fields in _fields(pool, 3)}
    rows: list[_Row] = []
    for number, (query, similar, candidates, scores) in _fields(listing, 4):
        relevant, names = similar.split(), candidates.split()
        if not relevant:
            continue
        try:
            ranked = sorted(zip(names, map(float, scores.split()), strict=True), key=lambda pair: -pair[1])
            rows.append((NO_SUBSET, query, None, titles[query], relevant))
            rows += [(NO_SUBSET, query, name, titles[name], None) for name, _ in ranked]
        except KeyError as error:
            raise _odd(listing, f"line {number}", f"question {error} has no text") from error
        except ValueError as error:
            raise _odd(listing, f"line {number}", f"candidates and scores do not match ({error})") from error
    return _ranking(listing, rows)


def read_cqadupstack(files: Sequence[str], split: str) -> pl.DataFrame:
    """Return `RANKING` of corpus.json and retrieval_split.json: each forum's queries, and its other posts to rank.

    Raises:
        SourceError: a file is not JSON of this structure, or a query has no text.
    """
    corpus, answers = _json(files[0]), _json(files[1])
    rows: list[_Row] = []
    try:
        for forum, posts in corpus.items():
            queries = answers[FORUM_SPLITS[split]][forum]
            rows += [(forum, query, None, posts[query].strip(), list(found)) for query, found in queries.items()]
            rows += [(forum, None, name, text.strip(), None) for name, text in posts.items() if name not in queries]
    except (KeyError, AttributeError, TypeError) as error:
        raise _odd(files[1], f"split {FORUM_SPLITS[split]}", _structure(error)) from error
    return _ranking(files[1], rows)


def read_scidocs(files: Sequence[str], split: str) -> pl.DataFrame:
    """Return `RANKING` of data.json, by titles; papers without a title are not ranked but count as relevant.

    Raises:
        SourceError: the file is not JSON of this structure, or a judgement is neither 0 nor 1.
    """
    data = _json(files[0])
    rows: list[_Row] = []
    try:
        titles = {name: (paper["title"] or "").strip() for name, paper in data["corpus"].items()}
        for task, queries in data[FORUM_SPLITS[split]].items():
            for query, judged in queries.items():
                if not titles.get(query):
                    continue
                if odd := set(judged.values()) - {0, 1}:
                    raise _odd(files[0], f"{task}, query {query}", f"judgements {odd}, expected 0 and 1")
                rows.append((task, query, None, titles[query], [name for name, good in judged.items() if good]))
                # trec_eval, the task's scorer, breaks ties by name in descending order.
                named = sorted((name for name in judged if titles.get(name)), reverse=True)
                rows += [(task, query, name, titles[name], None) for name in named]
    except (KeyError, AttributeError, TypeError) as error:
        raise _odd(files[0], f"split {FORUM_SPLITS[split]}", _structure(error)) from error
    return _ranking(files[0], rows)


def read_twitterpara(files: Sequence[str], split: str) -> pl.DataFrame:  # noqa: ARG001 - there is one
    """Return `PARAPHRASES` of Twitter_URL_Corpus_test.txt (subset `twitterurl`) and test.data (`pit`).

    Raises:
        SourceError: a line has another format.
    """
    rows = []
    for subset, path, texts, column, votes in (
        ("twitterurl", files[0], slice(0, 2), 2, _VOTES),
        ("pit", files[1], slice(2, 4), 4, re.compile(r"(\d{1,9})")),
    ):
        for number, fields in _fields(path, column + 1, more=True):
            found = votes.fullmatch(fields[column])
            if found is None:
                raise _odd(path, f"line {number}", f"{fields[column]!r}, expected the judges' votes")
            rows.append((subset, *(text.strip() for text in fields[texts]), int(found[1])))
    return pl.DataFrame(rows, schema=PARAPHRASES, orient="row")


READERS: Final[Mapping[str, Callable[[Sequence[str], str], pl.DataFrame]]] = {
    "askubuntu": read_askubuntu,
    "cqadupstack": read_cqadupstack,
    "twitterpara": read_twitterpara,
    "scidocs": read_scidocs,
}
"""Dataset → function that turns its files, in the declared order, into the table of a split."""


def read_texts(path: str) -> pl.DataFrame:
    """Return the texts of a file, the column `text`; files of judgements have none."""
    try:
        texts = list(dict.fromkeys(_texts(path, path.rpartition("/")[2])))
    except (KeyError, AttributeError, TypeError) as error:
        raise _odd(path, "", _structure(error)) from error
    return pl.DataFrame({"text": texts}, schema={"text": pl.String})


def _texts(path: str, name: str) -> Iterator[str]:
    if name == "text_tokenized.txt":
        yield from (fields[1].strip() for _, fields in _fields(path, 3))
    elif name == "corpus.json":
        yield from (text.strip() for posts in _json(path).values() for text in posts.values())
    elif name == "data.json":
        yield from (paper["title"].strip() for paper in _json(path)["corpus"].values() if paper["title"])
    elif name in {"Twitter_URL_Corpus_test.txt", "test.data"}:
        first = 2 if name == "test.data" else 0
        yield from (text.strip() for _, fields in _fields(path, 3, more=True) for text in fields[first : first + 2])


def _fields(path: str, count: int, *, more: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Yield number and tab-separated fields of each line; exactly `count` fields, or at least `count` with `more`."""
    for number, line in enumerate(read_text(path).split("\n"), 1):
        fields = line.rstrip("\r").split("\t")
        if fields == [""]:
            continue
        if len(fields) < count or (len(fields) > count and not more):
            raise _odd(path, f"line {number}", f"{len(fields)} fields, expected {count}{' or more' if more else ''}")
        yield number, fields


def _json(path: str) -> Any:  # noqa: ANN401 - any JSON value
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise _odd(path, "", f"not JSON ({error})") from error


def _structure(error: Exception) -> str:
    return f"key {error} is missing" if isinstance(error, KeyError) else f"unexpected structure ({error})"


def _ranking(path: str, rows: list[_Row]) -> pl.DataFrame:
    if not any(relevant for *_, relevant in rows):
        raise _odd(path, "", "no query has a relevant document")
    try:
        table = pl.DataFrame(rows, schema=RANKING, orient="row")
    except TypeError as error:
        raise _odd(path, "", "a text or a name is not a string") from error
    twice = table.filter(pl.col("document").is_null()).filter(pl.struct("subset", "query").is_duplicated())
    if twice.height:
        raise _odd(path, f"query {twice['query'][0]}", "it appears twice")
    return table


def _odd(path: str, place: str, found: str) -> SourceError:
    where = f"{path}, {place}" if place else path
    return SourceError(f"{where}: {found}. Unpack the file from USEB's data-eval.zip again.")
