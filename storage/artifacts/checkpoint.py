"""What lies where in a checkpoint artifact."""

from __future__ import annotations

from typing import Final

ENCODER: Final = "encoder"
"""Folder of the trained encoder, as sentence-transformers opens it."""
STATE: Final = "state"
"""Folder of the training run's last snapshot."""
