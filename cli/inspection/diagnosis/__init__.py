"""What a run needs of this machine: software, Java and Spark, memory, space, clock and stores, each checked.

Imports `cli.arguments`, `cli.console`, `conf`, `windowing`, `writers`. Imported by `cli.commands`.
"""
