"""Views: other ways of saying a sentence, a method a file, and how two of them become a training pair."""
