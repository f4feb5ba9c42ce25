"""Tables 2 to 6 and figures 2, 3, 5 and 6. All methods of a repeat get the same rows and seed."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import Any

from pieces import Piece
from rows import Rows

from labelspace.config import LaConConfig
from labelspace.training.lacon.objective import choose_heads
from lacon import paper
from lacon.methods import METHODS, Options, encoder_of, majority, measured, train
from lacon.protocol import Settings
from lacon.sets import FEW, MAIN, SETS, drawn, sample, shuffled, test_rows, train_rows

# Our text of the paper has figure 2 without a legend. With --full, all sets of table 4 are run at its counts; by
# default two English sets with enough rows, and two repeats.
PER_CLASS = (10, 20, 50, 100)
CURVES = ("qqp", "yelp_polarity")
# RTE with 256 rows, CoLA with 1,024 and QNLI with 256 taught the small encoder nothing, measured on train rows. By
# default similar sets replace them; --full runs the paper's.
IMBALANCED, PAPER_IMBALANCED = ("yelp_polarity", "qqp"), ("qnli", "cola")
DEGREES = (1, 3, 5, 10, 20)
MINORITY = 32
ABLATED = ("qnli", "qqp", "mrpc")
CLASSES = tuple(range(2, 15))
FEW_CLASSES = (2, 6, 10, 14)
CLASS_METHODS = ("lacon-fusion", "ce-scl")
CLASS_ROWS, FEW_CLASS_ROWS = 1000, 32
GRID_SET, PAPER_GRID_SET = "qnli", "rte"

# Options of the rows of tables 3 and 6. LaCon-vanilla and CE are in `main`. Table 6's "L_ICL + L_LER" has the numbers
# of table 3's "- L_LCL": it is one run, with all heads.
ABLATIONS: Mapping[str, Options] = {
    "one-head": {"heads": 1},
    "no-instance": {"instance_weight": 0.0},
    "no-label": {"label_weight": 0.0},
    "no-regularizer": {"regularizer_weight": 0.0},
    "no-projection": {"projection_head": False},
    "ce-projection": METHODS["ce"].options | {"projection_head": True},
    "instance-one-head": {"heads": 1, "label_weight": 0.0, "regularizer_weight": 0.0},
    "instance": {"label_weight": 0.0, "regularizer_weight": 0.0},
    "label": {"instance_weight": 0.0, "regularizer_weight": 0.0},
}
# Section 4.4, one option at a time; lambda 0 is "without LER".
GRID: Mapping[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "temperature": (tuple(round(0.05 * step, 2) for step in range(1, 11)), (0.05, 0.1, 0.2, 0.3, 0.5)),
    "heads": ((1, 2, 3, 4, 6, 8, 12, 16, 24), (1, 2, 6, 12)),
    "regularizer_weight": (tuple(round(0.1 * step, 1) for step in range(11)), (0.0, 0.1, 0.5, 1.0)),
}
"""The paper's values, and the subset run by default."""

BOTH = ("ce", "lacon-vanilla")
Draw = Callable[[], tuple[Rows, Rows]]


def main_pieces(settings: Settings) -> Iterator[Piece]:
    """Tables 2 and 7: every method on every set, one repeat after the other: an unfinished run has all methods."""
    sets = ("cola",) if settings.small else MAIN
    for seed, name, method in product(settings.seeds("main"), sets, METHODS):
        draw = partial(_sampled, settings, name, seed)
        yield _piece(settings, "main", name, {"method": method}, method, seed, draw, METHODS[method].options)


def few_pieces(settings: Settings) -> Iterator[Piece]:
    """Table 4 and figure 2: few rows of each class to train on, and as many to select the epoch."""
    sets, counts = (("bustm",), (10,)) if settings.small else (FEW, (20, 10, 50, 100))
    seeds, epochs = settings.seeds("few"), settings.protocol.few_epochs
    for seed, count, name, method in product(seeds, counts, sets, BOTH):
        picture = name in CURVES and seed in seeds[:2]
        wanted = settings.full or settings.small or count == 20 or picture
        if wanted and count <= (SETS[name].most or count):
            facts, draw = {"method": method, "per_class": count}, partial(_few, settings, name, count, seed)
            # As in table 4: run all epochs, keep the best.
            options = METHODS[method].options | {"epochs": epochs, "patience": epochs, "validation": 0.5}
            yield _piece(settings, "few", name, facts, f"{method}_n{count:03d}", seed, draw, options)


