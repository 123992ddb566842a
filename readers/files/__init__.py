"""Input files: finds, opens and checks them, divides text files into byte ranges, recognises results of wincli."""
