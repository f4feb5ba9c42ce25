"""`labelspace studio`: a page in the browser on which labels are written."""

from pathlib import Path
from typing import Annotated, Any

import typer

from labelspace.checks import check_number, import_optional
from labelspace.cli.options import (
    Delimiter,
    Device,
    Dtype,
    EncoderName,
    Offline,
    Quiet,
    TextColumn,
    TextEncoding,
    TrustRemoteCode,
    open_encoder,
)
from labelspace.cli.printing import busy, hush, note
from labelspace.config import EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import OutputError
from labelspace.folders import check_writable


def studio_command(
    labels: Annotated[
        Path, typer.Argument(metavar="LABELS", help="A YAML label file; it is started if it does not exist.")
    ],
    pool: Annotated[
        str, typer.Option(metavar="FILE", help="Documents to label: .csv, .tsv, .xlsx, .jsonl, .parquet or a glob.")
    ],
    text_column: TextColumn = "text",
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    limit: Annotated[int, typer.Option(help="Maximum number of documents, drawn at random.")] = 2000,
    encoder: EncoderName = DEFAULT_ENCODER,
    dtype: Dtype = EncodingConfig.dtype,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    port: Annotated[int, typer.Option(help="Port of the page on this machine; 0 takes a free one.")] = 8100,
    no_open: Annotated[
        bool, typer.Option("--no-open", help="Do not open the browser; print the address alone.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Write labels on a page in the browser, and see how your documents are labelled as you type.

    The page is served by this machine, to this machine alone, at an address with a secret; nothing leaves it. Edits are
    saved to LABELS, whose comments stay. Labels that you click go to a CSV file beside it. Ctrl-C ends it.
    """
    from labelspace.corpus import open_table

    hush(quiet)
    check_number("--limit", limit, least=5, whole=True)
    check_number("--port", port, least=0, most=65535, whole=True)
    purpose = "labelspace studio"
    import_optional("starlette", package="starlette", extra="serve", purpose=purpose)
    import_optional("uvicorn", package="uvicorn", extra="serve", purpose=purpose)
    from labelspace.serve.studio.label_file import LabelFile

    if not labels.absolute().parent.is_dir():
        raise OutputError(f"{labels} cannot be written: there is no folder {labels.parent}; make it first.")
    check_writable(labels)
    file = LabelFile(labels)
    dialect: Any = {"delimiter": delimiter, "encoding": encoding}
    open_table(pool, text_column=text_column, **dialect)
    from labelspace.corpus import sample_pool
    from labelspace.serve.listening import listen
    from labelspace.serve.studio.server import HOST, serve
    from labelspace.serve.studio.session import Session

    given = {"dtype": dtype, "device": device, "trust_remote_code": trust_remote_code, "offline": offline}
    with listen(HOST, port) as bound:
        opened = open_encoder(encoder, quiet=quiet, **given)
        with busy("reading", quiet=quiet):
            documents = sample_pool(pool, size=limit, seed=0, text_column=text_column, **dialect)
        session = Session(file, documents, opened, pool_file=pool, text_column=text_column, **dialect, **given)
        note("the page stays until Ctrl-C")
        try:
            serve(session, bound, tell=lambda address: print(address, flush=True), open_browser=not no_open)
        finally:
            session.close()
