"""Small real models from licensed text: vocabularies, masked-LM and translation pre-training on one machine."""
