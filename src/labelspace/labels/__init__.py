"""Labels: read from a file, checked and linted. Plain Python, no encoder."""

from labelspace.labels.drafts import Draft
from labelspace.labels.finding import Finding
from labelspace.labels.label import Label
from labelspace.labels.lint import lint
from labelspace.labels.space import LabelSpace
from labelspace.labels.starter import starter_file

__all__ = ["Draft", "Finding", "Label", "LabelSpace", "lint", "starter_file"]
