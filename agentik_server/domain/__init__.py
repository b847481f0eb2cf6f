"""The rules of Agentik: values and state machines without I/O, clock, randomness or async (standard library only).

Reading order: message, pending, turn, transcript, session, effects. Ids and times come in as arguments.
"""
