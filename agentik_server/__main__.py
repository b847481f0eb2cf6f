"""`agentik-server`: the stdio server, or a maintenance command. Arguments and exit codes, nothing else."""

from __future__ import annotations

import argparse
import sys

from agentik_server import __version__


def main(argv: list[str] | None = None) -> int:
    """Returns the exit code: 0 after an orderly end, 1 after a fatal start-up error (one line on stderr)."""
    parser = argparse.ArgumentParser(prog="agentik-server", description="Agentik's server; speaks LSP frames on stdio.")
    parser.add_argument("--version", action="version", version=__version__)
    parser.add_argument("--home", help="folder of everything that is kept (also AGENTIK_HOME)")
    parser.add_argument("--vacuum", action="store_true", help="give back unused space of the database, then end")
    parser.add_argument("--settings-template", action="store_true", help="print a commented settings.json, then end")
    options = parser.parse_args(argv)
    if options.vacuum:
        return _vacuum(options.home)
    if options.settings_template:
        from agentik_server.settings import template

        sys.stdout.write(template())
        return 0
    return _serve(options.home)


def _serve(home: str | None) -> int:
    from agentik_server.editor.stdio import claim_stdio

    incoming, outgoing = claim_stdio()  # first: whatever a library prints must not reach the client
    from agentik_server.editor.server import EditorServer, run
    from agentik_server.program import Program

    editor = EditorServer(__version__)
    return run(Program(editor, editor, editor, home), editor, incoming, outgoing)


def _vacuum(home: str | None) -> int:
    from agentik_server.folders import find_folders
    from agentik_server.store.opening import StoreUnavailable
    from agentik_server.store.upkeep import vacuum

    try:
        sys.stdout.write(vacuum(find_folders(home).data) + "\n")
    except StoreUnavailable as error:
        sys.stderr.write(f"agentik-server: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
