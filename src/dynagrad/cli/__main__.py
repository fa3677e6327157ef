"""The command line as `python -m dynagrad.cli`."""

from .commands import main

if __name__ == "__main__":
    main()
