"""Tests of dictation. `speech`, `virtual_microphone`, `wav_microphone` and `scoring` serve other tests as well."""
