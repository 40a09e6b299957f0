//! What may be seen of a run: folds over the stream of facts.
