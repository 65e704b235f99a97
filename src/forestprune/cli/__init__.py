"""The command line: `forestprune inspect`, `prune`, `path`, `demo` and `bench`."""


def main() -> None:
    """Run the program."""
    from forestprune.cli.app import app

    app()
