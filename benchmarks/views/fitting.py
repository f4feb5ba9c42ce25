"""None of these, and probabilities, as the pool tells them: scored against the truth and against the best possible."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pieces import Piece
from scipy.special import softmax
from sklearn.metrics import f1_score, roc_auc_score
from store import ENCODER

from labelspace.classify import WordsClassifier
from labelspace.classify.by_joint import Seen
from labelspace.classify.none_of_these import coverage_of, left_out
from labelspace.config import ConsensusConfig
from labelspace.consensus.signals import Range, ranges, signals
from labelspace.consensus.steps import agree, joint_head
from labelspace.consensus.sureness import Sureness, of_student
from labelspace.consensus.teach import teach
from labelspace.consensus.views import WORDS, ZERO_SHOT
from labelspace.labels import LabelSpace
from labelspace.training.calibration import expected_calibration_error, temperature_for_accuracy
from views.answered import base_set
from views.calibrate import all_runs, lines
from views.looks import View
from views.sets import DESCRIBED, INTENTS, NAMED, Setting, described, named
from views.settings import Settings

SCALE = 0.07
"""Logits of views are cosines over this."""

FIXED = tuple(np.round(np.arange(0, 0.85, 0.05), 2).tolist())
"""Cosines that a user might fix as the limit."""

MIXED = (
    ("agnews", "yelpreviews"),
    ("mteb/mtop_domain", "mteb/banking77"),
    ("emotiondair", "agnews"),
    ("mteb/banking77", "massive"),
    ("capsotu", "agnews"),
    ("mteb/massive_scenario", "mteb/banking77"),
)
"""Sets with labels, and sets whose texts fit none of them."""

SHARES = (0.0, 0.1, 0.3)
"""Shares of documents that fit no label, in the pool and in the test."""


@dataclass(frozen=True)
class Mixture:
    """A pool and scored texts, some of which fit none of the labels."""

    view: View
    pool: Seen
    pool_texts: list[str]
    tested: Seen
    texts: list[str]
    truth: NDArray[np.intp]
    """[text] column of the label, -1 for none."""


def none_pieces(settings: Settings) -> Iterator[Piece]:
    """Half of the intents hidden, and mixtures of sets, by an encoder alone."""
    return _none_pieces(settings, "none", ZERO_SHOT, _alone)


def none_consensus_pieces(settings: Settings) -> Iterator[Piece]:
    """The same by a consensus, of an encoder that is trained on the labels' texts."""
    return _none_pieces(settings, "none-consensus", "", _together)


def _none_pieces(
    settings: Settings, part: str, kind: str, score: Callable[[Mixture, int], dict[str, Any]]
) -> Iterator[Piece]:
    def piece(name: str, task: str, other: str, share: float, draw: int, mixture: Callable[[], Mixture]) -> Piece:
        facts = {"task": task, "other": other, "share": share, "draw": draw}
        data = task.split(",")[0]
        return Piece(part=part, name=name, facts=facts, work=lambda: score(mixture(), draw), seeds=(draw,), data=data)

    for draw in () if settings.small else range(4):
        mixture = partial(_hidden, settings, draw)
        yield piece(f"hidden_draw{draw}", f"{INTENTS}, half hidden", "", 0.5, draw, mixture)
    for known, other in MIXED[:1] if settings.small else MIXED:
        for share in SHARES[-1:] if settings.small else SHARES:
            name = f"{known}_{other}_{share:g}".replace("/", "-")
            yield piece(
                name, known, other, share, 0, partial(_mixed, settings, f"{kind}{ENCODER}", known, other, share)
            )


