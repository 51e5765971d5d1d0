"""Programs that show pullback at work; `python -m pullback demo` runs the digits one."""
