"""A host program that calls this package, and lists the state of its process that the calls changed.

`python -m tests.host_state CALL FOLDER` prints the changes as JSON: name → value before and after. The host has set
most values to others than their defaults, because a call that resets a default would change nothing visible.
"""

import contextlib
import csv
import gc
import json
import locale
import logging
import multiprocessing
import os
import random
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable
from decimal import getcontext
from pathlib import Path
from typing import Any

State = dict[str, Any]
TEXTS = ["A dog runs.", "A dog is running.", "Prices fell in May.", "It rained all day."]
# Few sentences, steps and sets: the calls and their stages count, not their results.
SHORT: dict[str, Any] = {
    "training": {"max_steps": 2, "eval_every": 2},
    "ingest": {"corpus": {"limit": 120}},
    "evaluation": {"sets": ["embedded:stsb/test"]},
}


def python_state() -> State:
    root = logging.getLogger()
    return {
        "gc": (gc.isenabled(), gc.get_threshold(), gc.get_freeze_count(), gc.get_debug(), len(gc.callbacks)),
        "environment": dict(os.environ),
        "folder": str(Path.cwd()),
        "signals": {s.name: str(signal.getsignal(s)) for s in signal.valid_signals() if isinstance(s, signal.Signals)},
        "timer": signal.getitimer(signal.ITIMER_REAL),
        "warnings": [str(entry) for entry in warnings.filters] + [str(warnings.showwarning)],
        "recursion": (sys.getrecursionlimit(), sys.getswitchinterval()),
        "hooks": [str(x) for x in (sys.excepthook, sys.unraisablehook, sys.displayhook, threading.excepthook)],
        "streams": [id(stream) for stream in (sys.stdin, sys.stdout, sys.stderr)],
        "path": list(sys.path),
        "logging": (logging.root.manager.disable, root.level, [str(handler) for handler in root.handlers]),
        "log records": (str(logging.getLogRecordFactory()), str(logging.getLoggerClass()), logging.raiseExceptions),
        "csv": csv.field_size_limit(),
        "locale": locale.setlocale(locale.LC_ALL),
        "processes": multiprocessing.get_start_method(allow_none=True),
        "random": hash(random.getstate()),
        "decimal": str(getcontext()),
        "temporary folder": tempfile.tempdir,
        "socket": socket.getdefaulttimeout(),
    }


def loggers_state() -> State:
    existing = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    return {
        f"logger {logger.name}": (logger.level, logger.propagate, logger.disabled, *map(str, logger.handlers))
        for logger in existing
    }


def library_state() -> State:
    import datasets
    import huggingface_hub.utils
    import matplotlib
    import nltk.data
    import numpy as np
    import polars as pl
    import torch
    import transformers

    backends: Any = torch.backends
    return {
        "torch threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch defaults": (str(torch.get_default_dtype()), str(torch.get_default_device())),
        "torch modes": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "torch autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "torch deterministic": (torch.are_deterministic_algorithms_enabled(), backends.cudnn.benchmark),
        "torch precision": [
            torch.get_float32_matmul_precision(),
            *(getattr(x.fp32_precision, "value", x.fp32_precision) for x in fp32_switches()),
        ],
        "torch attention": [
            getattr(backends.cuda, f"{kind}_sdp_enabled")() for kind in ("cudnn", "flash", "mem_efficient", "math")
        ],
        "torch sharing": torch.multiprocessing.get_sharing_strategy(),
        "torch random": hash(tuple(torch.get_rng_state().tolist())),
        "numpy random": str(np.random.get_state()),  # noqa: NPY002
        "numpy errors": np.geterr(),
        "numpy print": str(np.get_printoptions()),
        "transformers": (
            transformers.utils.logging.get_verbosity(),
            transformers.utils.logging.is_progress_bar_enabled(),
        ),
        "transformers hook": str(transformers.utils.logging._tqdm_hook),
        "hub": (
            huggingface_hub.utils.are_progress_bars_disabled(),
            huggingface_hub.utils.are_progress_bars_disabled("host.own"),
            huggingface_hub.utils.logging.get_verbosity(),
        ),
        "datasets": (
            datasets.are_progress_bars_disabled(),
            datasets.logging.get_verbosity(),
            datasets.is_caching_enabled(),
        ),
        "nltk": list(nltk.data.path),
        "matplotlib": (matplotlib.get_backend(auto_select=False), str(matplotlib.rcParams.copy())),
        "polars": pl.Config.save(),
    }


