"""`labelspace draft`: descriptions from a language model, kept where the estimate without labels rises."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import check_choice, check_number
from labelspace.cli.options import (
    AsJson,
    Delimiter,
    Device,
    EncoderName,
    Offline,
    Overwrite,
    Quiet,
    TextColumn,
    TextEncoding,
    TrustRemoteCode,
    choices,
    open_encoder,
)
from labelspace.cli.pictures import check_folder
from labelspace.cli.printing import busy, hush, note, print_json
from labelspace.config import EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, EncoderError, LabelSpaceError
from labelspace.folders import check_writable, write_atomically
from labelspace.labels import LabelSpace
from labelspace.labels.drafts import KEEPS, Draft, marked_file

if TYPE_CHECKING:
    from labelspace.evaluate.drafts import DraftChoice, DraftJudge
    from labelspace.families.drafting import Question

EXAMPLES = 6
"""Documents of the pool in each question."""


def draft_command(
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="A label file: YAML, JSON or CSV.")],
    model: Annotated[
        str, typer.Option(metavar="openai:MODEL[@URL]|llm:NAME[#FILE]", help="The language model, hosted or local.")
    ],
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The label file to write: .yaml or .yml. Left out: drafts are only printed."),
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Unlabelled documents, 100 or more: .csv, .tsv, .xlsx, .jsonl, .parquet or a glob. Not the test set.",
        ),
    ] = None,
    each: Annotated[int, typer.Option(help="New descriptions for each label, 1 to 10.")] = 3,
    pairs: Annotated[
        int, typer.Option(help="With --pool: part this many pairs of labels, the most confused, by two sentences each.")
    ] = 3,
    keep: Annotated[
        str,
        typer.Option(
            metavar=choices(KEEPS),
            help="Keep the drafts with which the estimate rises on the pool (better), or all of them.",
        ),
    ] = "better",
    price: Annotated[
        float | None,
        typer.Option(help="Price of a million tokens that a hosted model reads; the cost is estimated from it."),
    ] = None,
    text_column: TextColumn = "text",
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    seed: Annotated[int, typer.Option(help="Seed of the documents shown and of the choice.")] = 0,
    overwrite: Overwrite = False,
    encoder: EncoderName = DEFAULT_ENCODER,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Let a language model draft descriptions, and keep those with which the estimate on unlabelled documents rises.

    With openai: the label file and some documents of the pool leave this machine for the server. Read the drafts
    before you use them: each is marked in the file.
    """
    hush(quiet)
    check_number("--each", each, least=1, most=10, whole=True)
    check_number("--pairs", pairs, least=0, whole=True)
    check_choice("--keep", keep, KEEPS)
    if price is not None:
        check_number("--price", price, least=0)
    _check_out(out, pool, keep, overwrite=overwrite)
    space = LabelSpace.from_file(labels)
    if space.several and pool is not None and keep != "all":
        raise ConfigError(f"{labels} says several: true, and drafts are judged for one label a text; add --keep all.")
    _check_model(model, offline=offline)
    documents: tuple[str, ...] = ()
    if pool is not None:
        dialect = {"text_column": text_column, "delimiter": delimiter, "encoding": encoding}
        documents = _read_pool(pool, seed, keep, quiet=quiet, **dialect)
    options = {"device": device, "trust_remote_code": trust_remote_code, "offline": offline}
    judge = _judge(space, documents, encoder, seed=seed, quiet=quiet, **options) if documents else None
    asked = _questions(space, documents, judge, each=each, pairs=pairs, seed=seed)
    _tell_calls(model, asked, price, shown=bool(documents))
    drafts: list[Draft] = []
    try:
        _ask(model, space, asked, drafts, seed=seed, device=device, offline=offline, quiet=quiet)
    except (LabelSpaceError, KeyboardInterrupt):
        if drafts:  # they have cost time or money
            _print(drafts, (), None, None, as_json=as_json)
        raise
    choice = judge.choose(drafts, keep=keep) if judge is not None else None
    kept = drafts if choice is None else list(choice.kept)
    if out is not None:
        _write(out, labels, space, kept, model, seed)
    _print(drafts, kept, choice, out, as_json=as_json)


def _check_out(out: Path | None, pool: str | None, keep: str, *, overwrite: bool) -> None:
    if out is None:
        return
    if out.suffix.lower() not in (".yaml", ".yml"):
        raise ConfigError(f"--out must end in .yaml or .yml, because comments mark the drafts. Got {out.name!r}.")
    if out.exists() and not overwrite:
        raise ConfigError(f"{out} exists already; name another, or replace it with --overwrite.")
    if pool is None and keep != "all":
        raise ConfigError(
            "without --pool nothing tells which drafts help; add --pool, keep them all with --keep all, or leave out "
            "--out to print them."
        )
    check_folder(out.parent)
    check_writable(out)


