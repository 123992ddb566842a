"""What may be typed: the options of the commands, their help page, completion, and variables of the environment."""
