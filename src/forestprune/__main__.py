"""`python -m forestprune` is the command line."""

from forestprune.cli import main

if __name__ == "__main__":
    main()
