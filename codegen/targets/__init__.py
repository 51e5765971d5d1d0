"""Targets: printers of the loop IR (`ir/`), one folder for each language."""