def imbalance_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 3 and table 5: 32 rows of the rarer class, and increasing numbers of the other."""
    sets = ("cola",) if settings.small else PAPER_IMBALANCED if settings.full else IMBALANCED
    degrees = (3,) if settings.small else DEGREES
    for seed, name, degree, method in product(settings.seeds("imbalance"), sets, degrees, BOTH):
        facts, draw = {"method": method, "degree": degree}, partial(_imbalanced, settings, name, degree, seed)
        words = f"{method}_rho{degree:02d}"
        yield _piece(settings, "imbalance", name, facts, words, seed, draw, _few_epochs(settings, method))


def ablation_pieces(settings: Settings) -> Iterator[Piece]:
    """Tables 3 and 6."""
    sets = ("cola",) if settings.small else paper.ABLATED if settings.full else ABLATED
    changes = ("one-head", "ce-projection") if settings.small else tuple(ABLATIONS)
    for seed, name, change in product(settings.seeds("ablation"), sets, changes):
        draw = partial(_sampled, settings, name, seed)
        yield _piece(settings, "ablation", name, {"change": change}, change, seed, draw, ABLATIONS[change])


def class_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 6: increasing numbers of DBpedia's labels, in nested samples."""
    counts = (2,) if settings.small else CLASSES if settings.full else FEW_CLASSES
    for seed, count, method in product(settings.seeds("classes"), counts, CLASS_METHODS):
        facts, draw = {"method": method, "classes": count}, partial(_some_classes, settings, count, seed)
        words = f"{method}_c{count:02d}"
        yield _piece(settings, "classes", "dbpedia", facts, words, seed, draw, _few_epochs(settings, method))


def grid_pieces(settings: Settings) -> Iterator[Piece]:
    """Figure 5: temperature, heads and lambda, one at a time around the defaults; used for no selection."""
    target = PAPER_GRID_SET if settings.full or settings.small else GRID_SET
    dim = encoder_of(settings).dimension
    default = {name: getattr(LaConConfig, name) for name in GRID} | {"heads": choose_heads(None, dim)}
    values: dict[str, tuple[float, ...]] = {name: own[not settings.full] for name, own in GRID.items()}
    values["heads"] = tuple(sorted({*(heads for heads in values["heads"] if dim % heads == 0), default["heads"]}))
    if settings.small:
        values = {"heads": (1, default["heads"])}
    # The defaults are a point on each line, run once.
    moves = [(name, value) for name, own in values.items() for value in own if value != default[name]]
    points = {f"{name}-{value:g}": {name: value} for name, value in moves}
    for seed, (change, moved) in product(settings.seeds("grid"), ({"default": {}} | points).items()):
        facts, draw = {"change": change, "point": default | moved}, partial(_sampled, settings, target, seed)
        yield _piece(settings, "grid", target, facts, change, seed, draw, default | moved)


def _few_epochs(settings: Settings, method: str) -> Options:
    return METHODS[method].options | {"epochs": settings.protocol.few_epochs}


def _piece(
    settings: Settings, part: str, name: str, facts: dict[str, Any], words: str, seed: int, draw: Draw, options: Options
) -> Piece:
    source = SETS[name]

    def work() -> dict[str, Any]:
        rows, test = draw()
        counts = {label: len(rows.of_class(label)) for label in rows.names}
        found = measured(train(settings, options, rows, seed), test)
        return {"class_rows": counts, "majority": majority(test, source.metric), **found}

    return Piece(
        part=part,
        name=f"{settings.short}_{name}_{words}_seed{seed:02d}",
        facts=settings.facts(set=name, **facts, seed=seed, metric=source.metric),
        work=work,
        seeds=(seed,),
        data=f"shared/data/{source.folder}: train{', dev' if part == 'few' and source.dev else ''}; validation scored",
    )


def _test(settings: Settings, name: str) -> Rows:
    return test_rows(name, settings.data, settings.protocol.test_rows)


def _sampled(settings: Settings, name: str, seed: int) -> tuple[Rows, Rows]:
    return sample(name, train_rows(name, settings.data), settings.protocol.rows, seed), _test(settings, name)


def _few(settings: Settings, name: str, count: int, seed: int) -> tuple[Rows, Rows]:
    rows = train_rows(name, settings.data, few=True)
    # The estimator holds out half of them, stratified by class.
    return drawn(rows, dict.fromkeys(rows.names, 2 * count), seed), _test(settings, name)


def _imbalanced(settings: Settings, name: str, degree: int, seed: int) -> tuple[Rows, Rows]:
    rows = train_rows(name, settings.data)
    rare = rarer_class(rows)
    counts = {label: MINORITY if label == rare else MINORITY * degree for label in rows.names}
    return drawn(rows, counts, seed), _test(settings, name)


def rarer_class(rows: Rows) -> str:
    """Return the label with fewer rows; the paper does not say which of QNLI's two it makes the minority."""
    return min(rows.names, key=lambda label: len(rows.of_class(label)))


def _some_classes(settings: Settings, count: int, seed: int) -> tuple[Rows, Rows]:
    rows, most = train_rows("dbpedia", settings.data), settings.protocol.test_rows
    # Two of the fourteen labels have only a seventh of the scored rows.
    test = test_rows("dbpedia", settings.data, None if most is None else 4 * most)
    names = rows.names
    chosen = {names[place] for place in shuffled(range(len(names)), seed, "classes")[:count]}
    each = CLASS_ROWS if settings.protocol.rows is None else FEW_CLASS_ROWS
    kept = [row for row, label in enumerate(test.truth) if label in chosen]
    return drawn(rows, dict.fromkeys(sorted(chosen), each), seed), test.take(kept)
