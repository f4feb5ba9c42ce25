"""Labelled texts in the words of the tiny encoder: three labels, most texts plain, some in doubt, as many as wanted."""

import random

WORDS = {
    "money": ["bank", "market", "stock", "price", "cash", "payment"],
    "sports": ["match", "team", "game", "player", "coach", "league"],
    "world": ["election", "minister", "peace", "court", "police", "country"],
}


def tiny_rows(rows: int, *, seed: int = 0, doubtful: float = 0.0) -> tuple[list[str], list[str]]:
    """Make texts, and the label of each, turn by turn.

    Args:
        rows: how many.
        seed: other seeds make other texts.
        doubtful: share of texts with as many words of another label as of their own.
    """
    draw, names = random.Random(seed), sorted(WORDS)
    texts, labels = [], []
    for row in range(rows):
        own = names[row % len(names)]
        other = draw.choice([name for name in names if name != own]) if draw.random() < doubtful else own
        words = [draw.choice(WORDS[name]) for name in (own, own, other, other)]
        draw.shuffle(words)
        texts.append("the {} and the {} of {} {}".format(*words))
        labels.append(own)
    return texts, labels
