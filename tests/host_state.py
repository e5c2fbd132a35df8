"""A host program that calls this package, and lists the state of its process that the calls changed.

`python -m tests.host_state FOLDER CALL ...` makes the calls in this order in one process. It prints as JSON what each
of them changed: call → name → value before and after. The host has set most values to others than their defaults,
because a call that resets a default would change nothing visible.
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
from concurrent.futures import ThreadPoolExecutor
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
    """Return the state of Python and its standard library."""
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
    """Return level, handlers and filters of the loggers that exist."""
    existing = [logger for logger in logging.root.manager.loggerDict.values() if isinstance(logger, logging.Logger)]
    return {
        f"logger {logger.name}": (logger.level, logger.propagate, logger.disabled, *map(str, logger.handlers))
        for logger in existing
    }


def library_state() -> State:
    """Return the state of the libraries; imports them."""
    import datasets
    import huggingface_hub.utils
    import matplotlib
    import nltk.data
    import numpy as np
    import polars as pl
    import torch
    import transformers

    backends: Any = torch.backends
    tf32 = [backends, backends.cuda.matmul, backends.cudnn, backends.cudnn.conv, backends.cudnn.rnn]
    verbose, hub = transformers.utils.logging, huggingface_hub.utils
    return {
        "torch threads": (torch.get_num_threads(), torch.get_num_interop_threads()),
        "torch defaults": (str(torch.get_default_dtype()), str(torch.get_default_device())),
        "torch modes": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.is_anomaly_enabled()),
        "torch autocast": (torch.is_autocast_enabled("cpu"), torch.is_autocast_enabled("cuda")),
        "torch deterministic": (torch.are_deterministic_algorithms_enabled(), backends.cudnn.benchmark),
        "torch precision": [torch.get_float32_matmul_precision(), *(str(switch.fp32_precision) for switch in tf32)],
        "torch attention": [
            getattr(backends.cuda, f"{kind}_sdp_enabled")() for kind in ("cudnn", "flash", "mem_efficient", "math")
        ],
        "torch sharing": torch.multiprocessing.get_sharing_strategy(),
        "torch random": hash(tuple(torch.get_rng_state().tolist())),
        "numpy random": str(np.random.get_state()),  # noqa: NPY002
        "numpy errors": np.geterr(),
        "numpy print": str(np.get_printoptions()),
        "transformers": (verbose.get_verbosity(), verbose.is_progress_bar_enabled(), str(verbose._tqdm_hook)),
        "hub": [hub.are_progress_bars_disabled(name) for name in (None, "host.own")] + [hub.logging.get_verbosity()],
        "datasets": (
            datasets.are_progress_bars_disabled(),
            datasets.logging.get_verbosity(),
            datasets.is_caching_enabled(),
        ),
        "nltk": list(nltk.data.path),
        "matplotlib": (matplotlib.get_backend(auto_select=False), str(matplotlib.rcParams.copy())),
        "polars": pl.Config.save(),
    }


def whole_state() -> State:
    """Return all state; imports the libraries."""
    return python_state() | library_state() | loggers_state()


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
    logging.getLogger().addHandler(logging.StreamHandler())  # without a formatter: Prefect removes it
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

    # sentence_transformers imports transformers' models, torch's compiler and scikit-learn
    assert all((prefect.main, nltk.corpus.reader, pl, sentence_transformers))
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
    """Import the package and every public name; load an encoder by a name in the store."""
    import bsl
    from bsl.storage.errors import ArtifactMissingError

    with contextlib.suppress(ArtifactMissingError):
        bsl.SentenceEncoder.load("checkpoint/none")
    for name in bsl.__all__:
        getattr(bsl, name)


def encode(_: Path) -> None:
    """Load an encoder, encode texts, also from two threads."""
    from bsl import SentenceEncoder

    encoder = SentenceEncoder.load("embedded:mini-sentence")
    encoder.encode(TEXTS)
    encoder.similarity(TEXTS[:1], TEXTS)
    with ThreadPoolExecutor(4) as pool:
        for _ in range(12):
            pool.submit(lambda: SentenceEncoder.load("embedded:bert-mini", pooling="mean").encode(TEXTS))


def evaluate(_: Path) -> None:
    """Score an encoder and a function."""
    import bsl

    bsl.evaluate("embedded:mini-sentence", (10 * TEXTS, 10 * ["animal", "animal", "news", "news"]))
    bsl.evaluate(lambda texts: [[len(text), 1.0] for text in texts], ["embedded:stsb/test"], name="lengths")


def run(folder: Path) -> None:
    """Run a recipe twice, read the encoder, and compare both runs."""
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


def careless(_: Path) -> None:
    """Change settings as this package once did, to show that the list contains them."""
    import datasets
    import huggingface_hub.utils
    import nltk.data
    import numpy as np
    import torch
    import transformers

    gc.freeze()
    csv.field_size_limit(1 << 20)
    logging.disable(logging.NOTSET)
    logging.setLogRecordFactory(lambda *args, **options: logging.LogRecord(*args, **options))
    os.environ["GOMP_SPINCOUNT"] = "2000"
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    warnings.simplefilter("ignore")
    random.random()
    nltk.data.path.append("/elsewhere")
    torch.set_num_threads(1)
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    torch.rand(1)
    np.random.rand()  # noqa: NPY002
    transformers.utils.logging.set_verbosity_error()
    huggingface_hub.utils.disable_progress_bars()
    datasets.disable_progress_bars()


CALLS: dict[str, Callable[[Path], None]] = {
    call.__name__: call for call in (import_only, encode, evaluate, run, careless)
}


def changes(state: Callable[[], State], call: Callable[[Path], None], folder: Path) -> State:
    """Return what a call changed."""
    before = state()
    call(folder)
    after = state()
    return {key: difference(before[key], after[key]) for key in before if before[key] != after[key]}


def main(folder: Path, names: list[str]) -> None:
    """Print what each call changed. The call `bare`, the only one, imports the package before any library."""
    set_up_host()
    if names == ["bare"]:
        found = {"bare": changes(python_state, import_only, folder)}
    else:
        set_up_libraries()
        found = {name: changes(whole_state, CALLS[name], folder) for name in names}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
