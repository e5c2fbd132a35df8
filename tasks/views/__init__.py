"""Views of a sentence, one stage a method, and the pairs made of them."""
