"""`python -m labelspace`: the command line."""

from labelspace.cli import main

if __name__ == "__main__":
    main()
