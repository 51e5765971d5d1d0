"""Generated source in the terminal: highlighted there, untouched in a pipe or a file."""

import sys


def print_source(source: str, language: str = "python") -> None:
    """Print `source`, in colours where standard output is a terminal.

    `language` is "python", or "text" for what is not code (a graph, an explanation).
    """
    if not sys.stdout.isatty():
        print(source)
        return
    from rich.console import Console  # rich takes a tenth of a second to load
    from rich.syntax import Syntax

    Console().print(Syntax(source, language, theme="ansi_dark", background_color="default", word_wrap=True))
