"""The command line, one thin function per command. Exit codes: 0 done, 1 failed, 2 usage, 78 bad config."""

# In the order of --help.
from gateway.cli import service

# isort: split
from gateway.cli import privacy

# isort: split
from gateway.cli import simulations, studies
from gateway.cli.terminal import app

__all__ = ["app", "main", "privacy", "service", "simulations", "studies"]


def main() -> None:
    """Run the command line."""
    app()
