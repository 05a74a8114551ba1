"""Tables, plots, the HTML page, exports."""
