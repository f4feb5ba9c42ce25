"""`labelspace lint`: check a label file."""

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from labelspace.cli.options import (
    READING,
    AsJson,
    Delimiter,
    Dtype,
    Offline,
    Template,
    TextColumn,
    TextEncoding,
    TrustRemoteCode,
    open_encoder,
)
from labelspace.cli.pictures import check_picture
from labelspace.cli.printing import busy, console, note, print_json
from labelspace.cli.sampling import sample_rows
from labelspace.cli.settings import check_of_use
from labelspace.config import EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.encoders.registry import MULTILINGUAL
from labelspace.encoders.scripts import is_other, language_of
from labelspace.errors import ConfigError, LabelSpaceError
from labelspace.labels import Finding, LabelSpace, lint
from labelspace.shell import command_line

if TYPE_CHECKING:
    from rich.console import Console

    from labelspace.corpus import DocumentTable
    from labelspace.encoders import Encoder
    from labelspace.evaluate import Advice

SHOWN_OF_ONE_CODE = 3
_COLOURS = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def lint_command(
    context: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A label file: YAML, JSON or CSV.")],
    encoder: Annotated[
        str | None, typer.Option(help="Also compare meanings with this encoder; see `labelspace encoders`.")
    ] = None,
    pool: Annotated[
        str | None,
        typer.Option(help="Also say which descriptions hurt, on unlabelled documents: a file or a glob."),
    ] = None,
    figure: Annotated[
        Path | None, typer.Option(metavar="PATH", help="With --pool: draw it: .png, .svg or .pdf.")
    ] = None,
    text_column: TextColumn = "text",
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    template: Template = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit with 1 on warnings too.")] = False,
    show_all: Annotated[
        bool, typer.Option("--all", help="Show every finding, not only the first of each kind.")
    ] = False,
    as_json: AsJson = False,
    dtype: Dtype = EncodingConfig.dtype,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
) -> int:
    """Check a label file before training. Exits with 1 if it has errors.

    With --pool it also says what each description does on these documents, and how to mend the worst.
    """
    space = LabelSpace.from_file(file, template=template)
    table = None
    if pool is None:
        check_of_use(context, READING, "--pool")
    if pool is None and encoder is None:
        check_of_use(context, ("dtype", "trust_remote_code", "offline"), "--encoder or --pool")
    if pool is not None:
        from labelspace.corpus import open_table

        table = open_table(pool, text_column=text_column, delimiter=delimiter, encoding=encoding)
    elif figure is not None:
        raise ConfigError("--figure shows what --pool says; give --pool too.")
    check_picture("--figure", figure)
    measures = None
    if encoder is not None or table is not None:
        measures = open_encoder(
            encoder or DEFAULT_ENCODER, dtype=dtype, trust_remote_code=trust_remote_code, offline=offline
        )
    with busy("looking"):
        findings = lint(space, measures)
    counts = {severity: sum(found.severity == severity for found in findings) for severity in _COLOURS}

    def print_lint() -> None:
        _print_findings(console(), findings, show_all=show_all)
        print(f"{file}: {len(space)} labels, {sum(map(len, space.descriptions))} descriptions: {_counted(counts)}")

    try:
        advice = _advice(space, table, measures, figure)
    except LabelSpaceError:
        if not as_json:
            print_lint()  # what was found so far is not lost
        raise
    if as_json:
        facts = {"file": str(file), "name": space.name, "labels": len(space)}
        facts["descriptions"] = sum(map(len, space.descriptions))
        told = {} if advice is None else {"advice": advice.to_dict()}
        print_json({**facts, "counts": counts, "findings": [asdict(found) for found in findings], **told})
    else:
        print_lint()
        if advice is not None:
            print(f"\n{advice}")
        elif encoder is None and not counts["error"]:
            told = [text for label in space.labels for text in label.descriptions]
            foreign = language_of(told) is not None or 2 * sum(map(is_other, told)) > len(told)
            reader = MULTILINGUAL if foreign else DEFAULT_ENCODER
            command = command_line("labelspace", "lint", file, "--encoder", reader.partition("/")[2])
            note(f"meanings are compared too with: {command}")
    return int(bool(counts["error"] or (strict and counts["warning"])))


def _advice(
    space: LabelSpace, table: "DocumentTable | None", encoder: "Encoder | None", figure: Path | None
) -> "Advice | None":
    """Return what the documents say about the descriptions, and draw it; None without documents."""
    if table is None:
        return None
    from labelspace.evaluate import advice_figure, advise
    from labelspace.evaluate.quality import DOCUMENTS

    with busy("reading"):
        texts, _ = sample_rows(table, DOCUMENTS, 0)
    with busy("leaving descriptions out"):
        advice = advise(space, texts, encoder=encoder)
    if figure is not None:
        advice_figure(advice, figure)
    return advice


def _counted(counts: dict[str, int]) -> str:
    said = [f"{count} {severity}{'s' if count > 1 else ''}" for severity, count in counts.items() if count]
    return ", ".join(said) or "nothing to find fault with"


def _print_findings(screen: "Console", findings: list[Finding], *, show_all: bool) -> None:
    from rich.text import Text

    findings = sorted(findings, key=lambda found: (list(_COLOURS).index(found.severity), found.code))
    for (severity, code), group in groupby(findings, key=lambda found: (found.severity, found.code)):
        alike = list(group)
        shown = alike if show_all else alike[:SHOWN_OF_ONE_CODE]
        one_cure = len({found.cure for found in alike}) == 1
        count = f" ({len(alike)})" if len(alike) > 1 else ""
        screen.print(Text.assemble((severity, _COLOURS[severity]), " ", (code, "bold"), count))
        for found in shown:
            cure = "" if one_cure else f" {found.cure}"
            screen.print(Text(f"  {found.message}{cure}"), soft_wrap=True)
        if len(shown) < len(alike):
            screen.print(Text(f"  and {len(alike) - len(shown)} more; --all shows them", "dim"))
        if one_cure:
            screen.print(Text(f"  -> {alike[0].cure}", "green"), soft_wrap=True)
        screen.print()
