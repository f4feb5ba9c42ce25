"""A classifier as a service, and a page to write labels in."""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = ["running"]

if TYPE_CHECKING:
    from labelspace.serve.run import running

__getattr__ = late_names(__name__, {"run": "running"})