def _check_model(model: str, *, offline: bool) -> None:
    """Refuse a model that cannot be asked, before anything is read or opened."""
    from labelspace.consensus.views import check_scorer, family_of
    from labelspace.families.endpoint_address import check_endpoint

    family = family_of(model)
    if family == "openai":
        check_endpoint(model)
    elif family == "llm":
        check_scorer(model, offline=offline or None)
    else:
        raise ConfigError("--model must be openai:MODEL[@URL] or llm:NAME[#FILE]. Got another form instead.")


def _read_pool(pool: str, seed: int, keep: str, *, quiet: bool, **dialect: Any) -> tuple[str, ...]:
    from labelspace.corpus import sample_pool
    from labelspace.evaluate.drafts import DOCUMENTS, LEAST, check_documents

    with busy("reading", quiet=quiet):
        documents = sample_pool(pool, size=DOCUMENTS, seed=seed, **dialect).texts
    if keep != "all":
        check_documents(len(documents))
    elif len(documents) < LEAST:
        note(f"{len(documents)} documents are too few for an estimate; they only show the style.")
    return documents


def _judge(
    space: LabelSpace, documents: Sequence[str], encoder: str, *, seed: int, quiet: bool, **options: Any
) -> "DraftJudge | None":
    from labelspace.evaluate.drafts import LEAST, DraftJudge

    if len(documents) < LEAST or space.several:
        return None
    opened = open_encoder(encoder, quiet=quiet, **options)
    with busy("reading the pool", quiet=quiet):
        return DraftJudge(space, documents, opened, seed=seed, verbose=not quiet)


def _questions(
    space: LabelSpace, documents: Sequence[str], judge: "DraftJudge | None", *, each: int, pairs: int, seed: int
) -> list["Question"]:
    import numpy as np

    from labelspace.families.drafting import questions
    from labelspace.seeds import child_seed

    order = np.random.default_rng(child_seed(seed, "examples")).permutation(len(documents))[:EXAMPLES]
    confused = judge.confused(pairs) if judge is not None and pairs else ()
    return questions(space, [documents[int(row)] for row in order], each=each, confused=confused)


def _tell_calls(model: str, asked: Sequence["Question"], price: float | None, *, shown: bool) -> None:
    tokens = sum(question.tokens for question in asked)
    told = f"{model}: {len(asked):,} calls, about {tokens:,} tokens of input"
    if price is not None:
        told += f", about {tokens * price / 1e6:.2g} at {price:g} per million"
    sent = "names, descriptions and some documents of the pool" if shown else "names and descriptions"
    left = f"; {sent} leave this machine" if model.startswith("openai:") else ""
    note(f"{told}; a call without enough usable drafts is repeated once{left}.")


def _ask(
    model: str,
    space: LabelSpace,
    asked: Sequence["Question"],
    drafts: list[Draft],
    *,
    seed: int,
    device: str,
    offline: bool,
    quiet: bool,
) -> None:
    """Ask the model, and add its drafts to `drafts` as they arrive."""
    from labelspace.families.drafting import ask
    from labelspace.families.writers import open_writer
    from labelspace.progress import progress_bar

    with busy(f"opening {model}", quiet=quiet):
        writer = open_writer(model, seed=seed, device=device, offline=offline or None)
    left_out = 0
    with progress_bar("asking the model", verbose=not quiet) as report:
        for done, (good, bad) in enumerate(ask(writer, space, asked), 1):
            drafts += good
            left_out += len(bad)
            report(done, len(asked))
    if not drafts:
        raise EncoderError(f"{model} gave no usable description in {len(asked)} questions; try another model.")
    if left_out:
        note(f"{left_out} texts were left out: too short or long, there already, or with another label's name.")


def _write(out: Path, labels: Path, space: LabelSpace, kept: Sequence[Draft], model: str, seed: int) -> None:
    from labelspace.families.drafting import PROMPT

    text, own = marked_file(labels, space, kept, f"draft by {model}, prompt {PROMPT}, seed {seed}")
    write_atomically(out, text)
    if not own:
        note(f"{out} was written anew, because {labels} has no room for comments; its own comments are not in it.")


def _print(
    drafts: Sequence[Draft], kept: Sequence[Draft], choice: "DraftChoice | None", out: Path | None, *, as_json: bool
) -> None:
    if as_json:
        listed = [{**asdict(draft), "kept": draft in kept} for draft in drafts]
        figures = None
        if choice is not None:
            named = {"before": choice.before, "with_drafts": choice.chosen, "with_neutral_texts": choice.control}
            figures = {"documents": choice.documents, **{name: asdict(one) for name, one in named.items()}}
        print_json({"drafts": listed, "estimate": figures, "out": None if out is None else str(out)})
        return
    for label in dict.fromkeys(draft.label for draft in drafts):
        print(f"{label}:")
        for draft in (draft for draft in drafts if draft.label == label):
            against = "" if draft.against is None else f" (against {draft.against})"
            print(f"  {'+' if draft in kept else '-'} {draft.text}{against}")
    if choice is not None:
        print(f"\n{choice}")
    where = "" if out is None else f", written to {out}"
    print(f"\nkept {len(kept)} of {len(drafts)} drafts (+){where}")
