"""The version of labelspace, read by the build and written into saved folders and results."""

__version__ = "0.2.0.dev0"
