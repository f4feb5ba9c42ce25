"""What is trained: the method, what it is made of, and what it is compared with."""

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

# Section 5.3 fixes the temperature at 2.0, where SimCSE and SupCon hardly tell texts apart; so also at their own.
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

# Other extractors with TextCNN's rate, the paper's; beside them those with a rate of their own, `CHOSEN`.
ABLATIONS: Mapping[str, Options] = {
    **{
        f"{extractor}-{part}": {"extractor": extractor, "learning_rate": PAPER_RATE, **options}
        for extractor in ("cls", "mean", "attention")
        for part, options in PARTS.items()
    },
    "mlp-base": {"extractor": "mlp", "learning_rate": PAPER_RATE, **BASE},
    **{f"textcnn-{name}": options for name, options in {**CONTRASTIVE, **COLDER}.items()},
}
"""The rest of tables 7, 4 and 8. The paper's encoder keeps its vector at the end token, ours in the mean."""

# Figure 3, one option at a time around the defaults. Were equation 5 a mean over coordinates, the paper's 1e-3 would be
# 1e-3 over the width here, 2.6e-6 for MiniLM and 1.3e-6 for mpnet: hence the small weights.
GRID: Mapping[str, tuple[float, ...]] = {
    "kl_weight": (0.0, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
    "contrastive_weight": (0.0, 0.3, 0.6, 0.7, 0.9),
    "learning_rate": (1e-4, 3e-4, 8e-4, 2e-3),
}
GRID_SETS = ("banking77", "amazon_counterfactual", "tweet_sentiment_extraction")


# What is chosen among for each backbone: the pair of section 5.3 together, the rates of the other extractors, which
# have fewer weights and no dropout, and the weights of SimCSE and SupCon: 0.9 is the paper's for LCL, whose gradient at
# temperature 2 is far smaller than theirs at their own. Ordered; see `selection.py`.
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
    # Attention costs a twelfth of TextCNN's products: the whole method on it, in the same way.
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
# Of `choose.py`: beside the families the weight of KL by itself, which nothing is chosen by.
CHOICES: Mapping[str, Options] = {
    **{choice: options for family in FAMILIES.values() for choice, options in family.items()},
    **{f"textcnn_kl-{weight:g}": {"kl_weight": weight} for weight in (0.0, 1e-6, 1e-5, 1e-4)},
}
CHOSEN: Mapping[str, Mapping[str, str]] = {
    "main": {"textcnn": "textcnn-chosen", "attention-both": "attention-both-chosen"},
    "ablations": {family: f"{family}-chosen" for family in FAMILIES if family not in ("textcnn", "attention-both")},
}
"""The variants with what was chosen, by part and family; beside those with the defaults."""


def full_config(options: Options) -> dict[str, Any]:
    """Return every option of a run that holds nothing out: results of another default are no results of this run."""
    return plain(UncertaintyConfig(validation=0.0, **options))


def plain(config: UncertaintyConfig) -> dict[str, Any]:
    """Return the options of a run with the rate that it has."""
    values = {**config.to_dict(), "learning_rate": choose_rate(config)}
    del values["cache_bytes"]  # it decides how long a run takes, and no result
    return values


def grid_twin(option: str, value: float) -> str | None:
    """Return the variant of `MAIN` that this point of the grid is; None: none, it is to be run."""
    if value == full_config({})[option]:
        return "textcnn-both"
    return "textcnn-ucl" if (option, value) == ("contrastive_weight", 0.0) else None
