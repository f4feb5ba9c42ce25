"""`labelspace explain`: why a text has its label."""

from pathlib import Path
from typing import Annotated, Any

import typer

from labelspace.checks import check_number
from labelspace.cli.options import (
    AsJson,
    Device,
    LongTexts,
    MinProbability,
    Model,
    Threshold,
    TrustRemoteCode,
    open_model,
)
from labelspace.cli.printing import harmless, print_json
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError


def explain_command(
    model: Model,
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXT...", help="One or more texts, each in quotes; two per pair for a model of pairs."),
    ],
    top: Annotated[int, typer.Option(help="Number of labels to show.")] = 3,
    nearest: Annotated[int, typer.Option(help="Number of descriptions to quote for each of the first two labels.")] = 2,
    threshold: Threshold = None,
    min_probability: MinProbability = None,
    long_texts: LongTexts = None,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
) -> None:
    """Explain the label of a text: scores, margin and the nearest descriptions."""
    check_number("--top", top, least=1, whole=True)
    check_number("--nearest", nearest, least=0, whole=True)
    for text in texts:
        if _names_file(text):
            raise ConfigError(f"{text} is a file, and explain takes texts; give what it holds, in quotes.")
    opened = open_model(
        model, threshold, min_probability, device, trust_remote_code, long_texts=long_texts, to_answer=True
    )
    from labelspace.corpus import Kind

    asked: list[Any] = list(texts)
    if opened.reads_ is Kind.PAIRS:
        if len(texts) % 2:
            raise ConfigError(f"the model was fitted on pairs, so texts come in twos. Got {len(texts)} instead.")
        asked = list(zip(texts[::2], texts[1::2], strict=True))
    explanations = [opened.explain(text, top=top, nearest=nearest) for text in asked]
    if as_json:
        print_json([explanation.to_dict() for explanation in explanations])
    else:
        print(harmless("\n\n".join(str(explanation) for explanation in explanations)))


def _names_file(text: str) -> bool:
    """Return whether a text is the path of a file, as `report.txt`."""
    try:
        return bool(Path(text).suffix) and Path(text).is_file()
    except (OSError, ValueError):  # too long for a name, or with a null character
        return False
