"""The Agentik server: sessions, the durable queue, agents, the store, dictation."""