def fp32_switches() -> list[Any]:
    """Return torch's switches of TF32."""
    import torch

    backends: Any = torch.backends
    return [backends, backends.cuda.matmul, backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn]


def difference(before: Any, after: Any) -> Any:
    """Return what was removed and added, by the keys of mappings and the items of lists."""
    if isinstance(before, dict):
        keys = [key for key in before | after if before.get(key) != after.get(key)]
        return {key: [str(before.get(key)), str(after.get(key))] for key in keys}
    if isinstance(before, list):
        removed, added = [x for x in before if x not in after], [x for x in after if x not in before]
        return {"removed": str(removed)[:500], "added": str(added)[:500]}
    return [str(before), str(after)]


def set_up_host() -> None:
    """Change settings of Python away from their defaults."""
    gc.set_threshold(701, 11, 12)
    csv.field_size_limit(200_000)
    logging.disable(logging.DEBUG)
    logging.getLogger().setLevel(logging.ERROR)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.signal(signal.SIGUSR1, lambda *_: None)
    warnings.filterwarnings("always", "a warning of the host")
    random.seed(5)
    os.environ.pop("GOMP_SPINCOUNT", None)
    os.environ.pop("OMP_WAIT_POLICY", None)


def set_up_libraries() -> None:
    """Import the libraries, whose imports change state themselves, and change their settings away from the defaults."""
    import datasets
    import huggingface_hub.utils
    import nltk.corpus.reader
    import numpy as np
    import polars as pl
    import prefect.main
    import sentence_transformers
    import torch
    import transformers

    assert prefect.main
    assert nltk.corpus.reader
    assert pl
    assert sentence_transformers  # imports transformers' models, torch's compiler and scikit-learn
    torch.set_num_threads(3)
    torch.set_float32_matmul_precision("high")
    torch.manual_seed(5)
    np.random.seed(5)  # noqa: NPY002
    transformers.utils.logging.set_verbosity_info()
    huggingface_hub.utils.enable_progress_bars()
    huggingface_hub.utils.disable_progress_bars("host.own")
    datasets.enable_progress_bars()
    datasets.logging.set_verbosity_info()


def import_only(_: Path) -> None:
    import bsl
    from bsl.storage.errors import ArtifactMissingError

    with contextlib.suppress(ArtifactMissingError):
        bsl.SentenceEncoder.load("checkpoint/none")
    for name in bsl.__all__:
        getattr(bsl, name)


def encode(_: Path) -> None:
    from bsl import SentenceEncoder

    encoder = SentenceEncoder.load("embedded:mini-sentence")
    encoder.encode(TEXTS)
    encoder.similarity(TEXTS[:1], TEXTS)
    threads = [threading.Thread(target=_load_and_encode) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _load_and_encode() -> None:
    from bsl import SentenceEncoder

    for _ in range(3):
        SentenceEncoder.load("embedded:bert-mini", pooling="mean").encode(TEXTS)


def evaluate(_: Path) -> None:
    import bsl

    bsl.evaluate("embedded:mini-sentence", ["embedded:stsb/test"])
    bsl.evaluate(lambda texts: [[len(text), 1.0] for text in texts], ["embedded:stsb/test"], name="lengths")


def run(folder: Path) -> None:
    import bsl

    store, texts = str(folder / "store"), folder / "texts.csv"
    lines = [f'{number},"The {number}th dog runs, and it rains."' for number in range(200)]
    texts.write_text("\n".join(["id,text", *lines]), encoding="utf-8")
    own = SHORT | {"ingest": {"sources": [{"path": str(texts), "columns": ["text"]}]}}
    first = bsl.run("tiny", own, store=store, threads=1)
    second = bsl.run("tiny", SHORT, store=store, threads=1)
    second.encoder.encode(TEXTS)
    assert bsl.compare([first, second], store=store).page.exists()
    assert bsl.Store(store).refs()


CALLS: dict[str, Callable[[Path], None]] = {call.__name__: call for call in (import_only, encode, evaluate, run)}


def main(name: str, folder: Path) -> None:
    """Print what a call changed. The call `bare` imports the package where no library is imported yet."""
    set_up_host()
    if name == "bare":
        before = python_state()
        import_only(folder)
        after = python_state()
    else:
        set_up_libraries()
        before = python_state() | library_state() | loggers_state()
        CALLS[name](folder)
        after = python_state() | library_state() | loggers_state()
    changes = {key: difference(before[key], after[key]) for key in before if before[key] != after[key]}
    sys.stdout.write(json.dumps(changes))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
