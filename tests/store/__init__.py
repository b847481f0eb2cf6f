"""The store, on real SQLite: every rule that must hold on the disk."""
