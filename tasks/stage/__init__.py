"""Shared by all stages: caching, result records, the Prefect UI, device, sharding, SIGTERM."""
