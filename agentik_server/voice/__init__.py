"""Dictation: speech to text for the compose buffer, offline. The only package that knows sound.

Importing it loads no sound library; the extra `voice` may be missing until a dictation is started.
"""

from __future__ import annotations

from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.health import check
from agentik_server.voice.service import DictationService
from agentik_server.voice.settings import DictationSettings

__all__ = ["DictationService", "DictationSettings", "VoiceRefused", "check"]
