"""How a table goes from one complete result to the next: prepare, publish, recover, a module for each kind of table."""
