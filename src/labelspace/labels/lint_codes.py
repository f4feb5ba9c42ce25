"""The kinds of findings, by code, with their severities; `docs/label-files.md` says what each means."""

from labelspace.labels.finding import Finding, Severity

CODES: dict[str, Severity] = {
    "duplicate-description": "error",
    "duplicate-verbalizer": "error",
    "no-descriptions": "warning",
    "near-duplicate-description": "warning",
    "very-short-description": "warning",
    "uneven-counts": "warning",
    "name-in-other-description": "warning",
    "names-differ-by-case": "warning",
    "nearer-to-other-label": "warning",
    "overlapping-labels": "warning",
    "text-too-long": "warning",
    "few-descriptions": "info",
    "raw-name-in-verbalizer": "info",
}


def finding(code: str, labels: tuple[str, ...], message: str, cure: str, texts: tuple[str, ...] = ()) -> Finding:
    """Return a finding of this kind, with its severity."""
    return Finding(CODES[code], code, labels, message, cure, texts)
