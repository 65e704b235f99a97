"""The command line: `forestprune inspect`, `prune`, `path`, `demo` and `bench`."""


def main() -> None:
    """Run the program."""
    from forestprune.cli import trial
    from forestprune.cli.app import app

    trial.alone = True
    app(prog_name="forestprune")  # also as python -m forestprune
