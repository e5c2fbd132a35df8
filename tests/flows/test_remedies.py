"""Every remedy in a message is executed: a wrong call fails, and the call that its message names succeeds."""

import json
import random
import re
import shlex
import subprocess
import sys
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
MEANT = r"[Dd]id you mean ['`\"]?([\w:.-]+)"
pytestmark = pytest.mark.slow  # two processes of 25 calls


class Case(NamedTuple):
    """A call that fails, and its remedy."""

    call: str
    old: str = ""
    new: str = ""
    named: str = MEANT
    shell: bool = False


RUN = "run tiny --dry-run --set"
BIG, LATIN, WIDE = f"embed {ENCODER} big.csv", f"embed {ENCODER} latin.csv", f"embed {ENCODER} wide.txt"
CASES = {
    "command": Case("recipe", "recipe"),
    "option": Case("recipes --jsn", "--jsn"),
    "recipe": Case("run tinny --dry-run", "tinny"),
    "field": Case(f"{RUN} training.epoch=1", "training.epoch"),
    "field of another name": Case(f"{RUN} training.learning_rate=1e-4", "training.learning_rate"),
    "recipe like none": Case("recipes nosuch", "nosuch", "tiny", "`bsl recipes` lists all"),
    "encoder": Case("embed embedded:mini-sentnce big.csv m.parquet --column text", "embedded:mini-sentnce"),
    "encoder of the Hub, offline": Case(
        "embed all-MiniLM-L6-v3 big.csv o.parquet --column text",
        "all-MiniLM-L6-v3", ENCODER, f"one of the package, such as {ENCODER}",
    ),
    "prefix of an encoder": Case(
        "embed embeded:mini-sentence big.csv e.parquet --column text", "embeded:mini-sentence"
    ),
    "file": Case(f"embed {ENCODER} bgi.csv f.parquet --column text", "bgi.csv"),
    "column": Case(f"{BIG} c.parquet --column txt", "txt"),
    "Latin-1 by iconv": Case(f"{LATIN} i.parquet --column text", "latin.csv", "latin.utf8.csv", shell=True),
    "Latin-1 by its name": Case(f"{LATIN} l.parquet --column text", "", "--encoding cp1252", "--encoding.*cp1252"),
    "UTF-16 by iconv": Case(f"{WIDE} u.parquet", "wide.txt", "wide.utf8.txt", shell=True),
    "UTF-16 by its name": Case(f"{WIDE} w.parquet", "", "--encoding utf-16-le", "--encoding.*utf-16-le"),
    "commas in a TSV": Case(
        f"embed {ENCODER} commas.tsv t.parquet --column text", "commas.tsv", "commas.csv", shell=True
    ),
    "a JSON array": Case(
        f"embed {ENCODER} array.json a.parquet --column text", "array.json", "array.jsonl", shell=True
    ),
    "a JSON array named as lines": Case(
        f"embed {ENCODER} lines.jsonl n.parquet --column text", "lines.jsonl", "lines.lines.jsonl", shell=True
    ),
    "a target without a format": Case(f"{BIG} v.npy --column text", "v.npy", "v.parquet", "such as vectors.parquet"),
    "an existing target": Case(f"{BIG} there.parquet --column text", "there.parquet", "new.parquet", "Name a new file"),
    "no results": Case(f"pairs {ENCODER} big.csv --column text --top 0", "0", "1", "Must be >= 1"),
    "no cosine": Case(f"pairs {ENCODER} big.csv --column text --above 2", "2", "0.9", "such as 0.9"),
    "a form without its option": Case(f"export {ENCODER} x1 --sentences 9", "--sentences 9", named="remove"),
    "public without a repository": Case(f"export {ENCODER} x2 --public", "--public", named="remove --public"),
    "no value": Case(f"{RUN} training.lr", "training.lr", "training.lr=1e-4", "FIELD=VALUE"),
}  # fmt: skip


@pytest.fixture(scope="module")
def ended(tmp_path_factory):
    """The end of each wrong call, and of the call with the remedy: exit code and output."""
    folder = tmp_path_factory.mktemp("remedies")
    write_files(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setenv("HF_HUB_OFFLINE", "1")
        patch.setenv("BSL_STORE", str(folder / "store"))
        wrong = calls([case.call.split() for case in CASES.values()])
        right = [remedied(case, message).split() for case, (_, message) in zip(CASES.values(), wrong, strict=True)]
        return dict(zip(CASES, zip(wrong, right, calls(right), strict=True), strict=True))


def remedied(case, message):
    """Return the call with the remedy; without one in the message, the wrong call, so that only its test fails."""
    new = case.new
    if case.shell:
        commands = [found for found in re.findall(r"`([^`]+)`", message) if new in found]
        if not commands or subprocess.run(commands[0], shell=True).returncode:
            return case.call
    elif (found := re.search(case.named, message)) is None:
        return case.call
    elif found.re.groups:
        new = found[1]
    return case.call.replace(case.old, new) if case.old else f"{case.call} {new}"


def write_files(folder):
    draw = random.Random(0)
    texts = [" ".join(draw.choices(WORDS, k=9)) for _ in range(200)]
    rows = [f"{number};{text};a{number % 2}" for number, text in enumerate(texts)]
    files = {
        "big.csv": ["id;text;label", *rows],
        "commas.tsv": ["id,text,label", *(row.replace(";", ",") for row in rows)],
        "there.parquet": [],
    }
    for name, lines in files.items():
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    for name in ("array.json", "lines.jsonl"):
        (folder / name).write_text(json.dumps([{"text": text} for text in texts]))
    (folder / "latin.csv").write_bytes("\n".join(["id;text;label", *(f"{row}é" for row in rows)]).encode("latin-1"))
    (folder / "wide.txt").write_bytes("\n".join(texts).encode("utf-16-le"))


def calls(commands):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(commands)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def converts(encoding):
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
