"""Flows and recipes: the order of the stages. Flows open no file and compute nothing."""
