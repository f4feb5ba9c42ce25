"""The paper's own figures, accuracy in percent and numbers of rows, typed from its tables 1, 2, 5, 7, 8 and 9."""

from collections.abc import Mapping

COLUMNS = (
    "amazon_counterfactual",
    "banking77",
    "imdb",
    "mtop_domain",
    "massive_intent",
    "massive_scenario",
    "toxic_conversations",
    "tweet_sentiment_extraction",
)

# Table 1: train and test rows.
ROWS: Mapping[str, tuple[int, int]] = {
    "amazon_counterfactual": (4018, 670),
    "banking77": (10003, 3080),
    "imdb": (25000, 25000),
    "mtop_domain": (15667, 4386),
    "massive_intent": (11514, 2974),
    "massive_scenario": (11514, 2974),
    "toxic_conversations": (50000, 50000),
    "tweet_sentiment_extraction": (27481, 3534),
}


def _row(*values: float) -> Mapping[str, float]:
    return dict(zip(COLUMNS, values, strict=True))


# Table 7, Qwen3-Embedding-0.6B; "cls" is EOS there.
QWEN3: Mapping[str, Mapping[str, float]] = {
    "cls-base": _row(92.84, 90.13, 95.14, 98.29, 86.58, 89.91, 93.92, 76.94),
    "cls-lcl": _row(94.03, 92.11, 95.38, 98.77, 87.22, 90.72, 93.62, 77.73),
    "cls-ucl": _row(93.28, 91.59, 95.49, 98.86, 88.10, 91.32, 93.93, 77.79),
    "cls-both": _row(94.03, 91.95, 95.45, 99.00, 88.70, 91.39, 93.94, 77.96),
    "attention-base": _row(91.79, 91.40, 94.85, 98.88, 87.79, 90.35, 94.43, 75.30),
    "attention-lcl": _row(94.22, 91.80, 94.88, 98.68, 88.01, 91.00, 94.28, 77.13),
    "attention-ucl": _row(93.75, 91.80, 95.35, 98.81, 88.08, 90.35, 93.51, 78.27),
    "attention-both": _row(94.22, 91.44, 95.39, 98.75, 87.84, 91.13, 94.33, 77.84),
    "textcnn-base": _row(92.54, 92.66, 95.49, 99.04, 88.35, 91.39, 94.11, 78.01),
    "textcnn-lcl": _row(93.73, 93.15, 95.58, 99.02, 88.84, 91.83, 94.36, 77.65),
    "textcnn-ucl": _row(93.53, 93.21, 95.53, 99.03, 88.80, 91.67, 94.43, 78.14),
    "textcnn-both": _row(93.88, 93.47, 95.64, 99.20, 89.14, 92.23, 94.43, 78.38),
    # Table 8.
    "mean-base": _row(93.58, 84.58, 93.53, 97.63, 83.93, 89.48, 93.19, 73.49),
    "mlp-base": _row(90.30, 91.21, 94.42, 98.61, 84.75, 88.89, 94.04, 75.68),
    "textcnn-simcse": _row(92.34, 92.71, 95.33, 99.20, 89.50, 91.63, 93.55, 77.76),
    "textcnn-supcon": _row(91.94, 92.69, 95.62, 99.02, 88.33, 91.27, 94.38, 78.30),
}
# Table 9, embeddinggemma-300m: the reproduced linear probe, and all of it.
GEMMA: Mapping[str, Mapping[str, float]] = {
    "probe": _row(92.84, 91.72, 92.28, 99.13, 87.30, 91.90, 94.06, 73.29),
    "textcnn-both": _row(95.37, 93.86, 94.36, 99.29, 89.71, 92.54, 94.69, 77.96),
}
# Table 5: latency with the head over latency without, and what the head adds to the parameters.
LATENCY_RATIO = 2.76 / 2.72
MORE_PARAMETERS = 614.7 / 595.9 - 1
