"""Show each fault of a Hub as a user sees it: the last line of `bsl evaluate` with an encoder and a set of the Hub."""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest
import torch

from bsl.flows.cli.main import main
from bsl.storage.hub import repositories
from bsl.storage.hub.faults import SILENT
from bsl.tasks.corpus.evaluation_sets import rows_of
from tests.hub.client import use
from tests.hub.repositories import model_files, publish_sts
from tests.hub.server import StandInHub

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

MODEL: Final = "someone/encoder"
SET: Final = "sts17-en-de/test"


@dataclass(frozen=True)
class Case:
    """A Hub that is broken in one way.

    Attributes:
        what: Description for the table.
        fault: Fault of every request whose line matches `where`.
        where: Pattern of request lines.
        files: Function that changes the model's files.
        options: Options of `bsl evaluate`.
        gated: Whether the model's terms must be accepted first.
        token: Value of HF_TOKEN.
        dead: Whether the Hub's port is closed.
    """

    what: str
    fault: Mapping[str, Any] = field(default_factory=dict)
    where: str = "encoder"
    files: Callable[[dict[str, bytes]], object] | None = None
    options: tuple[str, ...] = ()
    gated: bool = False
    token: str = ""
    dead: bool = False


class Malice:
    """Object that prints when it is unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return print, ("run",)


def _pickled(files: dict[str, bytes], content: object) -> None:
    buffer = io.BytesIO()
    torch.save(content, buffer)
    files["pytorch_model.bin"] = buffer.getvalue()
    del files["model.safetensors"]


def _config(files: dict[str, bytes], **changes: object) -> None:
    files["config.json"] = json.dumps(json.loads(files["config.json"]) | changes).encode()


def _modules(files: dict[str, bytes]) -> None:
    listed = [{"idx": 0, "name": "0", "path": "", "type": "custom_st.Transformer"}]
    files["modules.json"] = json.dumps(listed).encode()


CASES: Final = (
    Case("401, no such repository or a private one", {"status": 401, "headers": {"X-Error-Code": "RepoNotFound"}}),
    Case("401, gated", gated=True),
    Case("403, gated, a token without access", gated=True, token="hf_" + "x" * 34),
    Case("404, no such repository", {"status": 404, "headers": {"X-Error-Code": "RepoNotFound"}}),
    Case("404, a listed file is gone", {"status": 404, "headers": {"X-Error-Code": "EntryNotFound"}}, "tokenizer.json"),
    Case("404, a bad commit", options=("--revision", "f" * 40)),
    Case("418, anything else", {"status": 418}),
    Case("429 with Retry-After: 90", {"status": 429, "headers": {"Retry-After": "90"}}),
    Case("429 without", {"status": 429}),
    Case("500, of a model", {"status": 500}),
    Case("503, of a data set", {"status": 503}, "sts17"),
    Case("slow: no byte within the time limit", {"seconds": 3.0}),
    Case("cut off after 20 bytes", {"cut": 20}, "cdn"),
    Case("corrupt: other bytes than listed", {"corrupt": True}, "cdn"),
    Case("a redirect loop", {"status": 302, "headers": {"Location": "/cdn/loop"}}, "cdn"),
    Case("a dead endpoint", dead=True),
    Case("no config.json", files=lambda files: files.pop("config.json")),
    Case(
        "no weights, and an ONNX graph that is none",
        files=lambda files: [files.pop(name) for name in ("model.safetensors", "pytorch_model.bin")],
    ),
    Case("a pickle alone", files=lambda files: files.pop("model.safetensors")),
    Case("a pickle that runs code", files=lambda files: _pickled(files, {"weights": Malice()})),
    Case(
        "remote code: an architecture",
        files=lambda files: _config(files, model_type="custom_bert", auto_map={"AutoModel": "modeling.CustomBert"}),
    ),
    Case("remote code: a module", files=_modules),
)  # fmt: skip


def lines(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each case with the last line of its run."""
    for number, case in enumerate(CASES):
        with pytest.MonkeyPatch.context() as patch:
            yield case.what, _line(case, folder, folder / f"cache-{number}", patch)


def _line(case: Case, folder: Path, cache: Path, patch: pytest.MonkeyPatch) -> str:
    hub = StandInHub()
    rows_of.cache_clear()  # an earlier case has read the set
    use(hub, cache, patch)
    patch.setattr(repositories, "SECONDS_TO_ANSWER", 1.0)
    patch.setattr("huggingface_hub.constants.HF_HUB_DOWNLOAD_TIMEOUT", 1)
    patch.setenv("BSL_CACHE", str(cache))
    if case.token:
        patch.setenv("HF_TOKEN", case.token)
    files = dict(model_files("google-bert/bert-base-uncased"))
    if case.files is not None:
        case.files(files)
    hub.add("models", MODEL, files, gated=case.gated)
    publish_sts(hub, [SET.partition("/")[0]])
    if case.fault:
        hub.fail(case.where, **case.fault)
    if case.dead:
        hub.stop()
    printed = io.StringIO()
    with redirect_stdout(printed), redirect_stderr(printed):
        code = main(["evaluate", MODEL, "--suite", SET, "--store", str(folder / "store"), *case.options])
    hub.stop()
    told = re.findall(r"^bsl: (.*)", printed.getvalue(), re.MULTILINE)
    return _as_documented(told[-1] if told else f"exit code {code}", cache) if code else "read and scored"


def _as_documented(line: str, cache: Path) -> str:
    """Replace the parts that differ between runs by ‹…›, as in docs/hub.md."""
    line = re.sub(r"http://(127\.0\.0\.1|localhost):\d+", "http://‹endpoint›", line.replace(str(cache), "‹cache›"))
    line = re.sub(rf"({MODEL}@)[0-9a-f]{{12}}(?![0-9a-f])|(/snapshots/)[0-9a-f]{{40}}", r"\1\2‹commit›", line)
    return line.replace(SILENT.partition(", ")[2], "… \\*")
