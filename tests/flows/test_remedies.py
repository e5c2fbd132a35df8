"""Every remedy in a message is executed: a wrong call fails, and the call that its message names succeeds."""

import json
import random
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

PROGRAM = """
import contextlib, io, json, sys
from bsl.flows.cli.main import main
ended = []
for call in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out, contextlib.redirect_stderr(io.StringIO()) as err:
        code = main(call)
    ended.append([code, out.getvalue() + err.getvalue()])
print(json.dumps(ended))
"""
ENCODER = "embedded:mini-sentence"
WORDS = ["train", "ticket", "delay", "luggage", "refund", "seat", "window", "staff", "clean", "late", "friendly"]
pytestmark = pytest.mark.slow  # two processes of 25 calls
Remedy = Callable[[list[str], str], list[str]]


def meant(wrong: str) -> Remedy:
    """Replace a misspelt name by the one that the message suggests."""

    def remedy(words: list[str], message: str) -> list[str]:
        suggested = re.search(r"[Dd]id you mean ['`]?([\w:.-]+)", message)
        assert suggested, message
        return [word.replace(wrong, suggested[1]) for word in words]

    return remedy


def with_words(*more: str) -> Remedy:
    """Append words that the message names."""

    def remedy(words: list[str], message: str) -> list[str]:
        assert all(word in message for word in more), message
        return [*words, *more]

    return remedy


def replaced(old: str, new: str, named: str) -> Remedy:
    """Replace a word; the message must name the new one, or the action."""

    def remedy(words: list[str], message: str) -> list[str]:
        assert named in message, message
        assert old in words
        return [new if word == old else word for word in words]

    return remedy


def without(*old: str, named: str) -> Remedy:
    """Remove words; the message must say so."""

    def remedy(words: list[str], message: str) -> list[str]:
        assert named in message, message
        return [word for word in words if word not in old]

    return remedy


def shell(old: str, new: str) -> Remedy:
    """Run the last command in backticks of the message that writes or moves a file, then use the new file."""

    def remedy(words: list[str], message: str) -> list[str]:
        command = next(found for found in re.findall(r"`([^`]+)`", message) if new in shlex.split(found))
        subprocess.run(command, shell=True, check=True)
        return [new if word == old else word for word in words]

    return remedy


def edited(path: str, old: str, new: str, named: str) -> Remedy:
    """Correct a file as the message asks."""

    def remedy(words: list[str], message: str) -> list[str]:
        assert named in message, message
        content = Path(path).read_text(encoding="utf-8")
        assert old in content
        Path(path).write_text(content.replace(old, new), encoding="utf-8")
        return words

    return remedy


class Case(NamedTuple):
    """A call that fails, and what its message names as the remedy."""

    words: list[str]
    remedy: Remedy


def embed(path: str, *options: str, target: str = "") -> list[str]:
    return ["embed", ENCODER, path, f"{target or path}.parquet", *options]


