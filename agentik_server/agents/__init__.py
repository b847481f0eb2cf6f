"""The agents' side: processes, the ACP connection, files and terminals, the catalogue and the demo agent.

The only part of the server that knows ACP. It knows the ports and the domain's values, and no other adapter.
"""
