"""The command line: `forestprune inspect`, `prune`, `polish`, `path`, `report`, `demo`, `bench`."""


def main() -> None:
    """Run the program."""
    from forestprune.cli.app import app
    from forestprune.system.processes import own_process

    own_process()
    app(prog_name="forestprune")  # also as python -m forestprune
