"""Consensus of views that were looked at before: on four sets, on all sets, from other pools, and with students."""

import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measured import seconds
from pieces import Piece
from scoring import accuracy_and_macro_f1, macro_f1_predicted
from sklearn.metrics import f1_score
from store import ENCODER

from labelspace import ConsensusClassifier, Encoder
from labelspace.classify.by_joint import Seen
from labelspace.config import ConsensusConfig
from labelspace.consensus.signals import signals
from labelspace.consensus.steps import Consensus, agree, joint_head
from labelspace.consensus.teach import teach
from labelspace.consensus.views import WORDS, ZERO_SHOT
from labelspace.evaluate.trust import label_agreement
from views.answered import ALONE, NEW, TOGETHER
from views.looks import View
from views.pools import UNBALANCED, taken
from views.sets import DESCRIBED, INTENTS, NAMED, Setting, described, example, named
from views.settings import Settings

SENTENCES = "sets"
"""The part whose labels have a sentence each, so that nothing is trained."""

EXAMPLES = "examples"
"""The part with the label files that README.md is about."""

SIZES = (100, 300, 1000, 10_000)
"""Pools besides the usual one; 10,000 is all of a smaller set."""

FEW = (50, 100, 200, 400, 1000)
"""Documents of an estimate; two draws of each, the last aside."""


def consensus_pieces(settings: Settings) -> Iterator[Piece]:
    """Four sets with descriptions, each draw of them: the views together, beside each alone."""
    for seed in range(1 if settings.small else settings.seeds):
        for name in DESCRIBED[:1] if settings.small else DESCRIBED:
            yield _piece(settings, "consensus", name, seed=seed)


def sets_pieces(settings: Settings) -> Iterator[Piece]:
    """Every set with a sentence for each label, with the encoder as it is."""
    for name in list(NAMED)[-1:] if settings.small else NAMED:
        yield _piece(settings, SENTENCES, name)


def sizes_pieces(settings: Settings) -> Iterator[Piece]:
    """Estimates from few documents, of every set with a sentence for each label."""
    for name in list(NAMED)[-1:] if settings.small else NAMED:
        work = partial(estimates_from_few, settings, name)
        file_name = name.replace("/", "-")
        yield Piece(part="sizes", name=file_name, facts={"task": name}, work=work, seeds=(0,), data=name)


def intents_pieces(settings: Settings) -> Iterator[Piece]:
    """All 77 intents, with their descriptions."""
    if not settings.small:
        yield _piece(settings, "intents", INTENTS)


def pools_pieces(settings: Settings) -> Iterator[Piece]:
    """Smaller, larger and unbalanced pools."""
    for name in DESCRIBED[:1] if settings.small else DESCRIBED:
        for size in SIZES[:1] if settings.small else SIZES:
            yield _piece(settings, "pools", name, documents=size)
        for kind in UNBALANCED:
            yield _piece(settings, "pools", name, kind=kind)


def examples_pieces(settings: Settings) -> Iterator[Piece]:
    """The label files of `examples/`, all train rows up to 10,000, and all test rows: the column of README.md."""
    if not settings.small:
        for name in (*DESCRIBED, INTENTS):
            yield _piece(settings, EXAMPLES, name, documents=10_000)


def student_pieces(settings: Settings) -> Iterator[Piece]:
    """MiniLM and words as students of the same consensus."""
    for seed in range(1 if settings.small else settings.seeds):
        for name in DESCRIBED[:1] if settings.small else DESCRIBED:
            for student in (ENCODER, WORDS):
                yield _piece(settings, "student", name, seed=seed, student=student)


def cost_pieces(settings: Settings) -> Iterator[Piece]:
    """What a fit costs beside encoding its pool, and how fast a student of words is; run it on a quiet machine."""
    for name in () if settings.small else ("emotion", "agnews"):
        facts = {"task": name, "documents": 10_000}
        yield Piece(part="cost", name=name, facts=facts, work=partial(cost, settings, name), seeds=(0,), data=name)


