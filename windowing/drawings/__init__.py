"""Windows drawn, as text and as SVG: rows are chosen, a scan shows its panes, and both are views of one picture."""
