#!/bin/sh
# System libraries that no Python package carries: PortAudio for dictation, and for the tests a virtual microphone and a voice.
# Installs them with apt where that needs no password, else says what is missing. Never fails: what is missing is skipped by tests and named by :checkhealth.
set -u
kind=${1:-voice}
[ "$(uname)" = Linux ] || exit 0   # the wheels for macOS carry PortAudio
missing=""
ldconfig -p 2>/dev/null | grep -q libportaudio || missing="libportaudio2"
if [ "$kind" = dev ]; then
  command -v pulseaudio >/dev/null 2>&1 || missing="$missing pulseaudio pulseaudio-utils libasound2-plugins"
  command -v espeak-ng >/dev/null 2>&1 || missing="$missing espeak-ng"
  command -v tmux >/dev/null 2>&1 || missing="$missing tmux"
fi
[ -n "$missing" ] || exit 0
if command -v apt-get >/dev/null 2>&1 && [ "$(id -u)" = 0 ]; then
  printf 'agentik setup: installing %s\n' "$missing"
  export DEBIAN_FRONTEND=noninteractive
  # shellcheck disable=SC2086 -- a list of package names
  { apt-get update -qq && apt-get install -y -qq --no-install-recommends $missing; } >/dev/null 2>&1 && exit 0
fi
printf 'agentik setup: for dictation install these with your package manager: %s\n' "$missing"
