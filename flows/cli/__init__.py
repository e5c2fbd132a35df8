"""The command line `bsl`: one file for each group of commands."""
