"""Windows drawn: the panes of a scan over the rows of a table, as text and as SVG.

The way in is `draw.draw`. Rows are chosen (`selection`), a scan says which pane shows which of them (`result_panes`),
the picture of both is a value (`picture`, made by `lanes`), and `text` and `svg` are two views of it.

Imports `windowing.arguments`, `windowing.columns`, `windowing.errors`, `windowing.in_memory`, `windowing.language`,
`windowing.planning`, `windowing.sequences`, `windowing.streaming`, `windowing.support`. Imported by `cli`.
"""
