"""A pre-finetuned encoder and the record of its run as a folder. No pickle is written or read.

    model/
    ├── modules.json, config.json, model.safetensors ...   a sentence-transformers model, and an `Encoder`
    ├── eigenspace.safetensors                             REZE's eigenspace; missing without the regularizer
    ├── labelspace.json                                    kind, options, seed, versions, losses, before and after
    └── README.md                                          the model card

The folder is written under another name beside the target and swapped in with one step.
"""

from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from labelspace.encoders import Encoder
from labelspace.errors import ModelFolderError
from labelspace.folders import shown_name, staged
from labelspace.geometry import Eigenspace
from labelspace.header import ENCODER, HEADER, check_place, new_header, write_header
from labelspace.text_table import markdown_cell
from labelspace.training.prefinetune.result import PrefinetuneResult

EIGENSPACE = "eigenspace.safetensors"
PACKAGES = ("torch", "transformers", "sentence-transformers")


def save_prefinetuned(
    encoder: Encoder, result: PrefinetuneResult, eigenspace: Eigenspace | None, folder: str | Path
) -> Path:
    """Write an encoder and the record of its run; a killed save leaves the old folder or the new one.

    Args:
        encoder: the encoder with the weights that `result` describes.
        result: record of the run.
        eigenspace: eigenspace of the run; None without the regularizer.
        folder: the target; replaced if it holds a pre-finetuned encoder.

    Returns:
        The folder.

    Raises:
        OutputError: it cannot be written, or holds something else; the old contents are unchanged.
    """
    folder = Path(folder)
    check_place(folder, ENCODER)
    header = new_header(ENCODER, PACKAGES, **result.to_dict())
    with staged(folder) as new:
        encoder.save(new)
        if eigenspace is not None:
            tensors, facts = eigenspace.to_tensors()
            save_file(tensors, new / EIGENSPACE, metadata=facts)
        (new / "README.md").write_text(_card(header, result), encoding="utf-8")
        write_header(new, header)
    return folder


def read_eigenspace(folder: str | Path, *, width: int | None = None) -> Eigenspace:
    """Read the eigenspace saved with an encoder.

    Args:
        folder: the encoder's folder.
        width: required width of the relations, twice the dimension of an encoder; None: any.

    Returns:
        The eigenspace, on the CPU.

    Raises:
        ModelFolderError: there is none, or it is damaged or of a newer format.
        ShapeError: it has another width.
    """
    path = Path(folder) / EIGENSPACE
    if not path.is_file():
        raise ModelFolderError(
            f"{folder} holds no {EIGENSPACE}; give the folder of an encoder that was pre-finetuned with REZE."
        )
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a dictionary
            facts = file.metadata()
    except (OSError, SafetensorError) as error:
        raise ModelFolderError(f"{path} cannot be read ({error}); it is damaged, copy or save it again.") from error
    return Eigenspace.from_tensors(tensors, facts, width=width)


def _card(header: dict[str, Any], result: PrefinetuneResult) -> str:
    weight, training = result.config.regularizer_weight, result.training
    kept = "kept close to its original geometry by REZE" if weight else "without a regularizer"
    name = shown_name(result.encoder["name"])
    lines = [
        "---",
        "library_name: sentence-transformers",
        "pipeline_tag: sentence-similarity",
        "tags:",
        "- labelspace",
        "- sentence-transformers",
        "---",
        "",
        f"# {name}, pre-finetuned",
        "",
        f"Made by labelspace {header['labelspace']} from `{name}`: moved into a domain by "
        f"anchor-positive pairs, {kept} (regularizer weight {weight:g}, {training.best_step} of "
        f"{training.total_steps} updates, seed {result.seed}).",
        "",
        "`Encoder(folder)` and `SentenceTransformer(folder)` open it. All options and losses are in "
        f"`{HEADER}`; the eigenspace of the relations, if there was one, in `{EIGENSPACE}`.",
        "",
        "## Trained on",
        "",
        "| source | pairs |",
        "|---|---|",
        *(f"| {markdown_cell(name)} | {count:,} |" for name, count in result.pairs.items()),
        "",
        "Some sources forbid commercial use; look up the licence of each before you publish the encoder.",
        "",
        f"## Before and after, on {result.measured_pairs} {result.measured_on}",
        "",
        "| | before | after |",
        "|---|---|---|",
    ]
    lines += [f"| {name} | {before} | {after} |" for name, before, after in result.table()]
    return "\n".join([*lines, "", *result.notes, ""])
