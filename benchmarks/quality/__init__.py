"""Quality of results on data of the reader: a file `bench_*.py` for each question."""
