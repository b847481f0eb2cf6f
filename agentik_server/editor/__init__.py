"""The editor side: frames on stdin and stdout, requests to the application, news to the editor.

Reading order: codec, stdio, backlog, outbox, replies, asking, server. Only `server` knows pygls.
"""
