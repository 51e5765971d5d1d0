"""Other libraries' names for what pullback does, so that programs written for them run unchanged."""
