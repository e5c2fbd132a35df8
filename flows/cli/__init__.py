"""The command `bsl`: one file for each group of verbs."""
