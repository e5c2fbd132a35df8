"""Selection of parallel sentences near the evaluation domain."""

import numpy as np

from assets.training.corpora import closeness, nearest

CAPTIONS = ["A man plays a guitar.", "Two dogs run on the beach.", "A woman plays with a dog."]
TALK = ["I think that you should know.", "You know what I think.", "Tom should think that."]


def test_closeness_ranks_domain_sentences_highest():
    texts = ["A dog plays on the beach.", "I know what you think.", "Zebra."]
    scores = closeness(texts, CAPTIONS, TALK)
    assert scores[0] > scores[2] > scores[1]


def test_nearest_selects_the_share_with_top_scores():
    assert nearest(np.array([0.1, 0.9, 0.5, 0.7, 0.2]), 0.4).tolist() == [False, True, False, True, False]
