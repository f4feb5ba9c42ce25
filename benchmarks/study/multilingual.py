"""Topics of Chinese headlines (TNEWS) with an encoder that reads Chinese, with its prompts and without any."""

import itertools
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pieces import Piece

from labelspace.encoders.registry import find_spec
from study.ablations import SEEDS, task_of
from study.measure import trained
from study.settings import Settings
from study.spaces import FEW_K, TNEWS, drawn

PROMPTS = {"own": None, "none": ""}
"""The prompt before every text and label: the encoder's own, or none."""


def multilingual_pieces(settings: Settings) -> Iterator[Piece]:
    """Every seed with each prompt; an encoder that has none is run once."""
    spec = find_spec(Path(settings.encoder).name)
    prompts = tuple(PROMPTS) if spec is not None and spec.text_prompt else ("none",)
    for seed, which in itertools.product(SEEDS[:1] if settings.small else SEEDS, prompts):
        yield Piece(
            part="multilingual",
            name=f"{settings.short}_{TNEWS}_prompts-{which}_seed{seed}",
            facts={"task": TNEWS, "encoder": settings.short, "prompts": which, "seed": seed},
            work=partial(_run, replace(settings, prompt=PROMPTS[which]), seed),
            seeds=(seed,),
            data=TNEWS,
        )


def _run(settings: Settings, seed: int) -> dict[str, Any]:
    task = task_of(settings, TNEWS)
    space = drawn(task.labels, FEW_K, seed)
    found = trained(settings, task, space, learning_rate="base", max_steps=settings.max_steps, seed=seed)
    return {"test_rows": len(task.texts), "labels": len(space), "pool": task.pool_source, **found}
