"""Plain-text tables, the width of a text as it is shown, and what stands for a long one."""

import html
from collections.abc import Sequence

MOST_NAMED = 10
"""Names told in a message: a column that is not what it is taken for has one for every row."""


def width_of(text: str) -> int:
    r"""Return the columns of a terminal that a text takes: two for a Chinese character, none for a combining mark.

    Example:
        >>> width_of("sports"), width_of("体育"), width_of("cafe\u0301")
        (6, 4, 4)
    """
    from rich.cells import cell_len

    return cell_len(text)


def shortened(text: str, most: int) -> str:
    """Return a text, or its beginning and three points.

    Example:
        >>> shortened("sports", 6), shortened("politics", 6)
        ('sports', 'pol...')
    """
    return text if len(text) <= most else text[: most - 3] + "..."


def some_of(names: Sequence[str]) -> str:
    """Return up to ten names with commas, and the number of the others.

    Example:
        >>> some_of(["a", "b"]), some_of([str(number) for number in range(12)])
        ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more')
    """
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def markdown_cell(text: str) -> str:
    r"""Return a text without the characters that end a table's cell or row in Markdown; names come from data.

    Example:
        >>> print(markdown_cell("a|b\n<c>"))
        a\|b &lt;c&gt;
    """
    return html.escape(" ".join(text.split()), quote=False).replace("|", "\\|")


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
    widths = [max(map(width_of, column)) for column in zip(*rows, strict=True)]
    lines = []
    for number, row in enumerate(rows):
        if number in rules:
            lines.append("-" * sum(widths, 2 * (len(widths) - 1)))
        cells = []
        for column, (cell, width) in enumerate(zip(row, widths, strict=True)):
            padding = " " * (width - width_of(cell))
            cells.append(cell + padding if column in left else padding + cell)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