def cost(settings: Settings, name: str) -> dict[str, Any]:
    """Time encoding of a pool, a whole fit on it, and both kinds of prediction, one after another."""
    setting = example(name, settings.data)
    pool = setting.pool[:10_000]
    encoder = Encoder(ENCODER)
    encoder.encode(pool[:500])
    encoding = seconds(lambda: encoder.encode(pool))[0]
    clf = ConsensusClassifier(setting.space, [encoder, WORDS])
    fit = seconds(lambda: clf.fit(pool))[0]
    words = teach(clf.consensus_, pool, setting.space, WORDS, seed=0).model
    answering = seconds(lambda: words.predict(pool))[0]
    return {"pool_documents": len(pool), "fit_to_encoding": fit / encoding, "encoding_to_words": encoding / answering}


def _piece(
    settings: Settings,
    part: str,
    name: str,
    *,
    seed: int = 0,
    documents: int | None = None,
    kind: str = "",
    student: str | None = None,
) -> Piece:
    encoders = tuple(f"{ZERO_SHOT}{one}" if part == SENTENCES else one for one in settings.encoders)
    views = "+".join([*(one.removeprefix(ZERO_SHOT).rsplit("/", 1)[-1] for one in encoders), WORDS])
    size = documents or settings.documents
    own = "".join(f"_{each}" for each in (kind, student and Path(student).name) if each)
    return Piece(
        part=part,
        name=f"{views}_{name.replace('/', '-')}_n{size}{own}_seed{seed}",
        facts={
            "task": name,
            "views": views,
            "student": None if student is None else Path(student).name,
            "documents": size,
            "pool_kind": kind,
            "seed": seed,
        },
        work=partial(run, settings, part, name, encoders, seed=seed, size=size, kind=kind, student=student),
        seeds=(seed,),
        data=name,
    )


def run(
    settings: Settings,
    part: str,
    name: str,
    encoders: Sequence[str],
    *,
    seed: int,
    size: int,
    kind: str,
    student: str | None,
) -> dict[str, Any]:
    """Let the views look at train rows, agree, and be scored on test rows."""
    setting = _setting(settings, part, name, seed)
    views = [View(settings, encoder, setting.space, seed) for encoder in encoders]
    most = max(size, settings.documents)
    pool, pool_rows, rows = taken(setting, size=size, most=most, kind=kind)
    looked = [_part(view.sees(setting.pool[:most]), pool_rows) for view in views]
    tested = [_part(view.sees(setting.texts), rows) for view in views]
    texts, truth = [setting.texts[row] for row in rows], [setting.truth[row] for row in rows]
    config = ConsensusConfig()
    started = time.perf_counter()
    found = agree(looked, [view.short for view in views], pool, setting.space, config, seed=seed)
    result: dict[str, Any] = {"label_count": len(setting.space)}
    result |= {"agree_seconds": round(time.perf_counter() - started, 2), "pool_documents": len(pool)}
    names = np.array(setting.space.names, dtype=object)
    together = joint_head(found, setting.space).join(tested, texts)
    result["test_rows"] = len(texts)
    result["scores"] = scores_of(truth, names[together.argmax(axis=1)])
    if part == EXAMPLES:
        result["macro_f1_predicted"] = macro_f1_predicted(truth, names[together.argmax(axis=1)])
    if student is not None:
        start = WORDS if student == WORDS else views[0].model()
        taught = teach(found, pool, setting.space, start, seed=seed)  # pyright: ignore[reportArgumentType]
        answers = taught.model.scores(texts, setting.space).argmax(axis=1)
        return {**result, "student_scores": scores_of(truth, names[answers]), "follows": round(taught.kappa, 3)}
    result["steps"] = {step.name.split()[0]: step.kept for step in found.steps}
    result["alone"] = [scores_of(truth, names[one.logits.argmax(axis=1)]) for one in tested]
    near = looked[found.near or 0].vectors
    answered = [(one.logits, one.vectors, test.logits) for one, test in zip(looked, tested, strict=True)]
    told = [_told(*each, pool, truth, setting, seed) for each in (*answered, (found.logits, near, together))]
    result["signals"] = [one for one, _ in told]
    if part == SENTENCES:
        result["labels"] = [labels for _, labels in told]
    return result


