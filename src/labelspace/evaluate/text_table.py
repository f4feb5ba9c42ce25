"""Plain-text tables."""

from collections.abc import Sequence


def text_table(rows: Sequence[Sequence[str]], *, left: Sequence[int] = (0,), rules: Sequence[int] = ()) -> str:
    """Lay out rows of equal length, with columns two spaces apart.

    Args:
        rows: the head, then the other rows.
        left: columns to align left; the others are aligned right, for numbers.
        rules: rows to put a line of dashes before.

    Example:
        >>> print(text_table([["data set", "F1"], ["agnews", "0.7"]], rules=[1]))
        data set   F1
        -------------
        agnews    0.7
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, row in enumerate(rows):
        if number in rules:
            lines.append("-" * sum(widths, 2 * (len(widths) - 1)))
        cells = (
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
