"""The version, alone, so that `anvil-local --version` reads nothing else."""

__version__ = "0.1.0"
