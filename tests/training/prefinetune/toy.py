"""Three sources that differ only in tone: headlines, questions and shouts about sports and money."""

import random

from labelspace.corpus import Pairs

WORDS = {"sports": ("team", "match", "coach", "player", "club"), "money": ("bank", "market", "price", "loan", "tax")}
TONES = {
    "news": "the {} and the {} of the year, police said",
    "questions": "why is my {} not like your {} ?",
    "shouts": "great {} ! great {} !",
}


def toy_pairs(count: int = 12, *, sources: tuple[str, ...] = ("news", "questions", "shouts"), seed: int = 0) -> Pairs:
    """Draw `count` pairs of each source; the positive is the topic, in the words of the source."""
    draw = random.Random(seed)
    anchors, positives, ids = [], [], []
    for number, name in enumerate(sources):
        for row in range(count):
            topic = sorted(WORDS)[row % 2]
            anchors.append(f"{TONES[name].format(*draw.sample(WORDS[topic], 2))} {number * count + row}")
            positives.append(f"{topic} {name}")
            ids.append(number)
    return Pairs(
        anchors=tuple(anchors),
        positives=tuple(positives),
        source_ids=tuple(ids),
        sources=sources,
        seen=(count,) * len(sources),
    )
