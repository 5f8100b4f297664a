"""Changed sources, and the tests that must notice: `operators` makes the changes, `runner` runs tests on each."""
