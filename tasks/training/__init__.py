"""Pairs to a checkpoint: the stage, its worker processes, teachers' vectors, steps timed for a budget."""
