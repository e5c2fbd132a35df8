"""Train SetFit's body on labelled rows for bench_labels.py: `python setfit_peer.py JOB.json`, in a Python that has it.

Settings are SetFit's: 16 pairs per step, learning rate 2e-5, one epoch, 20 pairs of each kind per row (R in its paper).
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np


def main() -> int:
    """Train on the job's rows, and save the vectors of all texts to the job's folder."""
    import torch
    from datasets import Dataset
    from setfit import SetFitModel, Trainer, TrainingArguments

    torch.set_num_threads(1)
    path = Path(sys.argv[1])
    job = json.loads(path.read_text())
    model = SetFitModel.from_pretrained(job["folder"])
    settings = TrainingArguments(
        output_dir=str(path.parent / "out"),
        batch_size=16,
        num_epochs=1,
        num_iterations=20,
        body_learning_rate=2e-5,
        seed=job["seed"],
        report_to="none",
    )
    numbers = {name: number for number, name in enumerate(sorted(set(job["labels"])))}
    rows = Dataset.from_dict({"text": job["known"], "label": [numbers[name] for name in job["labels"]]})
    began = time.process_time()
    Trainer(model=model, args=settings, train_dataset=rows).train()
    seconds = time.process_time() - began
    vectors = {name: model.model_body.encode(job[name]) for name in ("known", "asked")}
    np.savez(path.parent / "vectors.npz", seconds=seconds, **vectors)
    return 0


if __name__ == "__main__":
    sys.exit(main())
