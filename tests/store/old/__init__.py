"""Databases as older versions wrote them, one of each schema version that ever landed (see make.py)."""
