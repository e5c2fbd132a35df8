"""Files as the authors of the benchmarks ship them."""
