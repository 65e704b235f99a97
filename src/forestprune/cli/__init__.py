"""The command line: `forestprune inspect`, `prune`, `path`, `report`, `demo` and `bench`."""


def main() -> None:
    """Run the program."""
    from forestprune.cli import trial
    from forestprune.cli.app import app
    from forestprune.cli.process import own_process

    own_process()
    trial.alone = True
    app(prog_name="forestprune")  # also as python -m forestprune
