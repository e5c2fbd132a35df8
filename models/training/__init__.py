"""The training loop: batches, schedule, health, resumable state."""
