"""The Agentik server: sessions, the durable queue, agents, the store, dictation."""

__version__ = "0.1.0"
"""As in pyproject.toml. Not asked of the package's metadata: the plugin runs from its folder, where it has none."""
