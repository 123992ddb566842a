"""Several rules over the rows of a key, of which the first that fires ends a window (semantics section 12).

`gather` collects what each policy of a spec says of the rows; `walk` is the loop that finds the windows, with the
sums of `reach`; `events` are the marks and ticks between rows. `amounts` are those that ask for the window before, and
`previous` computes them inside of the loop, with the signs of `arithmetic`. `evict` is the loop of partition eviction
over these rules, which asks `first_end` how a window would end. They know rows and rules, and no policy.

Imports `windowing.aggregates`, `windowing.clock`, `windowing.columns`, `windowing.kinds.eviction`,
`windowing.language`, `windowing.panes`, `windowing.sequences`, `windowing.support`. Imported by
`windowing.kinds.tumbling.any_of`, `windowing.kinds.tumbling.policies`, `windowing.kinds.tumbling.policy`.
"""
