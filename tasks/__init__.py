"""Stages: each loads its inputs from the store, lets `models` compute, and publishes one artifact."""
