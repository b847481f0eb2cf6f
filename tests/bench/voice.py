"""How fast, right and cheap dictation is: `python -m tests.bench.voice` prints a table within three minutes.

Each row is measured in a process of its own (CPU and memory are that process's). "live" is the whole service in real
time, over a virtual microphone where pulseaudio is there, else over a paced one; "stock" is faster-whisper's own
`transcribe()` on the same utterances, its latency computed as the silence that ends an utterance plus its decoding.
The sentences are said by espeak-ng, and none of them was used to choose a threshold.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from agentik_server.voice import DictationService, DictationSettings, VoiceRefused, models
from agentik_server.voice.audio import SAMPLE_RATE, from_decibels, loudness, seconds_in
from agentik_server.voice.microphone import Deliver, Lost, Microphone, SoundDeviceMicrophone
from agentik_server.voice.segmenter import LOUDNESS_GATE_DB, Timing
from tests.voice import virtual_microphone
from tests.voice.recorder import Recorder
from tests.voice.scoring import percentile, word_error_rate
from tests.voice.speech import CAN_SPEAK, OTHER_NAMES, SENTENCES, VOICES, Sentence, noises, say, silence, write_wav
from tests.voice.wav_microphone import WavMicrophone

MODELS = ("tiny.en", "base")
GAP_S = 0.9
GOALS = "goals for tiny.en on 2 cores: p50 <= 400 ms, p95 <= 700 ms, <= 0.5 core, WER <= stock, identifiers >= 60 %"
NAMES = [name for sentence in SENTENCES for name in sentence.identifiers] + OTHER_NAMES

Measured = dict[str, Any]


def run() -> None:
    """Measures and prints."""
    if reason := _cannot_run():
        print(f"dictation: skipped, {reason}")
        return
    over = "a paced microphone" if virtual_microphone.missing() else "a virtual microphone"
    print(f"dictation, {len(SENTENCES)} sentences about code in {len(VOICES)} voices, over {over}")
    print(f"{'':26}{'WER':>6}{'names':>7}{'p50':>6}{'p95':>6}{'1st':>6}{'loop':>6}{'cores':>7}{'MB':>5}")
    for model in MODELS:
        if not _is_installed(model):
            print(f"{model}: not installed, skipped")
            continue
        sentences = len(SENTENCES) if model == MODELS[0] else len(SENTENCES) // 2
        _print_row(f"{model} live, {sentences} said", _measure("live", model, sentences))
        _print_row(f"{model} decoded, 32 clips", _measure("decoded", model))
        _print_row(f"{model} stock, 32 clips", _measure("stock", model))
        heard = _measure("noise", model)
        print(f"{model}: {len(heard['texts'])} texts from 10 s each of {heard['noises']} noises {heard['texts'] or ''}")
    print("WER and names (identifiers right) in %; p50, p95: end of speech to final text, 1st: voice to first partial,")
    print("loop: longest time the event loop was held, all in ms; cores: CPU by time; MB: peak memory")
    print(GOALS)


def _cannot_run() -> str | None:
    if any(importlib.util.find_spec(module) is None for module in ("faster_whisper", "sounddevice", "webrtcvad")):
        return "the extra `voice` is not installed"
    return None if CAN_SPEAK else "espeak-ng is missing"


def _is_installed(model: str) -> bool:
    try:
        return not isinstance(models.find(model), models.Remote)
    except VoiceRefused:
        return False


def _measure(kind: str, model: str, sentences: int = 0) -> Measured:
    command = [sys.executable, "-m", "tests.bench.voice", kind, model, str(sentences)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=150, check=False)
    if done.returncode:
        raise RuntimeError(f"{kind} {model} failed:\n{done.stderr}")
    measured: Measured = json.loads(done.stdout.splitlines()[-1])
    return measured


def _print_row(title: str, row: Measured) -> None:
    def cell(name: str, width: int, shape: str = ".0f") -> str:
        return f"{row[name]:{width}{shape}}" if name in row else f"{'-':>{width}}"

    latency = cell("p50", 6) + cell("p95", 6) + cell("first", 6) + cell("loop", 6)
    print(f"{title:26}{cell('wer', 6, '.1f')}{cell('names', 7)}{latency}{cell('cores', 7, '.2f')}{cell('mb', 5)}")


# In the child processes.


def _said(sentence: Sentence, position: int) -> bytes:
    return say(sentence.spoken, VOICES[position % len(VOICES)])


def _clips() -> list[tuple[Sentence, bytes]]:
    """Every sentence in two voices."""
    return [(s, _said(s, i + shift)) for shift in (0, 1) for i, s in enumerate(SENTENCES)]


def _score(pairs: list[tuple[Sentence, str]]) -> Measured:
    wanted = [name for sentence, _ in pairs for name in sentence.identifiers]
    right = sum(name in text for sentence, text in pairs for name in sentence.identifiers)
    rate = word_error_rate((sentence.written, text) for sentence, text in pairs)
    return {"wer": 100 * rate, "names": 100 * right / len(wanted)}


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _decode_all(decode: Callable[[bytes], str]) -> Measured:
    """WER and time of decoding alone: CPU by the time it took to say, latency as if decoding began at the end."""
    clips = _clips()
    decode(clips[0][1])  # what is imported or made on first use is not measured
    texts: list[str] = []
    times: list[float] = []
    cpu = _cpu_s()
    for _, sound in clips:
        began = time.perf_counter()
        texts.append(decode(sound))
        times.append(1000 * (time.perf_counter() - began) + Timing().end_ms)
    cores = (_cpu_s() - cpu) / sum(seconds_in(sound) for _, sound in clips)
    latency = {"p50": percentile(times, 0.5), "p95": percentile(times, 0.95)}
    scored = _score([(sentence, text) for (sentence, _), text in zip(clips, texts, strict=True)])
    return {**scored, **latency, "cores": cores, "mb": _peak_mb()}


def stock(model: str) -> Measured:
    import faster_whisper
    import numpy as np

    folder = models.obtain(models.find(model), lambda *_: None).folder
    whisper = faster_whisper.WhisperModel(str(folder), device="cpu", compute_type="int8")

    def decode(sound: bytes) -> str:
        samples = np.frombuffer(sound, "<i2").astype(np.float32) / 32768
        segments, _ = whisper.transcribe(samples, language="en")
        return " ".join(segment.text.strip() for segment in segments)

    return _decode_all(decode)


def decoded(model: str) -> Measured:
    """Our recognizer, without a microphone."""
    from agentik_server.voice.engine import SpeechEngine
    from agentik_server.voice.snap import SoundIndex

    with asyncio.Runner() as runner:
        engine = SpeechEngine(DictationSettings(model=model), lambda *_: None)
        index = SoundIndex(NAMES)
        runner.run(engine.load("en"))
        measured = _decode_all(
            lambda sound: runner.run(engine.transcribe(sound, index, final=True, language="en")).text
        )
        measured.pop("p50"), measured.pop("p95")  # live has the real ones
        runner.run(engine.close())
    return measured


def noise(model: str) -> Measured:
    """Through the whole service, faster than real time."""
    kinds = noises(10)
    sound = b"".join(noise + silence(1) for noise in kinds.values())
    recorder = Recorder()

    async def listen() -> None:
        microphone = WavMicrophone(sound)
        settings = DictationSettings(model=model)
        service = DictationService(recorder.emit, settings, microphone=lambda: microphone)
        dictation = await service.start("en", hotwords=NAMES)
        await asyncio.to_thread(microphone.delivered.wait)
        await service.stop(dictation)
        await service.close()

    asyncio.run(listen())
    return {"texts": recorder.finals, "noises": len(kinds)}


class Tap:
    """A microphone that notes when loud frames came out of another."""

    def __init__(self, inner: Microphone) -> None:
        self._inner = inner
        self.loud_at: list[float] = []

    @property
    def heard_at(self) -> float:
        return self._inner.heard_at

    def open(self, device: str, deliver: Deliver, lost: Lost) -> None:
        gate = from_decibels(LOUDNESS_GATE_DB)

        def note(frame: bytes) -> None:
            if loudness(frame) > gate:
                self.loud_at.append(time.monotonic())
            deliver(frame)

        self._inner.open(device, note, lost)

    def close(self) -> None:
        self._inner.close()


def live(model: str, count: int) -> Measured:
    """The whole service in real time."""
    clips = [(sentence, _said(sentence, position)) for position, sentence in enumerate(SENTENCES[:count])]
    sound = b"".join(clip + silence(GAP_S) for _, clip in clips) + silence(0.5)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        wav = write_wav(folder / "all.wav", sound)
        if virtual_microphone.missing():
            tap = Tap(WavMicrophone(sound, paced=True))
            speak: Callable[[], object] = lambda: None  # noqa: E731 -- it speaks from the start
        else:
            virtual = stack.enter_context(virtual_microphone.VirtualMicrophone())
            stack.enter_context(virtual.in_this_process())
            tap = Tap(SoundDeviceMicrophone())
            speak = lambda: virtual.speak(wav)  # noqa: E731
        return asyncio.run(_listen(model, tap, speak, clips, seconds_in(sound)))


async def _listen(
    model: str, tap: Tap, speak: Callable[[], object], clips: list[tuple[Sentence, bytes]], seconds: float
) -> Measured:
    recorder = Recorder()
    service = DictationService(recorder.emit, DictationSettings(model=model), microphone=lambda: tap)
    dictation = await service.start("en", hotwords=NAMES)
    await recorder.until_state("listening")
    began, cpu = time.monotonic(), _cpu_s()
    speak()
    stalls = await _watch_loop(seconds + 1)
    cores = (_cpu_s() - cpu) / (time.monotonic() - began)
    await service.stop(dictation)
    await service.close()
    return {**_live_figures(recorder, tap.loud_at, clips), "loop": 1000 * max(stalls), "cores": cores, "mb": _peak_mb()}


async def _watch_loop(seconds: float) -> list[float]:
    """By how much a task was late that wanted to run every 5 ms."""
    loop = asyncio.get_running_loop()
    late: list[float] = []
    end = loop.time() + seconds
    while (now := loop.time()) < end:
        await asyncio.sleep(0.005)
        late.append(loop.time() - now - 0.005)
    return late


def _live_figures(recorder: Recorder, loud_at: list[float], clips: list[tuple[Sentence, bytes]]) -> Measured:
    """Times are told apart by the clip in which they fall: the first loud frame fixes where the sound began."""
    borders = [0.0]
    for _, clip in clips:
        borders.append(borders[-1] + seconds_in(clip) + GAP_S)
    start = loud_at[0] - _first_loud_s(clips[0][1])

    def clip_at(moment: float) -> int:
        return max(i for i, border in enumerate(borders) if border <= moment - start or i == 0)

    texts = [""] * len(borders)
    waits: list[float] = []
    firsts: dict[int, float] = {}
    for (name, params), told_at in zip(recorder.told, recorder.times, strict=True):
        before = [at for at in loud_at if at <= told_at]
        if name == "dictationFinal":
            waits.append(1000 * (told_at - before[-1]))
            texts[clip_at(before[-1])] += f" {params['text']}"
        elif name == "dictationPartial" and params["text"]:
            index = clip_at(before[-1])
            voice_began = next(at for at in loud_at if clip_at(at) == index)
            firsts.setdefault(index, 1000 * (told_at - voice_began))
    scored = _score([(sentence, texts[i]) for i, (sentence, _) in enumerate(clips)])
    latency = {"p50": percentile(waits, 0.5), "p95": percentile(waits, 0.95)}
    return {**scored, **latency, "first": percentile(list(firsts.values()), 0.5)}


def _first_loud_s(sound: bytes) -> float:
    step = 2 * SAMPLE_RATE // 50
    gate = from_decibels(LOUDNESS_GATE_DB)
    return next(i for i in range(0, len(sound), step) if loudness(sound[i : i + step]) > gate) / (2 * SAMPLE_RATE)


def _child(kind: str, model: str, count: str) -> Measured:
    match kind:
        case "live":
            return live(model, int(count))
        case "decoded":
            return decoded(model)
        case "stock":
            return stock(model)
        case "noise":
            return noise(model)
        case _:
            raise ValueError(kind)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        print(json.dumps(_child(*sys.argv[1:])))
    else:
        run()
