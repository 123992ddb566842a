"""States: units and their records, where they are kept, and the journal that commits outputs and state at once."""
