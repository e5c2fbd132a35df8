"""Make views of sentences, one stage for each method, and training pairs of the views."""