def probabilities_pieces(settings: Settings) -> Iterator[Piece]:
    """Every set with a sentence for each label, and each draw of the sets with descriptions."""
    tasks = [(f"{ZERO_SHOT}{ENCODER}", name, 0) for name in NAMED]
    tasks += [(ENCODER, name, seed) for seed in range(settings.seeds) for name in DESCRIBED]
    for encoder, name, seed in tasks[-1:] if settings.small else tasks:
        kind = "untrained" if encoder.startswith(ZERO_SHOT) else "trained"
        facts = {"task": name, "kind": kind, "seed": seed}
        yield Piece(
            part="probabilities",
            name=f"{kind}_{name}_seed{seed}".replace("/", "-"),
            facts=facts,
            work=partial(_probabilities, settings, encoder, name, seed),
            seeds=(seed,),
            data=name,
        )


def _hidden(settings: Settings, draw: int) -> Mixture:
    """Train on the descriptions of half of the intents; the documents of the others fit none."""
    setting = described(INTENTS, settings.data, 0, settings.test_rows)
    count = len(setting.space)
    kept = np.sort(np.random.default_rng(draw).permutation(count)[: count // 2 + 1])
    space = LabelSpace([setting.space.labels[place] for place in kept], template=setting.space.template)
    view, pool = View(settings, ENCODER, space, draw), setting.pool[: settings.documents]
    truth = [space.index(name) if name in space else -1 for name in setting.truth]
    return Mixture(view, view.sees(pool), pool, view.sees(setting.texts), setting.texts, np.array(truth))


def _mixed(settings: Settings, encoder: str, known: str, other: str, share: float) -> Mixture:
    """Add texts of another set to the pool and to the test."""
    setting, foreign = (named(name, settings.data, settings.test_rows) for name in (known, other))
    view = View(settings, encoder, setting.space, 0)
    pool = _beside(view, setting.pool[: settings.documents], foreign.pool, share)
    tested = _beside(view, setting.texts, foreign.texts, share)
    truth = [setting.space.index(name) for name in setting.truth] + [-1] * (len(tested[1]) - len(setting.texts))
    return Mixture(view, *pool, *tested, np.array(truth))


def _beside(view: View, texts: list[str], foreign: list[str], share: float) -> tuple[Seen, list[str]]:
    """Return texts and what is seen of them, beside so many foreign ones that these make up a share of all."""
    most, some = (round(len(texts) * part / (1 - part)) for part in (SHARES[-1], share))
    own, others = view.sees(texts), view.sees(foreign[:most])
    assert own.vectors is not None
    assert others.vectors is not None
    logits = np.concatenate([own.logits, others.logits[:some]])
    return Seen(logits, np.concatenate([own.vectors, others.vectors[:some]])), [*texts, *foreign[:most][:some]]


def _alone(given: Mixture, _draw: int) -> dict[str, Any]:
    return _scored(given, given.pool.logits, given.tested.logits)


def _together(given: Mixture, draw: int) -> dict[str, Any]:
    space, config = given.view.space, ConsensusConfig()
    found = agree([given.pool], [given.view.short], given.pool_texts, space, config, seed=draw)
    tested = joint_head(found, space).join([given.tested], given.texts)
    return {"steps": sum(step.kept for step in found.steps), **_scored(given, found.logits, tested)}


def _cosines(seen: Seen) -> NDArray[np.float32]:
    return (seen.logits * SCALE).astype(np.float32)


def _scored(given: Mixture, pool_logits: NDArray[Any], logits: NDArray[Any]) -> dict[str, Any]:
    """Score each way to choose the limit, each fixed cosine, and the best limits by the truth.

    Answers are the likeliest labels by the logits; how near documents are to labels is what the view sees.
    """
    pool, tested, truth, space = _cosines(given.pool), _cosines(given.tested), given.truth, given.view.space
    best, answers = pool_logits.argmax(axis=1), logits.argmax(axis=1)
    cosine = tested[np.arange(len(tested)), answers]
    limits = {"coverage": coverage_of(0.95, pool, best, space), "left-out": left_out(pool, best, space)}
    closeness = limits["left-out"].closeness(space.names, tested, answers)
    found: dict[str, Any] = {"label_count": len(space), "pool_documents": len(pool), "test_rows": len(tested)}
    if (truth < 0).any():
        found["auroc"] = {
            name: round(float(roc_auc_score(truth >= 0, values)), 4)
            for name, values in (("closeness", closeness), ("cosine", cosine))
        }
    found["macro_f1"] = {"no limit": _f1(truth, answers, closeness, -np.inf)}
    found["macro_f1"] |= {way: _f1(truth, answers, closeness, limit.value) for way, limit in limits.items()}
    found["fixed"] = [_f1(truth, answers, cosine, value) for value in FIXED]
    found["refused"] = {way: round(float((closeness < limit.value).mean()), 4) for way, limit in limits.items()}
    found["macro_f1"]["oracle"] = max(
        _f1(truth, answers, values, limit)
        for values in (closeness, cosine)
        for limit in (-np.inf, *np.quantile(values, np.linspace(0, 0.9, 91)))
    )
    return found


def _f1(truth: NDArray[np.intp], answers: NDArray[np.intp], values: NDArray[Any], limit: float) -> float:
    """Macro-F1 with "none" as a class, over the classes that occur."""
    given = np.where(values < limit, -1, answers)
    return round(float(f1_score(truth, given, labels=np.unique(truth), average="macro", zero_division=0)), 4)  # pyright: ignore[reportArgumentType]


def _probabilities(settings: Settings, encoder: str, name: str, seed: int) -> dict[str, Any]:
    """Measure how far probabilities are off, at the fixed temperature and at that which the pool tells.

    What agreement says is taken from other sets than this one.
    """
    setting: Setting = (
        named(name, settings.data, settings.test_rows)
        if encoder.startswith(ZERO_SHOT)
        else described(name, settings.data, seed, settings.test_rows)
    )
    runs = all_runs()
    others = lines(runs[runs["base"] != base_set(name)])
    view = View(settings, encoder, setting.space, seed)
    pool, config = setting.pool[: settings.documents], ConsensusConfig()
    looked, tested = view.sees(pool), view.sees(setting.texts)
    truth = np.array([setting.space.index(one) for one in setting.truth])
    found = agree([looked], [view.short], pool, setting.space, config, seed=seed)
    result: dict[str, Any] = {"label_count": len(setting.space), "pool_documents": len(pool), "test_rows": len(truth)}

    def likely(logits: NDArray[Any], consensus: bool) -> Range:
        told = signals(logits.argmax(axis=1), pool, setting.space, looked.vectors, seed=seed)
        return ranges(told, len(setting.space), len(pool), consensus=consensus, lines=others)[0]

    alone = likely(looked.logits, False)
    result["alone"] = _off(tested.logits, truth, temperature_for_accuracy(looked.logits, alone.expected))
    if any(step.kept for step in found.steps):
        together = likely(found.logits, True)
        temperature = temperature_for_accuracy(found.logits, together.expected)
        result["together"] = _off(joint_head(found, setting.space).join([tested], setting.texts), truth, temperature)
        taught = teach(found, pool, setting.space, WORDS, seed=seed)
        assert isinstance(taught.model, WordsClassifier)
        teacher = Sureness(temperature=temperature, accuracy=together, confidence_before=1.0, documents=len(pool))
        own = of_student(teacher, taught.logits, agreed=taught.agreed)
        result["words"] = _off(taught.model.scores(setting.texts, setting.space), truth, own.temperature)
    return result


def _off(logits: NDArray[Any], truth: NDArray[np.intp], temperature: float) -> dict[str, Any]:
    """Return accuracy, and the errors of probabilities as they were and at a temperature."""
    right = logits.argmax(axis=1) == truth
    found: dict[str, Any] = {"accuracy": round(float(right.mean()), 4), "temperature": round(temperature, 4)}
    for name, by in (("fixed", 1.0), ("told", temperature)):
        shares = softmax(np.asarray(logits, dtype=np.float64) / by, axis=1)
        found[f"ece_{name}"] = round(expected_calibration_error(shares.max(axis=1), right), 4)
        wanted = np.eye(shares.shape[1])[truth]
        found[f"brier_{name}"] = round(float(((shares - wanted) ** 2).sum(axis=1).mean()), 4)
    return found
