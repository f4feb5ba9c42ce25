"""`labelspace evaluate` and `labelspace figures`: measure a model and draw its space."""

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from labelspace.checks import as_seed, check_choice, check_number, did_you_mean, import_optional
from labelspace.cli.options import (
    Anchor,
    AsJson,
    Delimiter,
    Device,
    Dtype,
    EncoderName,
    LabelColumn,
    LongTexts,
    MinProbability,
    Model,
    Offline,
    PairColumn,
    Quiet,
    TextColumn,
    TextEncoding,
    Threshold,
    TrustRemoteCode,
    open_encoder,
    open_model,
)
from labelspace.cli.pictures import check_folder, check_picture
from labelspace.cli.printing import busy, hush, note, print_json
from labelspace.cli.sampling import sample_rows
from labelspace.cli.settings import is_given
from labelspace.config import DecisionConfig, EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, OutputError
from labelspace.labels import LabelSpace

PROJECTIONS = ("umap", "pca", "tsne")
FIGURES = ("confusion", "map", "sphere", "similarity", "consensus")

Labelled = Annotated[
    str, typer.Argument(metavar="FILE", help="A .csv, .tsv, .xlsx, .jsonl or .parquet file, or a glob.")
]


def evaluate_command(
    context: typer.Context,
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL", help="A saved model (folder, or name on the hub), or a label file for a zero-shot model."
        ),
    ],
    file: Labelled,
    text_column: TextColumn = "text",
    pair_column: PairColumn = None,
    label_column: LabelColumn = "label",
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    confusion: Annotated[Path | None, typer.Option(help="Also draw the confusion matrix: .png, .svg or .pdf.")] = None,
    rejection_curve: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH", help="Also print and draw what rejecting uncertain documents gains: .png, .svg or .pdf."
        ),
    ] = None,
    count_none: Annotated[
        bool,
        typer.Option(
            "--count-none",
            help="Count rows without a label as texts that fit none, instead of leaving them out. No label is then "
            'right, and "none of these" is one of the classes.',
        ),
    ] = False,
    beside: Annotated[
        Path | None,
        typer.Option(metavar="MODEL", help="Another saved model with the same labels, to compare with on these rows."),
    ] = None,
    no_baselines: Annotated[bool, typer.Option("--no-baselines", help="Skip the untrained baselines.")] = False,
    threshold: Threshold = None,
    min_probability: MinProbability = None,
    long_texts: LongTexts = None,
    anchor: Anchor = DecisionConfig.anchor,
    encoder: EncoderName = DEFAULT_ENCODER,
    dtype: Dtype = EncodingConfig.dtype,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Compare predictions with labels: macro-F1, accuracy, each label, confusion, and the untrained baselines.

    --beside tells whether a new model is better than the one it shall replace, and how sure that is on these rows.
    --threshold and --min-probability are for MODEL alone, --long-texts for both.

    For a model of several labels, the label column holds their names joined by |, and is empty for none: micro- and
    macro-F1, each label, and the mean number of labels.

    --rejection-curve rejects by the model's probabilities and, if it measures it, its uncertainty; it ignores
    --threshold. It holds two or three numbers per document in memory. For a model that measures uncertainty it also
    counts easy, semi-hard and hard documents by the paper's bounds, and the wrong answers among each.

    --encoder, --anchor and --dtype need a label file; a saved model has its own.
    """
    from labelspace.corpus import open_table

    hush(quiet)
    dialect: Any = {"delimiter": delimiter, "encoding": encoding}
    # Report a missing column before torch is loaded.
    open_table(file, text_column=text_column, pair_column=pair_column, label_column=label_column, **dialect)
    check_picture("--confusion", confusion)
    check_picture("--rejection-curve", rejection_curve)
    if confusion is not None and rejection_curve is not None and confusion.resolve() == rejection_curve.resolve():
        raise ConfigError("--confusion and --rejection-curve name the same file; give two.")
    if model.is_dir() or not model.exists():
        _refuse_for_saved(context)
        place = _place(model, offline=offline)
        opened = open_model(
            place, threshold, min_probability, device, trust_remote_code, long_texts=long_texts, quiet=quiet
        )
    else:
        if min_probability is not None:
            raise ConfigError("--min-probability is for a saved model with logits; with a label file use --threshold.")
        given = {"dtype": dtype, "device": device, "trust_remote_code": trust_remote_code, "offline": offline}
        space = LabelSpace.from_file(model)
        if space.several:
            raise ConfigError(
                f"{model} says several: true, and the cut of each label comes from documents; make a model first: "
                f"labelspace fit {model} --pool FILE --out MODEL"
            )
        untrained = open_encoder(encoder, quiet=quiet, **given)
        from labelspace.classify import ZeroShotClassifier

        decision = {"anchor": anchor, "threshold": threshold, "long_texts": long_texts or DecisionConfig.long_texts}
        opened = ZeroShotClassifier(space, untrained, **decision).fit()
    from labelspace.evaluate import Rejections, confusion_figure, evaluate_table, rejection_figure
    from labelspace.evaluate.rejection import bands_text, rejection_rows, rejection_text

    other = None
    if beside is not None:
        if beside.is_file():
            raise ConfigError(f"--beside takes a saved model. Got the file {beside}; fit it with --method zero-shot.")
        other = open_model(
            _place(beside, offline=offline), device=device, trust_remote_code=trust_remote_code, quiet=quiet
        )
        if long_texts is not None and hasattr(other, "long_texts"):
            from labelspace.classify.long_texts import tell_other_reading

            before, other.long_texts = other.long_texts, long_texts
            tell_other_reading(other, before)
    if opened.label_space_.several and (confusion is not None or rejection_curve is not None):
        raise ConfigError("--confusion and --rejection-curve are for one label a text; MODEL may give a text several.")
    kept = None if rejection_curve is None else Rejections()
    evaluation = evaluate_table(
        opened,
        file,
        text_column=text_column,
        pair_column=pair_column,
        label_column=label_column,
        none=count_none,
        baselines=not no_baselines,
        beside=other,
        rejections=kept,
        **dialect,
        verbose=not quiet,
    )
    if confusion is not None:
        confusion_figure(evaluation, confusion)
    rows, bands = [], None
    if kept is not None and rejection_curve is not None:
        curves, bands = kept.curves(), kept.bands()
        rows = rejection_rows(curves)
        rejection_figure(curves, rejection_curve)
    if as_json:
        more: dict[str, Any] = {"rejection": rows} if rows else {}
        if beside is not None:
            more["beside"] = str(beside)
        print_json(evaluation.to_dict() | more | ({"difficulty": [asdict(band) for band in bands]} if bands else {}))
    else:
        print(evaluation.to_text())
        if rows:
            print(f"\n{rejection_text(rows)}")
        if bands:
            print(f"\n{bands_text(bands)}")


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


def _place(model: Path, *, offline: bool) -> Path:
    """Return the folder of a saved model, or its name on the hub if the hub may be asked."""
    if not offline or model.is_dir():
        return model
    from labelspace.classify.saved.fetching import model_folder

    return model_folder(model, offline=True)


def _refuse_for_saved(context: typer.Context) -> None:
    for name in ("encoder", "anchor", "dtype"):
        if is_given(context, name):
            raise ConfigError(
                f"--{name} goes with a label file; MODEL is a saved model and brings its own. Leave it out."
            )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise OutputError(f"{folder} cannot be made ({error.strerror}); give another place.") from error