def estimates_from_few(settings: Settings, name: str) -> dict[str, Any]:
    """Take the signals of few documents, and score on all test rows what they are about.

    That is the encoder alone, a consensus of the same documents, and one of the whole pool, asked about test texts.
    """
    setting = named(name, settings.data, settings.test_rows)
    view = View(settings, f"{ZERO_SHOT}{ENCODER}", setting.space, 0)
    pool, config = setting.pool[: settings.documents], ConsensusConfig()
    looked, tested = view.sees(pool), view.sees(setting.texts)
    names = np.array(setting.space.names, dtype=object)
    runs: list[dict[str, Any]] = []

    def consensus(rows: list[int]) -> tuple[Consensus, Any, bool]:
        part, texts = _part(looked, rows), [pool[row] for row in rows]
        found = agree([part], [view.short], texts, setting.space, config, seed=0)
        together = joint_head(found, setting.space).join([tested], setting.texts)
        return found, together, any(step.kept for step in found.steps)

    def add(who: str, logits: Any, vectors: Any, texts: list[str], test: Any) -> None:
        if len(np.unique(logits.argmax(axis=1))) == 1:
            return  # there is no estimate then
        told, labels = _told(logits, vectors, test, texts, setting.truth, setting, 0)
        scores = scores_of(setting.truth, names[test.argmax(axis=1)])
        runs.append({"who": who, "documents": len(texts), **scores, "signals": told, "labels": labels})

    _, of_all, changed = consensus(list(range(len(pool))))
    for size in FEW:
        for draw in range(1 if size == FEW[-1] else 2):
            rows = [row for row in range(draw * size, (draw + 1) * size) if row < len(pool)]
            if len(rows) < FEW[0]:
                continue
            part, texts = _part(looked, rows), [pool[row] for row in rows]
            add(ALONE, part.logits, part.vectors, texts, tested.logits)
            found, of_few, few_changed = consensus(rows)
            if few_changed:
                add(TOGETHER, found.logits, part.vectors, texts, of_few)
            new = [row for row in rows if row < len(setting.texts)]
            if changed and len(new) >= FEW[0]:
                assert tested.vectors is not None
                add(NEW, of_all[new], tested.vectors[new], [setting.texts[row] for row in new], of_all)
    return {"label_count": len(setting.space), "test_rows": len(setting.truth), "runs": runs}


def _setting(settings: Settings, part: str, name: str, seed: int) -> Setting:
    if part == SENTENCES:
        return named(name, settings.data, settings.test_rows)
    if part == EXAMPLES:
        return example(name, settings.data)
    return described(name, settings.data, seed, settings.test_rows)


def _part(seen: Seen, rows: list[int]) -> Seen:
    assert seen.vectors is not None
    return Seen(seen.logits[rows], seen.vectors[rows])


def _told(
    logits: Any, vectors: Any, test: Any, pool: list[str], truth: list[str], setting: Setting, seed: int
) -> tuple[list[float], list[int]]:
    """Return both signals; and of each label that occurs its agreement on the pool and F1 on test rows, in percent."""
    answers, names = logits.argmax(axis=1), setting.space.names
    found = signals(answers, pool, setting.space, vectors, seed=seed)
    chosen = np.array(names, dtype=object)[test.argmax(axis=1)]
    occur = [name for name in names if name in set(truth)]
    scores = f1_score(truth, chosen, labels=occur, average=None, zero_division=0)  # pyright: ignore[reportArgumentType]
    each = [
        round(100 * value)
        for name, score in zip(occur, np.atleast_1d(scores), strict=True)
        if (answers == names.index(name)).any()
        for value in (label_agreement(answers, found, names.index(name)), float(score))
    ]
    return [round(found.words, 4), round(found.neighbours or 0.0, 4)], each


def scores_of(truth: Any, answers: Any) -> dict[str, float]:
    """Return accuracy and macro-F1 with four digits, so that a row stays small."""
    return {name: round(value, 4) for name, value in accuracy_and_macro_f1(list(truth), answers).items()}
