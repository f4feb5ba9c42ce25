"""What REZE's offline phase finds, as one value that is stored beside a model."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, final

from jaxtyping import Float, Int
from torch import Tensor

from labelspace.errors import ModelFolderError
from labelspace.geometry.relation_moments import other_width

FORMAT_VERSION = 1

# The fields that are stored as tensors, with their axes.
_TENSORS = {
    "mean": "dim",
    "eigenvectors": "dim dim",
    "eigenvalues": "dim",
    "source_counts": "source",
    "source_means": "source dim",
    "reference": "dim",
    "dispersion": "dim",
    "bands": "dim",
    "alpha": "source dim",
}


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Eigenspace:
    """What `debias` needs, and all that led to it; made by `fit_eigenspace`."""

    sources: tuple[str, ...]
    """The names of the sources; ids are positions in it."""

    settings: Mapping[str, Any]
    """`rho`, `gamma`, `eta`, `epsilon` and `centre` as given to `fit_eigenspace`."""

    mean: Float[Tensor, " dim"]
    """u, the mean of all relations."""

    eigenvectors: Float[Tensor, "dim dim"]
    """W, one eigenvector a column; its largest coordinate is positive."""

    eigenvalues: Float[Tensor, " dim"]
    """In falling order, zero or more."""

    source_counts: Int[Tensor, " source"]
    """N_s, the pairs of each source."""

    source_means: Float[Tensor, "source dim"]
    """mu, the means of the sources in the eigenspace."""

    reference: Float[Tensor, " dim"]
    """m, the median (or mean) of the source means."""

    dispersion: Float[Tensor, " dim"]
    """v, eq. 2."""

    active: int
    """k, eq. 3: the first k directions may be shrunk."""

    threshold: float
    """theta, eq. 4."""

    bands: Float[Tensor, " dim"]
    """theta_j, eq. 5."""

    alpha: Float[Tensor, "source dim"]
    """eq. 6, clipped."""

    @property
    def width(self) -> int:
        """Coordinates of a relation: twice those of an embedding."""
        return self.mean.shape[0]

    @property
    def shrunk(self) -> int:
        """How many of the factors are below 1; 0: `debias` gives back what it gets."""
        return int((self.alpha < 1).sum())

    def to_tensors(self) -> tuple[dict[str, Tensor], dict[str, str]]:
        """Return tensors and metadata, as `safetensors.torch.save_file` takes them."""
        tensors = {name: getattr(self, name).contiguous() for name in _TENSORS}
        metadata = {
            "format": "labelspace reze eigenspace",
            "format_version": str(FORMAT_VERSION),
            "sources": json.dumps(self.sources),
            "settings": json.dumps(dict(self.settings)),
            "active": json.dumps(self.active),
            "threshold": json.dumps(self.threshold),
        }
        return tensors, metadata

    @classmethod
    def from_tensors(
        cls, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None, *, width: int | None = None
    ) -> "Eigenspace":
        """Make it again from what `to_tensors` gave.

        Args:
            tensors: by name.
            metadata: as stored; None where a file had none.
            width: coordinates of the relations that it is wanted for, twice the dimension of the encoder; None: any.

        Raises:
            ModelFolderError: a newer format, another file, or tensors that do not fit each other.
            ShapeError: it was made for relations of another width.
        """
        plain = _read_metadata(metadata or {})
        gone = [name for name in _TENSORS if name not in tensors]
        if gone:
            raise ModelFolderError(f"the stored eigenspace lacks {', '.join(gone)}; copy it again, or fit it anew.")
        dim, source = tensors["mean"].shape[-1:].numel(), len(plain["sources"])
        for name in _TENSORS:
            wanted = tuple({"dim": dim, "source": source}[axis] for axis in _TENSORS[name].split())
            if tuple(tensors[name].shape) != wanted:
                raise ModelFolderError(
                    f"the stored eigenspace has {name} of shape {tuple(tensors[name].shape)} where {wanted} is needed "
                    f"({source} sources, width {dim}); copy it again, or fit it anew."
                )
        odd = [name for name in _TENSORS if not tensors[name].isfinite().all()]
        if odd or not 0 < plain["active"] <= dim:
            what = f"has values that are not finite in {', '.join(odd)}" if odd else f"says {plain['active']} of {dim}"
            raise ModelFolderError(f"the stored eigenspace {what}; copy it again, or fit it anew.")
        if width is not None and width != dim:
            raise other_width(width, dim)
        plain.update((name, tensors[name]) for name in _TENSORS)
        return cls(**plain)


def _read_metadata(metadata: Mapping[str, str]) -> dict[str, Any]:
    try:
        version = int(metadata["format_version"])
        plain = {name: json.loads(metadata[name]) for name in ("sources", "settings", "active", "threshold")}
        plain["active"] = int(plain["active"])
    except (KeyError, TypeError, ValueError) as error:
        raise ModelFolderError(
            f"this is no stored eigenspace, its metadata cannot be read ({error}); give one that labelspace wrote."
        ) from error
    if version > FORMAT_VERSION:
        raise ModelFolderError(
            f"the stored eigenspace has format {version}, and this labelspace reads {FORMAT_VERSION}; update it."
        )
    return {**plain, "sources": tuple(plain["sources"])}
