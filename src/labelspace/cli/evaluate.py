"""`labelspace evaluate`: measure a model on labelled documents."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from labelspace.cli.options import (
    Anchor,
    AsJson,
    Delimiter,
    Device,
    Dtype,
    EncoderName,
    LabelColumn,
    Labelled,
    LongTexts,
    MinProbability,
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
from labelspace.cli.pictures import check_picture
from labelspace.cli.printing import hush, print_json
from labelspace.cli.settings import is_given
from labelspace.config import DecisionConfig, EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError
from labelspace.labels import LabelSpace


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
