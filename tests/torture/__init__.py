"""Torture: kill everything at random points, then count the messages. `python -m tests.torture --seed N` replays."""
