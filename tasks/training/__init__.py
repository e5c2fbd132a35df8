"""Train an encoder on pairs: the stage, its worker processes, teachers' vectors, step timing for budgets."""
