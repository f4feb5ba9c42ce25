"""The variants trained: the method, its parts, and its rivals."""

from collections.abc import Mapping
from typing import Any

from labelspace.config import UncertaintyConfig
from labelspace.training.uncertainty.objective import RATES, choose_rate

Options = dict[str, Any]
PAPER_RATE = RATES["textcnn"]

BASE: Options = {"uncertain": False, "contrastive": "none", "contrastive_weight": 0.0, "kl_weight": 0.0}
LCL: Options = {"uncertain": False, "kl_weight": 0.0}
UCL: Options = {"contrastive": "none", "contrastive_weight": 0.0}
PARTS: Mapping[str, Options] = {"base": BASE, "lcl": LCL, "ucl": UCL, "both": {}}

# Section 5.3 fixes the temperature at 2.0, where SimCSE and SupCon hardly separate texts; so run their own as well.
CONTRASTIVE: Mapping[str, Options] = {
    "simcse": {"uncertain": False, "kl_weight": 0.0, "contrastive": "self-supervised", "contrastive_temperature": 2.0},
    "supcon": {"uncertain": False, "kl_weight": 0.0, "contrastive": "supervised", "contrastive_temperature": 2.0},
}
COLDER: Mapping[str, Options] = {
    "simcse-0.05": {**CONTRASTIVE["simcse"], "contrastive_temperature": 0.05},
    "supcon-0.1": {**CONTRASTIVE["supcon"], "contrastive_temperature": 0.1},
}

MAIN: Mapping[str, Options] = {f"textcnn-{part}": options for part, options in PARTS.items()}
"""Tables 2, 3 and 7, the right-hand columns."""

# Other extractors with the paper's learning rate for TextCNN; `CHOSEN` has those with a rate of their own.
ABLATIONS: Mapping[str, Options] = {
    **{
        f"{extractor}-{part}": {"extractor": extractor, "learning_rate": PAPER_RATE, **options}
        for extractor in ("cls", "mean", "attention")
        for part, options in PARTS.items()
    },
    "mlp-base": {"extractor": "mlp", "learning_rate": PAPER_RATE, **BASE},
    **{f"textcnn-{name}": options for name, options in {**CONTRASTIVE, **COLDER}.items()},
}
"""The rest of tables 7, 4 and 8. The paper's encoder pools the end token, ours the mean."""

# Figure 3, one option at a time around the defaults. Were equation 5 a mean over coordinates, the paper's 1e-3 would be
# 1e-3 over the width here, 2.6e-6 for MiniLM and 1.3e-6 for mpnet: hence the small weights.
GRID: Mapping[str, tuple[float, ...]] = {
    "kl_weight": (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    "contrastive_weight": (0.0, 0.3, 0.6, 0.7, 0.9),
    "learning_rate": (1e-4, 3e-4, 8e-4, 2e-3),
}
GRID_SETS = ("banking77", "amazon_counterfactual", "tweet_sentiment_extraction")


# Candidates for each backbone: the pair of section 5.3 together; learning rates of the other extractors, which have
# fewer weights and no dropout; and weights of SimCSE and SupCon. The paper's 0.9 is for LCL, whose gradient at
# temperature 2 is far smaller than theirs at their own temperatures. The order matters; see `selection.py`.
FAMILIES: Mapping[str, Mapping[str, Options]] = {
    "textcnn": {
        f"textcnn_rate-{rate:g}_lcl-{weight:g}": {"learning_rate": rate, "contrastive_weight": weight}
        for rate in (1e-4, 3e-4, 8e-4, 2e-3)
        for weight in (0.6, 0.9)
    },
    **{
        extractor: {
            f"{extractor}_rate-{rate:g}": {"extractor": extractor, **BASE, "learning_rate": rate} for rate in rates
        }
        for extractor, rates in (
            ("cls", (8e-4, 3e-3, 1e-2)),
            ("mean", (8e-4, 3e-3, 1e-2)),
            ("attention", (8e-4, 3e-3, 1e-2)),
            ("mlp", (1e-4, 3e-4, 8e-4)),
        )
    },
    # Attention needs a twelfth of TextCNN's products; choose the whole method on it in the same way.
    "attention-both": {
        f"attention-both_rate-{rate:g}_lcl-{weight:g}": {
            "extractor": "attention",
            "learning_rate": rate,
            "contrastive_weight": weight,
        }
        for rate in (8e-4, 3e-3, 1e-2, 3e-2)
        for weight in (0.6, 0.9)
    },
    **{
        name.partition("-")[0]: {
            f"{name}_lcl-{weight:g}": {**options, "contrastive_weight": weight} for weight in (0.05, 0.1, 0.5, 0.9)
        }
        for name, options in COLDER.items()
    },
}
# Choices of `choose.py`: the families, and the KL weight by itself, which decides nothing.
CHOICES: Mapping[str, Options] = {
    **{choice: options for family in FAMILIES.values() for choice, options in family.items()},
    **{f"textcnn_kl-{weight:g}": {"kl_weight": weight} for weight in (0.0, 1e-6, 1e-5, 1e-4)},
}
CHOSEN: Mapping[str, Mapping[str, str]] = {
    "main": {"textcnn": "textcnn-chosen", "attention-both": "attention-both-chosen"},
    "ablations": {family: f"{family}-chosen" for family in FAMILIES if family not in ("textcnn", "attention-both")},
}
"""Variants with chosen options, by part and family; they are run in addition to the defaults."""


def full_config(options: Options) -> dict[str, Any]:
    """Return all options of a run without held-out rows, so that a result of another default is not taken for it."""
    return plain(UncertaintyConfig(validation=0.0, **options))


def plain(config: UncertaintyConfig) -> dict[str, Any]:
    """Return the options of a run with its learning rate."""
    values = {**config.to_dict(), "learning_rate": choose_rate(config)}
    del values["cache_bytes"]  # it decides how long a run takes, and no result
    return values


def grid_twin(option: str, value: float) -> str | None:
    """Return the variant of `MAIN` that equals this grid point; None if it must be run."""
    if value == full_config({})[option]:
        return "textcnn-both"
    return "textcnn-ucl" if (option, value) == ("contrastive_weight", 0.0) else None
