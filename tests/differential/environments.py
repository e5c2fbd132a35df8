"""Small inputs of the commands, and the environments in which machines start them."""

import hashlib
import io
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import polars as pl
import pytest

from bsl.flows.cli.main import main
from tests.confined import confined
from tests.tiny_encoder import write_tiny

BSL: Final = Path(sys.executable).with_name("bsl")
WORDS: Final = "cat dog man woman child bird horse house plays sits runs sees near under over the a red small old café"
_TRAINING: Final = ("training.max_steps=2", "training.batch_size=8")
_SETTINGS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": (
        *_TRAINING,
        "training.eval_every=1",
        "training.collapse=null",
        'ingest.sources=[{"path":"texts.csv","columns":["text"]}]',
        "ingest.corpus.limit=32",
        "encoder.model=encoder",
        "encoder.max_length=24",
        'evaluation.sets=["embedded:stsb/test"]',
        "evaluation.bootstrap.resamples=100",
    ),
    "adapt": (*_TRAINING, "proof.shares=[0.5,1.0]", "proof.questions=30", "evaluation.bootstrap.resamples=100"),
    "evaluate": ("bootstrap.resamples=100",),
    "search": (),
}
_WORDS: Final[Mapping[str, tuple[str, ...]]] = {
    "search": ("encoder", "texts.csv", "a red café", "--top", "3"),
    "evaluate": ("encoder", "--suite", "labels:labels.csv"),
    "run": ("tiny",),
    "adapt": ("texts.csv", "--encoder", "encoder", "--translators", "", "--suite", "labels:labels.csv"),
}
COMMANDS: Final = tuple(_WORDS)


def words_of(command):
    changes = [word for setting in _SETTINGS[command] for word in ("--set", setting)]
    return [str(BSL), command, *_WORDS[command], *changes, "--json"]


def write_inputs(folder):
    dice, words = random.Random(5), WORDS.split()
    texts = [" ".join(dice.choice(words) for _ in range(7)).capitalize() + f" {number}." for number in range(160)]
    labels = {"sentence1": texts[:40], "sentence2": texts[40:80], "score": [dice.random() for _ in range(40)]}
    pl.DataFrame({"text": texts}).write_csv(folder / "texts.csv")
    pl.DataFrame(labels).write_csv(folder / "labels.csv")
    write_tiny(folder / "encoder")


@dataclass(frozen=True)
class Environment:
    """How a machine starts a command."""

    name: str
    variables: Mapping[str, str | None] = field(default_factory=dict)
    before: str = ""
    folder: str = "work"
    closed: str = ""
    full: str = ""
    unnamed: bool = False
    cause: str = ""

    @property
    def is_confined(self):
        return bool(self.closed or self.full or self.unnamed)


