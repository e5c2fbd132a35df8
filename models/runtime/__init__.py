"""What all arithmetic stands on: precision, devices, processes, random state, tables larger than memory, progress."""
