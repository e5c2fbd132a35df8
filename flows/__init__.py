"""Flows and recipes: the order of the stages. This package opens no file and computes nothing."""
