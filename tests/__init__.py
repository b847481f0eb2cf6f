"""Tests; the folders mirror the tree of the project."""
