"""The store: the only place that knows SQL. Everything that was acknowledged is here, once (B4, B5, B58)."""
