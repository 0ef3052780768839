"""Figures as Vega-Lite, drawn from the numbers of a JSON document."""
