"""How Python workers start: forked with everything loaded, without pandas; and the code sent to other machines."""
