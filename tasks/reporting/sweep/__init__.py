"""Reports of sweeps: the stage that compares systems, their costs, the advice and the page."""
