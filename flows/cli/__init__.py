"""The command `bsl`: a file a verb."""
