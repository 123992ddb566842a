"""TO BE SAID."""
