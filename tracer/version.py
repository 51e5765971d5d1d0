"""The one place that states the version; packaging, generated headers and cache keys read it here."""

__version__ = "0.1.0"
