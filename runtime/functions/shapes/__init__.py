"""Functions that give the same elements another shape or order, join them or take parts."""