PAIRS = ["pairs", ENCODER, "big.csv", "--column", "text"]
CASES = {
    "command": Case(["recipe"], meant("recipe")),
    "option": Case(["recipes", "--jsn"], meant("--jsn")),
    "recipe": Case(["run", "tinny", "--dry-run"], meant("tinny")),
    "field": Case(["run", "tiny", "--dry-run", "--set", "training.epoch=1"], meant("epoch")),
    "field of another name": Case(
        ["run", "tiny", "--dry-run", "--set", "training.learning_rate=1e-4"], meant("learning_rate")
    ),
    "recipe like none": Case(["recipes", "nosuch"], replaced("nosuch", "tiny", "`bsl recipes` lists all")),
    "encoder": Case(
        ["embed", "embedded:mini-sentnce", "big.csv", "m.parquet", "--column", "text"], meant("embedded:mini-sentnce")
    ),
    "encoder of the Hub, offline": Case(
        ["embed", "all-MiniLM-L6-v3", "big.csv", "o.parquet", "--column", "text"],
        replaced("all-MiniLM-L6-v3", ENCODER, f"one of the package, such as {ENCODER}"),
    ),
    "prefix of an encoder": Case(
        ["embed", "embeded:mini-sentence", "big.csv", "e.parquet", "--column", "text"], meant("embeded:mini-sentence")
    ),
    "file": Case(["embed", ENCODER, "bgi.csv", "f.parquet", "--column", "text"], meant("bgi.csv")),
    "column": Case(embed("big.csv", "--column", "txt"), meant("txt")),
    "Latin-1 by iconv": Case(embed("latin.csv", "--column", "text"), shell("latin.csv", "latin.utf8.csv")),
    "Latin-1 by its name": Case(
        embed("latin.csv", "--column", "text", target="named"), with_words("--encoding", "cp1252")
    ),
    "UTF-16 by iconv": Case(embed("wide.txt"), shell("wide.txt", "wide.utf8.txt")),
    "UTF-16 by its name": Case(embed("wide.txt", target="wide"), with_words("--encoding", "utf-16-le")),
    "commas in a TSV": Case(embed("commas.tsv", "--column", "text"), shell("commas.tsv", "commas.csv")),
    "an open quote": Case(
        embed("quote.csv", "--column", "text"), edited("quote.csv", '"', "", "line 52: it takes in the records up to")
    ),
    "a target without a format": Case(
        ["embed", ENCODER, "big.csv", "v.npy", "--column", "text"],
        replaced("v.npy", "v.parquet", "such as vectors.parquet"),
    ),
    "an existing target": Case(
        ["embed", ENCODER, "big.csv", "there.parquet", "--column", "text"],
        replaced("there.parquet", "new.parquet", "Name a new file"),
    ),
    "no query": Case(
        ["search", ENCODER, "big.csv", "--column", "text"], lambda words, _: [*words[:3], "late", *words[3:]]
    ),
    "no results": Case([*PAIRS, "--top", "0"], replaced("0", "1", "expected 1 or more")),
    "no cosine": Case([*PAIRS, "--above", "2"], replaced("2", "0.9", "such as 0.9")),
    "a form without its option": Case(
        ["export", ENCODER, "x1", "--sentences", "9"], without("--sentences", "9", named="remove")
    ),
    "public without a repository": Case(
        ["export", ENCODER, "x2", "--public"], without("--public", named="remove --public")
    ),
    "no value": Case(
        ["run", "tiny", "--dry-run", "--set", "training.lr"], replaced("training.lr", "training.lr=1e-4", "FIELD=VALUE")
    ),
}


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The end of each wrong call, and of the call with the remedy: exit code and output."""
    folder = tmp_path_factory.mktemp("remedies")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("BSL_STORE", str(folder / "store"))
        wrong = calls([case.words for case in CASES.values()])
        right = [remedied(case, message) for case, (_, message) in zip(CASES.values(), wrong, strict=True)]
        return dict(zip(CASES, zip(wrong, right, calls(right), strict=True), strict=True))


def remedied(case: Case, message: str) -> list[str]:
    """Return the call with the remedy; without one in the message, the wrong call, so that only its test fails."""
    try:
        return case.remedy(case.words, message)
    except (AssertionError, StopIteration, subprocess.CalledProcessError):
        return case.words


def write_files(folder) -> None:
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=9)) for _ in range(200)]
    rows = [f"{number};{text};a{number % 2}" for number, text in enumerate(texts)]
    files = {
        "big.csv": ["id;text;label", *rows],
        "quote.csv": ["id;text;label", *(row.replace(";", ';"', 1) if row.startswith("50;") else row for row in rows)],
        "commas.tsv": ["id,text,label", *(row.replace(";", ",") for row in rows)],
        "there.parquet": [],
    }
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "latin.csv").write_bytes("\n".join(["id;text;label", *(f"{row}é" for row in rows)]).encode("latin-1"))
    (folder / "wide.txt").write_bytes("\n".join(texts).encode("utf-16-le"))


def calls(commands: list[list[str]]) -> list[tuple[int, str]]:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def converts(encoding: str) -> bool:
    """Whether iconv has the table of an encoding: small images lack many."""
    done = subprocess.run(["iconv", "-f", encoding, "-t", "utf-8"], input=b"\n\0", capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.parametrize("name", CASES)
def test_call_with_the_remedy_of_its_message_works(ended, name):
    if "iconv" in name and not converts("cp1252" if "Latin" in name else "utf-16-le"):
        pytest.skip("iconv lacks its table")
    (code, message), words, (ending, output) = ended[name]
    assert code in {1, 2}, message
    assert ending == 0, f"{message} → {shlex.join(words)}: {output}"
