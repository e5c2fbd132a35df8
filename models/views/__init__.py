"""Views: other wordings of a sentence, one method per file, and the training pairs made from them."""
