"""Speed and memory against peers measured in the same run: `make bench`, or a file `bench_*.py`."""
