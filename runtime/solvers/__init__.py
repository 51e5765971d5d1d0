"""Equations, extremes, integrals and initial values, with derivatives with respect to what they depend on."""
