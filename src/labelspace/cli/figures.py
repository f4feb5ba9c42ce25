"""`labelspace figures`: draw what a model sees."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from labelspace.checks import as_seed, check_choice, check_number, did_you_mean, import_optional
from labelspace.cli.options import (
    Delimiter,
    Device,
    Labelled,
    Model,
    Quiet,
    TextColumn,
    TextEncoding,
    TrustRemoteCode,
    open_model,
)
from labelspace.cli.pictures import check_folder
from labelspace.cli.printing import busy, hush, note
from labelspace.cli.sampling import sample_rows
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError, OutputError

PROJECTIONS = ("umap", "pca", "tsne")
FIGURES = ("confusion", "map", "sphere", "similarity", "consensus")


def figures_command(
    model: Model,
    file: Labelled,
    out: Annotated[Path, typer.Option(help="Folder for the figures, created if missing.")],
    only: Annotated[
        str | None,
        typer.Option(metavar="NAME[,NAME]", help=f"Figures to draw, by default all: {', '.join(FIGURES)}."),
    ] = None,
    text_column: TextColumn = "text",
    label_column: Annotated[
        str | None, typer.Option(help="Column with the labels, to colour documents and draw the confusion matrix.")
    ] = None,
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    projection: Annotated[
        str, typer.Option(metavar="|".join(PROJECTIONS), help="How to project to two dimensions.")
    ] = "umap",
    max_documents: Annotated[int, typer.Option(help="Maximum number of documents to draw, chosen at random.")] = 2000,
    no_before: Annotated[bool, typer.Option("--no-before", help="Do not draw the untrained encoder.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the sample and the map.")] = 0,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    quiet: Quiet = False,
) -> None:
    """Draw documents and labels as the model sees them: .png and .svg files in one folder.

    The figures are a map, a sphere, the similarity of the labels, what views agreed on for a model of a consensus and,
    with labels, the confusion matrix. Figures that do not apply to the model are left out.
    """
    from labelspace.corpus import open_table

    hush(quiet)
    seed = as_seed(seed)
    names = _figures(only, label_column)
    check_choice("--projection", projection, PROJECTIONS)
    check_number("--max-documents", max_documents, least=1, whole=True)
    dialect: Any = {"delimiter": delimiter, "encoding": encoding}
    table = open_table(file, text_column=text_column, label_column=label_column, **dialect)
    check_folder(out.absolute().parent)
    import_optional("matplotlib", package="matplotlib", extra="plot", purpose="figures")
    if projection == "umap" and "map" in names:
        import_optional("umap", package="umap-learn", extra="plot", purpose="--projection umap")
    opened = open_model(model, device=device, trust_remote_code=trust_remote_code, quiet=quiet)
    from labelspace import evaluate as draw
    from labelspace.evaluate.figures.spaces import undrawable

    for name in list(names):
        why = undrawable(opened, name)
        if why and (only or len(names) == 1):
            raise ConfigError(why)
        if why:
            note(f"left out: {why}")
            names.remove(name)
    with busy("reading", quiet=quiet):
        texts, own = sample_rows(table, max_documents, seed)
    _make_folder(out)
    shown: dict[str, Any] = {"before": not no_before, "seed": seed, "max_documents": max_documents}
    shown["y"] = own if label_column else None
    loud: dict[str, Any] = {"verbose": not quiet}
    columns: dict[str, Any] = {"text_column": text_column, "label_column": label_column, **dialect}
    figures: dict[str, Callable[[Path], tuple[Path, ...]]] = {
        "confusion": lambda path: draw.confusion_figure(
            draw.evaluate_table(opened, file, baselines=False, **columns, **loud), path
        ),
        "map": lambda path: draw.map_figure(opened, texts, path, projection=projection, **shown),
        "sphere": lambda path: draw.sphere_figure(opened, texts, path, **shown),
        "similarity": lambda path: draw.label_similarity_figure(opened, path),
        "consensus": lambda path: draw.consensus_figure(opened.fit_result_, path),
    }
    written: list[Path] = []
    for name in names:
        # The others have a progress bar.
        with busy(f"drawing the {name}", quiet=quiet or name not in ("map", "sphere")):
            written += figures[name](out / name)
    for path in written:
        print(path)


def _figures(only: str | None, label_column: str | None) -> list[str]:
    """Return the figures to draw, in the order of FIGURES."""
    if only is None:
        return [name for name in FIGURES if name != "confusion" or label_column]
    wanted = [name.strip() for name in only.split(",")]
    for name in wanted:
        if name not in FIGURES:
            raise ConfigError(
                f"--only takes {', '.join(FIGURES)}, with commas between. Got {name!r} instead."
                f"{did_you_mean(name, FIGURES)}"
            )
        if name == "confusion" and label_column is None:
            raise ConfigError(f"--only {name} compares with labels; name their column with --label-column.")
    return [name for name in FIGURES if name in wanted]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made ({error.strerror}); give another place.") from error
