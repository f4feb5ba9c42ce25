"""`labelspace estimate`: how good a model is on documents without labels."""

from pathlib import Path
from typing import Annotated, Any

import typer

from labelspace.cli.options import (
    AsJson,
    Delimiter,
    Device,
    Model,
    Quiet,
    TextColumn,
    TextEncoding,
    TrustRemoteCode,
    open_model,
)
from labelspace.cli.pictures import check_picture
from labelspace.cli.printing import busy, hush, print_json
from labelspace.cli.sampling import sample_rows
from labelspace.config import EncodingConfig


def estimate_command(
    model: Model,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE", help="Documents like those to predict: .csv, .tsv, .xlsx, .jsonl, .parquet or a glob."
        ),
    ],
    text_column: TextColumn = "text",
    label_column: Annotated[
        str | None,
        typer.Option(help="Column with labels of some rows, drawn at random; an empty cell means no label."),
    ] = None,
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    figure: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="Also draw the ranges and the trust in each label: .png, .svg or .pdf."),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the draw, if there are more than 10,000 documents.")] = 0,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Estimate accuracy and macro-F1 without labels, and say which labels can be trusted and what lowers the estimate.

    The ranges hold the truth in about 8 of 10 cases. Ten labels of documents that were drawn at random make them
    narrower. With many labels, `labelspace evaluate` measures instead.
    """
    from labelspace.corpus import open_table

    hush(quiet)
    dialect: Any = {"delimiter": delimiter, "encoding": encoding}
    table = open_table(file, text_column=text_column, label_column=label_column, **dialect)
    check_picture("--figure", figure)
    opened = open_model(model, device=device, trust_remote_code=trust_remote_code, quiet=quiet)
    from labelspace.evaluate import estimate, estimate_figure
    from labelspace.evaluate.quality import DOCUMENTS

    if label_column is not None and not opened.label_space_.several:  # `estimate` refuses these
        table.check_labels(opened.label_space_.names)
    with busy("reading", quiet=quiet):
        texts, labels = sample_rows(table, DOCUMENTS, seed, labelled_first=True)
    with busy("estimating", quiet=quiet):
        found = estimate(opened, texts, labels if label_column else None, seed=seed)
    if figure is not None:
        estimate_figure(found, figure)
    if as_json:
        print_json(found.to_dict())
    else:
        print(found)
