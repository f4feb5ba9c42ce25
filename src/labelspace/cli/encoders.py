"""`labelspace encoders`: the known encoders and their properties."""

from dataclasses import asdict

from labelspace.cli.options import AsJson
from labelspace.cli.printing import console, print_json


def encoders_command(as_json: AsJson = False) -> None:
    """List the encoders that labelspace knows by name. Any other sentence-transformers name or folder works too."""
    from labelspace.encoders import DEFAULT_ENCODER, KNOWN_ENCODERS
    from labelspace.encoders.resolve import where

    places = {spec.name: where(spec) for spec in KNOWN_ENCODERS}
    if as_json:
        print_json(
            [
                {**asdict(spec), "default": spec.name == DEFAULT_ENCODER, "runs_here": places[spec.name]}
                for spec in KNOWN_ENCODERS
            ]
        )
        return
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("name", no_wrap=True)
    for heading, justify in (
        ("size", "right"),
        ("dim", "right"),
        ("pool", "left"),
        ("tokens", "right"),
        ("licence", "left"),
        ("lang", "right"),
        ("code", "left"),
        ("here", "left"),
    ):
        table.add_column(heading, justify=justify, no_wrap=True)  # pyright: ignore[reportArgumentType]
    for spec in KNOWN_ENCODERS:
        table.add_row(
            spec.short_name,
            f"{spec.parameters / 1e6:.0f}M",
            str(spec.dimension),
            spec.pooling,
            str(spec.max_tokens or "-"),
            spec.licence,
            "en" if spec.languages == "English" else spec.languages,
            "own" if spec.remote_code else "-",
            places[spec.name] or ("login" if spec.gated else "-"),
        )
    console().print(table)
    print(
        "\nlang: en for English only, or about how many languages. own code: needs --trust-remote-code. here: which\n"
        f"copy this machine has; -: it would be downloaded. Default: {DEFAULT_ENCODER}. More: --json."
    )
