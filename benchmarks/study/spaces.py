"""Label spaces of the study: ten descriptions for each label, samples of them, and damaged versions."""

import functools
import random
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import yaml
from tasks import Task, load_rows, load_task

from labelspace import Label, LabelSpace
from labelspace.seeds import child_seed

LABELS = Path(__file__).resolve().parent / "labels"
TASKS = ("agnews", "emotion", "rottentomatoes", "banking77_cards")
MISLEADING = "amazon_counterfactual"
INTENTS = "banking77"
TNEWS = "tnews"
OWN_VERBALIZERS = {MISLEADING: (f"mteb/{MISLEADING}", "test"), TNEWS: (f"clue/{TNEWS}", "validation")}
"""Tasks with the verbalizers of their label file: folder of the data, and the split that is scored."""

PAPER_K = 5
WRITTEN = 10
"""Number of descriptions of a label to draw from."""

FEW_K, FEW_WRITTEN = 4, 5
"""Each of the 77 intents and of the 15 topics has five descriptions, not ten, and a sample takes four."""


def share_drawn(name: str, count: int = PAPER_K) -> float:
    """Return the share of a task's descriptions in a sample; for all intents and TNEWS always four of five."""
    return FEW_K / FEW_WRITTEN if name in (INTENTS, TNEWS) else count / WRITTEN


@functools.lru_cache(maxsize=1)
def study_task(name: str, data: Path, *, test_rows: int | None) -> Task:
    """Read a task with ten descriptions for each label (all intents and TNEWS: five) and the official verbalizers."""
    if name == INTENTS:
        return load_task(name, data, "official", test_rows=test_rows)
    space = LabelSpace.from_file(LABELS / f"{name}.yaml")
    if name in OWN_VERBALIZERS:
        folder, split = OWN_VERBALIZERS[name]
        pool, _ = load_rows(data / folder, "train", space)
        texts, truth = load_rows(data / folder, split, space, most=test_rows)
        return Task(name, space, pool, f"{folder}/train.parquet ({len(pool)} rows)", texts, truth)
    task = load_task(name, data, "official", test_rows=test_rows)
    return replace(task, labels=with_descriptions(task.labels, lambda label: space[label.name].descriptions))


def with_descriptions(space: LabelSpace, of: Callable[[Label], tuple[str, ...]]) -> LabelSpace:
    """Return the same labels and verbalizers with other descriptions."""
    return LabelSpace(
        [
            Label(label.name, verbalizer=verbalizer, descriptions=of(label))
            for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
        ],
        name=space.name,
    )


def drawn(space: LabelSpace, count: int, seed: int) -> LabelSpace:
    """Draw `count` descriptions of each label by the seed, keeping their order."""

    def draw(label: Label) -> tuple[str, ...]:
        chosen = random.Random(child_seed(seed, "descriptions", label.name)).sample(
            range(len(label.descriptions)), min(count, len(label.descriptions))
        )
        return tuple(label.descriptions[place] for place in sorted(chosen))

    return with_descriptions(space, draw)


def bare(space: LabelSpace) -> LabelSpace:
    """Replace each verbalizer by the label's name."""
    names = [Label(label.name, verbalizer=label.name, descriptions=label.descriptions) for label in space.labels]
    return LabelSpace(names, name=space.name)


def swapped(space: LabelSpace, seed: int, *, one_in: int = PAPER_K) -> LabelSpace:
    """Give one description in five to another label, in a cycle; each label keeps its number of descriptions."""
    generator = random.Random(child_seed(seed, "swapped"))
    order = list(space.labels)
    generator.shuffle(order)
    places = {
        label.name: generator.sample(range(len(label.descriptions)), max(1, len(label.descriptions) // one_in))
        for label in order
    }
    given = {}
    for label, other in zip(order, [*order[1:], order[0]], strict=True):
        texts = list(label.descriptions)
        for mine, theirs in zip(places[label.name], places[other.name], strict=False):
            texts[mine] = other.descriptions[theirs]
        given[label.name] = tuple(texts)
    return with_descriptions(space, lambda label: given[label.name])


def halved(space: LabelSpace, seed: int) -> LabelSpace:  # noqa: ARG001  nothing is drawn
    """Cut each description in the middle."""

    def half(text: str) -> str:
        words = text.split()
        return " ".join(words[: max(1, len(words) // 2)])

    return with_descriptions(space, lambda label: tuple(map(half, label.descriptions)))


def filled(space: LabelSpace, seed: int, *, one_in: int = PAPER_K) -> LabelSpace:
    """Replace one description in five by a sentence that says nothing about the label."""
    filler = yaml.safe_load((LABELS / "filler.yaml").read_text(encoding="utf-8"))["filler"]
    generator = random.Random(child_seed(seed, "filler"))
    pool = generator.sample(filler, len(filler))

    def fill(label: Label) -> tuple[str, ...]:
        texts = list(label.descriptions)
        for place in generator.sample(range(len(texts)), max(1, len(texts) // one_in)):
            # Use each sentence once; when they run out, join two.
            texts[place] = pool.pop() if pool else " ".join(generator.sample(filler, 2))
        return tuple(texts)

    return with_descriptions(space, fill)
