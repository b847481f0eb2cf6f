"""From messages to lines, marks and folds. Pure: no Neovim, no I/O, no clock.

Reading order: text (what may stand in a line), markdown and diff (marks), blocks (one message), document (all of them).
The structure of a transcript is carried by blocks and marks, never by text: no text of an agent can change it.
"""
