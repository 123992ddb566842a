"""The start of Python workers: forked with everything loaded, without pandas; and the code sent to other machines."""