_PROXY: Final = "http://127.0.0.1:9"
_ELSEWHERE: Final = {"BSL_STORE": "{base}/store", "PREFECT_HOME": "{base}/prefect"}
ENVIRONMENTS: Final = (
    Environment("proxy", dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy"), _PROXY)),
    Environment("SOCKS proxy", {"ALL_PROXY": "socks5://127.0.0.1:9"}, cause="ALL_PROXY is .*pip install"),
    Environment("proxy without a scheme", {"HTTP_PROXY": "proxy.corp:3128", "NO_PROXY": "*.corp, 10.0.0.0/8,::1/128"}),
    Environment("no HOME", {"HOME": None}),
    Environment("no HOME and no name", {"HOME": None}, unnamed=True),
    Environment("empty HOME", {"HOME": ""}),
    Environment("missing HOME", {"HOME": "/nonexistent"}, unnamed=True),
    Environment("read-only HOME", closed="home"),
    Environment("HOME on a full disk", full="home", cause=r"\(BSL_CACHE\): the disk is full"),
    Environment("read-only XDG_CACHE_HOME", {"XDG_CACHE_HOME": "{base}/xdg"}, closed="xdg"),
    Environment("read-only HF_HOME", {"HF_HOME": "{base}/hf", "HF_HUB_OFFLINE": "1"}, closed="hf"),
    Environment("read-only TMPDIR", {"TMPDIR": "{base}/tmp"}, closed="tmp"),
    Environment("TMPDIR on a full disk", {"TMPDIR": "{base}/tmp"}, full="tmp"),
    Environment("missing TMPDIR", {"TMPDIR": "/nonexistent"}),
    Environment("umask 077", before="umask 077;"),
    Environment("umask 277", before="umask 277;", unnamed=True, cause="umask [27]77: new files"),
    Environment("umask 777", before="umask 777;", unnamed=True, cause="umask [27]77: new files"),
    Environment("ASCII locale", {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}),
    Environment("unknown locale", {"LC_ALL": "xx_YY.ISO-8859-15"}),
    Environment("time zone", {"TZ": "Asia/Kathmandu"}),
    Environment("unknown time zone", {"TZ": "Nowhere/City"}),
    Environment("read-only working folder", closed="work", cause=r"(PREFECT_HOME|--store|\.bsl/store)\S*: writing"),
    Environment("read-only working folder, store elsewhere", _ELSEWHERE, closed="work"),
    Environment("store on a full disk", {**_ELSEWHERE}, full="store", cause="/store.*the disk is full"),
    Environment("database on a full disk", {**_ELSEWHERE}, full="prefect", cause=r"\(PREFECT_HOME\): the disk is full"),
    Environment("64 open files", before="ulimit -n 64;", cause="ulimit -n"),
    Environment("file-size limit", before="ulimit -f 64;", cause="ulimit -f"),
    Environment("one core", before='command -v taskset >/dev/null && set -- taskset -c 0 "$@";'),
    Environment("spaces", folder="my own  texts "),
    Environment("line feed", folder="line\nfeed"),
    Environment("200 characters", folder="long " * 40),
    Environment("marks", folder="a[1]*?#%20&;'\"$é{x}"),
    Environment("no standard input", before="exec <&-;"),
    Environment("narrow terminal", {"COLUMNS": "1", "TERM": "dumb", "NO_COLOR": "1", "FORCE_COLOR": "1"}),
)


@dataclass(frozen=True)
class Outcome:
    """Exit code, messages and result of a command."""

    code: int
    messages: str
    result: Any
    digests: Mapping[str, str]


def execute(command, environment, inputs, base):
    """Execute a command in an environment."""
    work = base / environment.folder
    for name in ("home", "tmp", "xdg", "hf", "store"):
        (base / name).mkdir()
    subprocess.run(["cp", "-r", str(inputs), str(work)], check=True)
    if (inputs / ".bsl").exists():
        subprocess.run(["cp", "-r", str(inputs / ".bsl" / "prefect"), str(base / "prefect")], check=True)
    if environment.closed:
        subprocess.run(["chmod", "-R", "a-w", str(base / environment.closed)], check=True)
    shell = ["sh", "-c", f'{environment.before} exec "$@"', "sh", *words_of(command)]
    full = base / environment.full if environment.full else None
    done = subprocess.run(
        confined(shell, full) if environment.is_confined else shell,
        cwd=work,
        env=variables_of(environment, base),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="backslashreplace",
        check=False,
        timeout=600,
    )
    store = base / "store" if "BSL_STORE" in environment.variables else work / ".bsl" / "store"
    return _outcome(done.returncode, done.stderr, done.stdout, work, store)


def execute_here(command, inputs, base):
    """Execute a command that needs no server in this process, which has the libraries: each start takes seconds."""
    work = base / "work"
    shutil.copytree(inputs, work)
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(io.StringIO()) as printed:
        patch.chdir(work)
        patch.setenv("BSL_DEVICE", "cpu")
        code = main(words_of(command)[1:])
    return _outcome(code, "", printed.getvalue(), work, work / ".bsl" / "store")


def _outcome(code, messages, printed, work, store):
    result = json.loads(printed.replace(json.dumps(str(work), ensure_ascii=False)[1:-1], "")) if printed else None
    return Outcome(code, messages, _without_places(result), digests_of(store))


def variables_of(environment, base):
    """Return the variables of an environment; of this process's, only those of the system and of Python."""
    known = {name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ}
    usual = {**known, "HOME": str(base / "home"), "OMP_NUM_THREADS": "1", "BSL_DEVICE": "cpu"}
    special = {
        name: None if value is None else value.replace("{base}", str(base))
        for name, value in environment.variables.items()
    }
    return {name: value for name, value in (usual | special).items() if value is not None}


def _without_places(result):
    """Return a result without absolute paths, which differ between cases."""
    if isinstance(result, dict):
        return {name: _without_places(value) for name, value in result.items() if name not in ("page", "encoder")}
    return [_without_places(value) for value in result] if isinstance(result, list) else result


def digests_of(store):
    kinds = ("*.parquet", "*.safetensors", "*.md")
    files = sorted(file for kind in kinds for file in store.glob(f"[a-z]*/**/{kind}"))
    return {str(file.relative_to(store)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}
