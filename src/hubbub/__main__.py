"""`python -m hubbub`: the command line, where its script is not on the path."""

from hubbub.cli.main import main

if __name__ == "__main__":
    main()
