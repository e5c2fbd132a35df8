"""Many runs: a grid of settings, a study, methods on one text, a recipe over seeds beside a published row."""
