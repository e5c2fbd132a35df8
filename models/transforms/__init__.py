"""Post-hoc transforms, fitted on finished vectors: whitening, BERT-flow."""
