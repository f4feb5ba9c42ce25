"""Provenance of the evaluation of a model."""

from typing import Any

from labelspace.classify import BiEncoderClassifier, Classifier
from labelspace.evaluate.provenance import provenance


def origin_of(model: Classifier, data: dict[str, Any]) -> dict[str, Any]:
    """Return the provenance of a model evaluated on some data, with its pool and its encoder."""
    fit_result = getattr(model, "fit_result_", None)
    fit = fit_result.to_dict() if fit_result is not None else {}
    pool = {"source": fit["pool"], "documents": fit["pool_documents"]} if fit.get("pool") else None
    encoder = model.encoder_ if isinstance(model, BiEncoderClassifier) else None
    dtype = encoder.dtype if encoder is not None else None
    found = provenance(seeds=fit.get("seed"), data={"evaluated": data, "unlabelled_pool": pool}, dtype=dtype)
    return {**found, "encoder": encoder and encoder.describe()}
