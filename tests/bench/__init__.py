"""How fast it is: `python -m tests.bench [name...]` runs each module here that has `run()`; each prints one table."""
