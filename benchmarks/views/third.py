"""A local language model as a further view, asked about the 500 documents of the pool that the others doubt most.

It is too slow to answer test rows, so a student answers them. On the pool itself the views answer with it and without.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pieces import Piece
from store import ENCODER

from labelspace.config import ConsensusConfig
from labelspace.consensus.asking import ask_slow
from labelspace.consensus.members import Members
from labelspace.consensus.steps import agree
from labelspace.consensus.teach import teach
from labelspace.consensus.views import WORDS
from labelspace.progress import silent
from views.experiments import scores_of
from views.looks import View
from views.sets import DESCRIBED, described
from views.settings import Settings


def third_pieces(settings: Settings) -> Iterator[Piece]:
    """Four sets with descriptions, each draw of them."""
    if settings.llm is None:
        raise SystemExit("the part third needs --llm, a GGUF file or the folder of a language model")
    for seed in range(1 if settings.small else settings.seeds):
        for name in DESCRIBED[:1] if settings.small else DESCRIBED:
            views = "+".join([*(Path(one).name for one in settings.encoders), settings.llm.stem, WORDS])
            yield Piece(
                part="third",
                name=f"{views}_{name}_n{settings.documents}_seed{seed}",
                facts={"task": name, "views": views, "documents": settings.documents, "seed": seed},
                work=partial(_run, settings, name, seed),
                seeds=(seed,),
                data=name,
            )


def _run(settings: Settings, name: str, seed: int) -> dict[str, Any]:
    setting = described(name, settings.data, seed, settings.test_rows)
    assert setting.pool_truth is not None
    pool, space, config = setting.pool[: settings.documents], setting.space, ConsensusConfig()
    views = [View(settings, encoder, space, seed) for encoder in settings.encoders]
    fast = [view.sees(pool) for view in views]
    members = Members(
        space=space, config=config, options={}, checkpoint=settings.cache, callbacks=(), seed=seed, verbose=False
    )
    slow = ask_slow(f"llm:{settings.llm}", pool, fast, members, silent)
    asked = np.flatnonzero(~np.isnan(slow.logits[:, 0]))
    names, truth = np.array(space.names, dtype=object), np.array(setting.pool_truth[: len(pool)], dtype=object)
    result: dict[str, Any] = {
        "label_count": len(space),
        "pool_documents": len(pool),
        "asked": len(asked),
        "llm_on_asked": scores_of(truth[asked], names[slow.logits[asked].argmax(axis=1)]),
    }
    shorts = [view.short for view in views]
    for who, seen, called in (("without", fast, shorts), ("with", [*fast, slow], [*shorts, "llm"])):
        found = agree(seen, called, pool, space, config, seed=seed)
        answers = names[found.logits.argmax(axis=1)]
        own: dict[str, Any] = {
            "steps": {step.name.split()[0]: step.kept for step in found.steps},
            "pool": scores_of(truth, answers),
            "asked": scores_of(truth[asked], answers[asked]),
        }
        # The encoder's student without the language model is in the part `student`.
        for student in (ENCODER, WORDS) if who == "with" else (WORDS,):
            start = WORDS if student == WORDS else views[0].model()
            taught = teach(found, pool, space, start, seed=seed)  # pyright: ignore[reportArgumentType]
            said = names[taught.model.scores(setting.texts, space).argmax(axis=1)]
            own[student] = scores_of(setting.truth, said)
        result[who] = own
    return {**result, "test_rows": len(setting.texts)}
