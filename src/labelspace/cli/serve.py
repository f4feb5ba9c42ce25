"""`labelspace serve`: saved models as a service over HTTP."""

from pathlib import Path
from typing import Annotated

import typer

from labelspace.checks import import_optional
from labelspace.cli.options import Device, Quiet, TrustRemoteCode
from labelspace.cli.printing import busy, hush, note
from labelspace.cli.settings import from_field
from labelspace.config import EncodingConfig, ServingConfig
from labelspace.errors import warn


def serve_command(
    models: Annotated[
        list[Path], typer.Argument(metavar="MODEL...", help="Folders of saved models; each goes by its folder's name.")
    ],
    host: Annotated[
        str, typer.Option(help="Address to serve at; 0.0.0.0 is every address of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to serve at; 0 takes a free one.")] = 8000,
    api_key_file: Annotated[
        Path | None,
        typer.Option(metavar="PATH", help="File with keys, one a line; requests must bring one of them."),
    ] = None,
    max_waiting: Annotated[int, from_field(ServingConfig, "max_waiting")] = ServingConfig.max_waiting,
    max_characters: Annotated[int, from_field(ServingConfig, "max_characters")] = ServingConfig.max_characters,
    log_texts: Annotated[bool, typer.Option("--log-texts", help="Log every text with its label, as JSON.")] = False,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    quiet: Quiet = False,
) -> None:
    """Serve saved models over HTTP: /v1/decisions, /v1/systemone, /predict, /v2/models.

    The page at / lists all paths, with a command for each. Ctrl-C or SIGTERM ends the service, after what has begun.
    """
    hush(quiet)
    config = ServingConfig(max_waiting=max_waiting, max_characters=max_characters)
    for package in ("starlette", "uvicorn", "pydantic", "prometheus_client"):
        import_optional(package, package=package.replace("_", "-"), extra="serve", purpose="labelspace serve")
    from labelspace.serve.listening import is_own_machine, listen
    from labelspace.serve.run import read_keys, serve

    keys = read_keys(api_key_file) if api_key_file else []
    with listen(host, port) as bound:
        with busy(f"opening {', '.join(map(str, models))}", quiet=quiet):
            from labelspace.serve.app import make_app
            from labelspace.serve.room import open_models

            opened = open_models(models, config, device=device, trust_remote_code=trust_remote_code)
        if not keys and not is_own_machine(host):
            warn(f"whoever reaches {host} may ask this service; ask for a key with --api-key-file.")
        app = make_app(opened, config, keys=keys, log_texts=log_texts, own_machine=is_own_machine(host))
        address = f"[{host}]" if ":" in host else host
        note(f"serving {', '.join(served.name for served in opened)} at http://{address}:{bound.getsockname()[1]}")
        serve(app, bound)
