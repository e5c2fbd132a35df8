# ruff: noqa: NPY002  the protocol draws from the legacy global generator
"""SentEval's classifier protocol, a fit at a time, as in REFERENCE C: the reference for the batched one."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold


@dataclass(frozen=True)
class Restated:
    """The settings; the defaults are those of the literature."""

    seed: int = 1111
    folds: int = 10
    batch_size: int = 64
    epoch_size: int = 4
    max_epoch: int = 200
    tenacity: int = 5
    decays: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 1e-2)
    dtype: torch.dtype = torch.float32

    def fit(
        self, x: np.ndarray, y: np.ndarray, classes: int, decay: float, dev: tuple[np.ndarray, np.ndarray] | None = None
    ) -> torch.nn.Linear:
        np.random.seed(self.seed)
        torch.manual_seed(self.seed)
        layer = torch.nn.Linear(x.shape[1], classes).to(self.dtype)
        optimizer = torch.optim.Adam(layer.parameters(), weight_decay=decay)
        if dev is None:
            order = np.random.permutation(len(x))
            held = int(0.05 * len(x))
            dev, x, y = (x[order[:held]], y[order[:held]]), x[order[held:]], y[order[held:]]
        inputs, targets = torch.from_numpy(x).to(self.dtype), torch.from_numpy(y)
        best, best_accuracy, passes, misses = copy.deepcopy(layer), -1.0, 0, 0
        while passes <= self.max_epoch:
            for _ in range(self.epoch_size):
                order = torch.from_numpy(np.random.permutation(len(x)))
                for rows in order.split(self.batch_size):
                    optimizer.zero_grad()
                    torch.nn.functional.cross_entropy(layer(inputs[rows]), targets[rows]).backward()
                    optimizer.step()
            passes += self.epoch_size
            accuracy = self.score(layer, *dev)
            if accuracy > best_accuracy:
                best, best_accuracy = copy.deepcopy(layer), accuracy
            else:
                if misses >= self.tenacity:
                    break
                misses += 1
        return best

    def predict(self, layer, x):
        with torch.no_grad():
            return layer(torch.from_numpy(x).to(self.dtype)).argmax(dim=1).numpy()

    def score(self, layer: torch.nn.Linear, x: np.ndarray, y: np.ndarray) -> float:
        return float((self.predict(layer, x) == y).mean())

    def best_of(self, cuts, classes):
        scores = [
            round(100 * np.mean([self.score(self.fit(x, y, classes, decay, dev), *dev) for x, y, dev in cuts]), 2)
            for decay in self.decays
        ]
        return tuple(scores), self.decays[int(np.argmax(scores))]

    def cuts(self, x, y, seed):
        cutter = StratifiedKFold(n_splits=self.folds, shuffle=True, random_state=seed)
        return [(x[fit], y[fit], (x[dev], y[dev])) for fit, dev in cutter.split(x, y)]

    def nested(self, x, y, classes, outer=None):
        """Return scores of the search, choice and predicted test classes of the first `outer` folds."""
        out = []
        for train_x, train_y, (test_x, _) in self.cuts(x, y, 1111)[:outer]:
            scores, decay = self.best_of(self.cuts(train_x, train_y, 1111), classes)
            out.append((scores, decay, self.predict(self.fit(train_x, train_y, classes, decay), test_x)))
        return out

    def kfold(self, train, test, classes):
        scores, decay = self.best_of(self.cuts(*train, self.seed), classes)
        return [(scores, decay, self.predict(self.fit(*train, classes, decay), test[0]))]

    def split(self, train, dev, test, classes):
        scores, decay = self.best_of([(*train, dev)], classes)
        return [(scores, decay, self.predict(self.fit(*train, classes, decay, dev), test[0]))]
