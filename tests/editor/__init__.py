"""Tests of the editor side of the server, over real pipes."""
