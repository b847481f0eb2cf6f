"""Sound to text: faster-whisper's model with a window fitted to the sound. Blocking; used from worker threads only.

`transcribe()` of the library pads every clip to 30 s; here the encoder sees 8 s, or the sound and one second more:
three to ten times less work. Must not judge the text (`transcript` does) and must not touch the network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentik_server.voice.audio import SAMPLE_RATE
from agentik_server.voice.errors import VoiceRefused
from agentik_server.voice.transcript import Decoded

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Samples = NDArray[np.float32]

WORKERS = 2
"""A partial and a final text may be decoded side by side, each on one core."""

# Shorter windows make the decoder repeat itself.
_LEAST_WINDOW_S, _MOST_WINDOW_S = 8.0, 30.0
_MEL_FRAMES_PER_SECOND = 100
# Nobody says more; a loop without end would cost seconds.
_TOKENS_PER_SECOND, _TOKENS_AT_LEAST = 10, 12
_MOST_PROMPT_TOKENS = 223
_TINY_BYTES = 100_000_000


@dataclass(frozen=True, slots=True)
class Encoded:
    """The encoder's output for a sound: may be written out several times with other prompts."""

    features: Any
    seconds: float
    frames: int


class Recognizer:
    """A loaded model. `encode` and `write` may be called from `WORKERS` threads at a time."""

    def __init__(self, folder: Path) -> None:
        """Loads the model: 0.3 s for tiny.en, 1 s for base. Raises `VoiceRefused("speechModelMissing")` if broken."""
        import faster_whisper
        from faster_whisper.vad import get_vad_model

        try:
            self._model = faster_whisper.WhisperModel(
                str(folder),
                device="cpu",
                compute_type="int8",
                cpu_threads=1,
                num_workers=WORKERS,
                local_files_only=True,
            )
        except (RuntimeError, ValueError, OSError) as broken:
            reason = str(broken).strip().splitlines()[0]
            raise VoiceRefused(
                "speechModelMissing", f"the speech model in {folder} cannot be loaded ({reason}): install it again"
            ) from broken
        self._silero = get_vad_model()
        self.english_only = not self._model.model.is_multilingual
        self.is_tiny = (folder / "model.bin").stat().st_size < _TINY_BYTES

    def check_language(self, language: str) -> None:
        """Raises `VoiceRefused` when the model does not know the language ("" = none named)."""
        known = self._model.supported_languages
        if language and language not in known:
            hint = "the model knows English only" if self.english_only else f"the model knows {', '.join(known)}"
            raise VoiceRefused(
                "speechModelMissing", f'no speech model for the language "{language}": {hint} (dictation.model)'
            )

    def hears_speech(self, sound: bytes) -> bool:
        """A second opinion (Silero, 2 ms a second of sound) on clicks, music, noise that webrtcvad took for a voice."""
        import numpy as np

        samples = _samples(sound)
        probabilities = self._silero(np.pad(samples, (0, -len(samples) % 512)))
        return bool((probabilities > 0.5).sum() >= 2)

    def encode(self, sound: bytes) -> Encoded:
        """Sound as in `audio`, at most 30 s."""
        import numpy as np

        samples = _samples(sound)
        seconds = len(samples) / SAMPLE_RATE
        window = min(max(_LEAST_WINDOW_S, seconds + 1), _MOST_WINDOW_S)
        length = int(window * _MEL_FRAMES_PER_SECOND) // 2 * 2  # the encoder takes even lengths
        padded = np.pad(samples, (0, max(0, int(window * SAMPLE_RATE) - len(samples))))
        mel = self._model.feature_extractor(padded, padding=0)[:, :length]
        mel = np.pad(mel, ((0, 0), (0, length - mel.shape[1])))
        return Encoded(self._model.encode(np.ascontiguousarray(mel, dtype=np.float32)), seconds, length)

    def write(self, encoded: Encoded, *, language: str = "", beam: int = 1, prompt: str = "") -> Decoded:
        """The text of an encoded sound. `prompt`: words in whose style, and with whose spelling, it is written."""
        tokenizer = self._tokenizer(encoded, language)
        tokens = [*self._prompt_tokens(tokenizer, prompt), *tokenizer.sot_sequence, tokenizer.no_timestamps]
        most = int(encoded.seconds * _TOKENS_PER_SECOND) + _TOKENS_AT_LEAST
        result = self._model.model.generate(
            encoded.features,
            [tokens],
            beam_size=beam,
            max_length=min(self._model.max_length, len(tokens) + most),
            return_scores=True,
            return_no_speech_prob=True,
        )[0]
        written = [token for token in result.sequences_ids[0] if token < tokenizer.eot]
        text = tokenizer.decode(written).strip()
        average = result.scores[0] * len(written) / (len(written) + 1) if written else result.scores[0]
        return Decoded(text, average, result.no_speech_prob)

    def likelihood(self, encoded: Encoded, phrase: str, *, language: str = "") -> float:
        """How likely the sound says just this phrase: average log probability per token."""
        tokenizer = self._tokenizer(encoded, language)
        start = [*tokenizer.sot_sequence, tokenizer.no_timestamps]
        scores = []
        for spelling in (phrase, phrase.capitalize()):
            tokens = tokenizer.encode(f" {spelling}")
            aligned = self._model.model.align(encoded.features, start, [tokens], encoded.frames)[0]
            scores.append(sum(math.log(max(p, 1e-9)) for p in aligned.text_token_probs) / len(tokens))
        return max(scores)

    def unload(self) -> None:
        """Gives the memory back. Nothing may be asked of it afterwards."""
        self._model.model.unload_model()

    def _tokenizer(self, encoded: Encoded, language: str) -> Any:
        from faster_whisper.tokenizer import Tokenizer

        if self.english_only:
            return Tokenizer(self._model.hf_tokenizer, multilingual=False)
        if not language:
            likeliest, _ = self._model.model.detect_language(encoded.features)[0][0]
            language = likeliest.strip("<|>")
        return Tokenizer(self._model.hf_tokenizer, multilingual=True, task="transcribe", language=language)

    def _prompt_tokens(self, tokenizer: Any, prompt: str) -> list[int]:
        if not prompt:
            return []
        return [tokenizer.sot_prev, *tokenizer.encode(f" {prompt.strip()}")[-_MOST_PROMPT_TOKENS:]]


def _samples(sound: bytes) -> Samples:
    import numpy as np

    return np.frombuffer(sound, "<i2").astype(np.float32) / np.float32(32_768)
