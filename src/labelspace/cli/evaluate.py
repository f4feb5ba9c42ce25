"""`labelspace evaluate` and `labelspace figures`: how good a model is, and what its space looks like."""

import heapq
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import check_choice, check_number, import_optional
from labelspace.cli.options import (
    Anchor,
    AsJson,
    Device,
    Dtype,
    EncoderName,
    LabelColumn,
    Offline,
    Quiet,
    TextColumn,
    Threshold,
    TrustRemoteCode,
    open_encoder,
    open_model,
)
from labelspace.cli.printing import busy, hush, print_json
from labelspace.config import DEFAULT_ANCHOR, EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, OutputError
from labelspace.labels import LabelSpace
from labelspace.seeds import child_seed

if TYPE_CHECKING:
    from labelspace.corpus import DocumentTable

PICTURES = (".png", ".svg", ".pdf")
PROJECTIONS = ("umap", "pca", "tsne")

Labelled = Annotated[str, typer.Argument(metavar="FILE", help="A .csv, .tsv, .jsonl or .parquet file, or a glob.")]


def evaluate_command(
    context: typer.Context,
    model: Annotated[
        Path, typer.Argument(metavar="MODEL", help="Folder of a saved model; or a label file, for no training at all.")
    ],
    file: Labelled,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    confusion: Annotated[Path | None, typer.Option(help="Also draw the confusion matrix: .png, .svg or .pdf.")] = None,
    no_baselines: Annotated[bool, typer.Option("--no-baselines", help="Leave the untrained baselines out.")] = False,
    threshold: Threshold = None,
    anchor: Anchor = DEFAULT_ANCHOR,
    encoder: EncoderName = DEFAULT_ENCODER,
    dtype: Dtype = EncodingConfig.dtype,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare predictions with labels: macro-F1, accuracy, each label, confusion, and the untrained baselines.

    --encoder, --anchor and --dtype go with a label file; a saved model brings its own.
    """
    from labelspace.corpus import open_table

    hush(quiet)
    open_table(file, text=text_column, label=label_column)  # refuses a missing column before torch is loaded
    if confusion is not None:
        if confusion.suffix.lower() not in PICTURES:
            raise ConfigError(f"--confusion must end in {', '.join(PICTURES)}. Got {confusion.name!r} instead.")
        _check_folder(confusion.parent)
        import_optional("matplotlib", package="matplotlib", extra="plot", purpose="--confusion")
    if model.is_dir() or not model.exists():
        _refuse_for_saved(context)
        opened = open_model(model, threshold=threshold, device=device, quiet=quiet)
    else:
        given = {"dtype": dtype, "device": device, "trust_remote_code": trust_remote_code, "offline": offline}
        space = LabelSpace.from_file(model)
        untrained = open_encoder(encoder, quiet=quiet, **given)
        from labelspace.classify import ZeroShotClassifier

        opened = ZeroShotClassifier(space, untrained, anchor=anchor, threshold=threshold).fit()
    from labelspace.evaluate import confusion_figure, evaluate_table

    evaluation = evaluate_table(
        opened, file, text=text_column, label=label_column, baselines=not no_baselines, show_progress=not quiet
    )
    if confusion is not None:
        confusion_figure(evaluation, confusion)
    if as_json:
        print_json(evaluation.to_dict())
    else:
        print(evaluation.to_text())


def figures_command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved model.")],
    file: Labelled,
    out: Annotated[Path, typer.Option(help="Folder for the figures; made if it is not there.")],
    text_column: TextColumn = "text",
    label_column: Annotated[
        str | None, typer.Option(help="Column with the labels: colours the map, and adds the confusion matrix.")
    ] = None,
    method: Annotated[str, typer.Option(metavar="|".join(PROJECTIONS), help="How two dimensions are found.")] = "umap",
    max_documents: Annotated[int, typer.Option(help="Documents on the map, drawn at random from FILE.")] = 2000,
    no_before: Annotated[bool, typer.Option("--no-before", help="Leave out the map of the untrained encoder.")] = False,
    seed: Annotated[int, typer.Option(help="Of the sample and the map.")] = 0,
    device: Device = EncodingConfig.device,
    quiet: Quiet = False,
) -> None:
    """Draw a map of documents and labels, map.png and map.svg, and with labels also confusion.png and .svg."""
    from labelspace.corpus import open_table

    hush(quiet)
    check_choice("--method", method, PROJECTIONS)
    check_number("--max-documents", max_documents, least=1, whole=True)
    table = open_table(file, text=text_column, label=label_column)
    _check_folder(out.absolute().parent)
    import_optional("matplotlib", package="matplotlib", extra="plot", purpose="figures")
    if method == "umap":
        import_optional("umap", package="umap-learn", extra="plot", purpose="--method umap")
    opened = open_model(model, device=device, quiet=quiet)
    from labelspace.evaluate import confusion_figure, evaluate_table, map_figure

    with busy("reading", quiet=quiet):
        texts, names = _drawn(table, max_documents, seed)
    _make_folder(out)
    written: list[Path] = []
    if label_column:
        evaluation = evaluate_table(
            opened, file, text=text_column, label=label_column, baselines=False, show_progress=not quiet
        )
        written += confusion_figure(evaluation, out / "confusion")
    with busy("drawing the map", quiet=quiet):
        written += map_figure(
            opened,
            texts,
            out / "map",
            y=names if label_column else None,
            method=method,
            before=not no_before,
            seed=seed,
            max_documents=max_documents,
        )
    for path in written:
        print(path)


def _refuse_for_saved(context: typer.Context) -> None:
    for name in ("encoder", "anchor", "dtype"):
        source = context.get_parameter_source(name)
        if source is not None and source.name == "COMMANDLINE":
            raise ConfigError(
                f"--{name} goes with a label file; MODEL is a saved model and brings its own. Leave it out."
            )


def _drawn(table: "DocumentTable", size: int, seed: int) -> tuple[list[str], list[Any]]:
    """Draw rows at random, in the order of the file, and hold no more of them than that."""
    tickets = random.Random(child_seed(seed, "figures"))

    def rows() -> Iterator[tuple[float, int, str, Any]]:
        number = 0
        for batch in table.batches():
            texts = table.texts(batch)
            names = batch.column(table.label).to_pylist() if table.label else [None] * len(texts)
            for text, name in zip(texts, names, strict=True):
                yield tickets.random(), number, text, name
                number += 1

    drawn = heapq.nsmallest(size, rows(), key=lambda row: row[0])
    drawn.sort(key=lambda row: row[1])
    return [row[2] for row in drawn], [row[3] for row in drawn]


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise OutputError(f"there is no folder {folder}; make it first.")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made ({error.strerror}); give another place.") from error
