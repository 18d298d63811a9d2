"""Runs one test by its name."""

import importlib
import sys

import anyio

MODULES = ["protocol", "sessions", "commands", "control", "programs", "tasks", "defects", "secrets_"]


def find(name):
    for module in MODULES:
        test = getattr(importlib.import_module(module), name, None)
        if test:
            return test
    raise SystemExit(f"no test is named {name}")


if __name__ == "__main__":
    anyio.run(find(sys.argv[1]))
