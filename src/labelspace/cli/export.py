"""`labelspace export`: a saved model as files for other runtimes."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from labelspace.checks import check_choice
from labelspace.cli.options import (
    AsJson,
    Delimiter,
    Model,
    Quiet,
    TextColumn,
    TextEncoding,
    TrustRemoteCode,
    choices,
    open_model,
)
from labelspace.cli.printing import busy, hush, print_json
from labelspace.cli.sampling import sample_rows
from labelspace.config import RUNTIMES
from labelspace.errors import InputError
from labelspace.folders import check_writable
from labelspace.header import EXPORT, check_place

_DOCUMENTS = 2_000
_SEED = 0


def export_command(
    model: Model,
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder to write; an older export is replaced.")],
    to: Annotated[str, typer.Option(metavar=choices(RUNTIMES), help="Format of the files.")] = RUNTIMES[0],
    documents: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="Documents for the check, at most 2,000 of them; none: the labels' own descriptions.",
        ),
    ] = None,
    text_column: TextColumn = "text",
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Write a model as files that ONNX Runtime or OpenVINO runs, without labelspace or torch.

    Before the files are put in place, they label documents, and the answers are compared with the model's.
    """
    hush(quiet)
    check_choice("--to", to, RUNTIMES)
    texts = None
    if documents is not None:
        from labelspace.corpus import open_table

        dialect: Any = {"delimiter": delimiter, "encoding": encoding}
        table = open_table(documents, text_column=text_column, **dialect)
        with busy("reading", quiet=quiet):
            texts, _ = sample_rows(table, _DOCUMENTS, _SEED)
        if not len(texts):
            raise InputError(f"{documents} holds no document to check the export with; give another file, or none.")
    check_place(out, EXPORT)
    check_writable(out)
    opened = open_model(model, device="cpu", trust_remote_code=trust_remote_code, quiet=quiet)
    from labelspace.classify import export

    with busy("exporting", quiet=quiet):
        done = export(opened, out, to=to, documents=texts)
    if as_json:
        print_json({**asdict(done), "path": str(done.path)})
        return
    print(f"wrote {done.path} for {'ONNX Runtime' if to == 'onnx' else 'OpenVINO'}")
    what = "documents" if texts is not None else "descriptions of the labels (no --documents were given)"
    print(
        f"{done.differ:,} of {done.texts:,} {what} get another label than in float32; "
        f"cosines differ by up to {done.largest:.1e}"
    )
