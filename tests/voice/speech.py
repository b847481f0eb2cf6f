"""Spoken test material, made by the test: sentences said by espeak-ng, and noises. All 16 kHz, mono, 16 bit."""

from __future__ import annotations

import array
import io
import math
import random
import re
import shutil
import subprocess
import wave
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from agentik_server.voice.audio import FRAME_BYTES, SAMPLE_RATE
from agentik_server.voice.snap import words_of

VOICES = ("en-us", "en-gb", "en-us+f3", "en-gb-scotland+f2")
CAN_SPEAK = shutil.which("espeak-ng") is not None


@dataclass(frozen=True, slots=True)
class Sentence:
    """`marked`: a sentence with its identifiers in braces, as in "Rename {parse_config}"."""

    marked: str

    @property
    def written(self) -> str:
        """As it should stand in the buffer."""
        return re.sub(r"[{}]", "", self.marked)

    @property
    def spoken(self) -> str:
        """As somebody says it: identifiers as separate words."""
        return re.sub(r"\{(.*?)\}", lambda match: " ".join(words_of(match[1])), self.marked)

    @property
    def identifiers(self) -> list[str]:
        return re.findall(r"\{(.*?)\}", self.marked)


# None of these were used to choose thresholds, styles or windows.
SENTENCES = tuple(
    map(
        Sentence,
        (
            "Rename {save_draft} to {store_draft} in every module.",
            "Add a parameter called {time_limit} to {start_server}.",
            "The method {next_page} should return an empty list.",
            "Why is {MessageQueue} locked twice in the same function?",
            "Please write a test that calls {remove_session} two times.",
            "Split {render_line} into smaller functions.",
            "Check that {file_path} is inside the project folder.",
            "Catch the error in {load_history} and show a warning.",
            "Use a frozen data class for {ToolCall} instead of a dictionary.",
            "Remove the import of {old_parser} and run the linter.",
            "Move {user_name} out of the global state.",
            "Document what {wait_for_reply} does after a timeout.",
            "The button in {PermissionDialog} does nothing.",
            "Increase {buffer_size} and measure the memory again.",
            "Explain the difference between {open_stream} and {close_stream}.",
            "Replace the loop in {count_words} with a comprehension.",
        ),
    )
)

# Names that stand in view as well and are never said: a snap to one of them is false.
OTHER_NAMES = re.findall(
    r"\w+",
    """
    apply_patch build_table cache_key ClientError color_map command_line ConfigFile create_task current_line
    data_dir DEFAULT_PORT delete_row edit_mode error_message event_type fetch_all find_root first_match
    format_time get_item group_by handle_input has_changed init_logger is_empty join_path json_body key_press
    last_seen line_number list_files LogRecord main_window make_request max_retries merge_base model_name
    new_value node_id on_close open_file parse_args patch_set PathLike pop_front process_id PromptView push_back
    query_text raise_error read_only request_id reset_all result_set root_node run_tests save_as scan_dir
    select_row send_frame set_mode show_help sort_key split_view state_dir StatusLine stop_timer string_list
    sub_menu syntax_tree table_name temp_file text_width thread_pool to_json tool_bar tree_walk type_hint
    undo_step update_index url_path use_color valid_name view_port wait_until with_lock work_dir write_lock
    xml_parser yes_no zip_file
    """,
)


@lru_cache(maxsize=256)
def say(text: str, voice: str = "en-us", words_per_minute: int = 150) -> bytes:
    """What espeak-ng says, as sound in the format of `agentik_server.voice.audio`."""
    command = ["espeak-ng", "-v", voice, "-s", str(words_per_minute), "--stdout", text]
    spoken = subprocess.run(command, check=True, capture_output=True, timeout=30).stdout
    with wave.open(io.BytesIO(spoken)) as file:
        return _resampled(file.readframes(file.getnframes()), file.getframerate())


def _resampled(sound: bytes, rate: int) -> bytes:
    import numpy as np
    import soxr

    resampled: bytes = soxr.resample(np.frombuffer(sound, "<i2"), rate, SAMPLE_RATE).astype("<i2").tobytes()
    return resampled


def silence(seconds: float) -> bytes:
    return bytes(2 * int(SAMPLE_RATE * seconds))


@lru_cache
def noises(seconds: float = 10.0) -> dict[str, bytes]:
    """Sounds in which nobody speaks, by name."""
    count = int(SAMPLE_RATE * seconds)
    dice = random.Random(7)
    white = [dice.gauss(0, 1) for _ in range(count)]
    brown = [0.0]
    for step in white[1:]:
        brown.append(0.995 * brown[-1] + 0.05 * step)
    tones = (440, 523, 659, 784, 988)
    chirp = [math.sin(2 * math.pi * (200 + 150 * i / count * seconds) * i / SAMPLE_RATE) for i in range(count)]
    return {
        "silence": silence(seconds),
        "white noise": _sound(0.1 * x for x in white),
        "loud white noise": _sound(0.3 * x for x in white),
        "room noise": _sound(0.001 * x for x in white),
        "brown noise": _sound(0.3 * x for x in brown),
        "a tone": _sound(0.3 * math.sin(2 * math.pi * 440 * i / SAMPLE_RATE) for i in range(count)),
        "tones": _sound(
            0.3 * math.sin(2 * math.pi * tones[i // 4000 % len(tones)] * i / SAMPLE_RATE) for i in range(count)
        ),
        "hum": _sound(0.1 * math.sin(2 * math.pi * 50 * i / SAMPLE_RATE) for i in range(count)),
        "a chirp": _sound(0.3 * x for x in chirp),
        "key clicks": _sound(
            (0.5 * white[i] * math.exp(-(i % 2400) / 60) if i % 2400 < 400 else 0) for i in range(count)
        ),
    }


def with_noise(sound: bytes, signal_to_noise_db: float) -> bytes:
    """Speech with white noise under it."""
    samples = array.array("h", sound)
    power = sum(x * x for x in samples) / len(samples)
    spread = math.sqrt(power / 10 ** (signal_to_noise_db / 10)) / 32768
    dice = random.Random(11)
    return _sound(x / 32768 + dice.gauss(0, spread) for x in samples)


def _sound(samples: Iterable[float]) -> bytes:
    return array.array("h", (round(32767 * max(-1.0, min(1.0, x))) for x in samples)).tobytes()


def frames_of(sound: bytes) -> list[bytes]:
    """Frames of 20 ms; the last is filled up with silence."""
    padded = sound + bytes(-len(sound) % FRAME_BYTES)
    return [padded[a:b] for a, b in pairwise(range(0, len(padded) + 1, FRAME_BYTES))]


def write_wav(path: Path, sound: bytes) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(SAMPLE_RATE)
        file.writeframes(sound)
    return path
