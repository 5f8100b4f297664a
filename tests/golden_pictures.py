"""Golden pictures of the pages: kept for a person to look at, compared loosely.

A picture is kept with few colours, and at most 60 KB. Two are compared by their ink: how far each of 24 x 24 blocks is
from the ground, and the share of all ink that stands elsewhere. Another font or browser passes; what lacks a part does
not.
`HUBBUB_GOLDEN=write` writes them anew; look at them before you commit them.
"""

from __future__ import annotations

import io
import os
from pathlib import Path

import numpy as np
from PIL import Image

FOLDER = Path(__file__).parent / "browser/golden"
PICTURES = {
    "learn-1": ("learn-1-found", "light"),
    "learn-2": ("learn-2-ten", "light"),
    "learn-3": ("learn-3", "dark"),
    "learn-4": ("learn-4-spent", "narrow"),
    "ask": ("ask", "light"),
    "ask-dark": ("ask", "dark"),
    "ask-narrow": ("ask", "narrow"),
    "ask-refused": ("ask-refused", "light"),
    "ask-not-enough": ("ask-not-enough", "narrow"),
    "ask-drowned": ("ask-drowned", "dark"),
    "waiting": ("waiting", "light"),
    "answer": ("answer", "light"),
    "answer-narrow": ("answer-99", "narrow"),
    "answer-sorted": ("answer-sorted", "dark"),
    "failed": ("failed", "light"),
    "library": ("library", "dark"),
    "mine": ("mine", "light"),
    "account": ("account", "narrow"),
    "login": ("login", "light"),
    "more": ("more", "dark"),
    "today": ("today", "light"),
    "people": ("people", "narrow"),
    "person": ("person-locked", "light"),
    "requests": ("requests", "dark"),
    "tables": ("tables", "light"),
    "incidents": ("incidents", "narrow"),
    "chain": ("chain-broken", "dark"),
    "attacks": ("attacks", "dark"),
    "charges": ("charges", "light"),
    "log": ("log", "narrow"),
}
"""Each picture: the state that it shows, and how."""
MOST_PICTURES, MOST_BYTES = 30, 60 * 1024
_BLOCKS, _MOST_ELSEWHERE, _TALLEST = 24, 0.3, 2400


def looked_at(name: str, png: bytes) -> str:
    """How a screenshot differs from the golden picture; or it is written anew, where that is wanted."""
    if os.environ.get("HUBBUB_GOLDEN") != "write":
        return compared(name, png)
    (FOLDER / f"{name}.png").write_bytes(_packed(_picture(png)))
    return ""


def compared(name: str, png: bytes) -> str:
    """How a screenshot differs from the golden picture; "" where it does not."""
    path, seen = FOLDER / f"{name}.png", _picture(png)
    if not path.exists():
        return f"there is no golden picture {path.name}; HUBBUB_GOLDEN=write writes it"
    kept = Image.open(path).convert("RGB")
    if abs(kept.width / kept.height - seen.width / seen.height) > 0.15 * kept.width / kept.height:
        return f"{path.name}: {kept.size} was kept, {seen.size} is seen"
    one, other = _ink(kept), _ink(seen)
    elsewhere = float(np.abs(one - other).sum() / np.maximum(one, other).sum())
    return "" if elsewhere <= _MOST_ELSEWHERE else f"{path.name}: {elsewhere:.2f} of the ink is elsewhere"


def _picture(png: bytes) -> Image.Image:
    seen = Image.open(io.BytesIO(png)).convert("RGB")
    return seen.crop((0, 0, seen.width, min(seen.height, _TALLEST)))


def _ink(picture: Image.Image) -> np.ndarray:
    """How far each block is from the ground, on average."""
    grey = np.asarray(picture.convert("L"), dtype=float)
    away = np.minimum(np.abs(grey - np.median(grey)), 160).astype(np.uint8)
    small = Image.fromarray(away).resize((_BLOCKS, _BLOCKS), Image.Resampling.BOX)
    return np.asarray(small, dtype=float)


def _packed(picture: Image.Image) -> bytes:
    """The picture as PNG with few colours, made narrower where it would be too large."""
    for width in (picture.width, 1024, 800, 640, 512):
        share = min(1.0, width / picture.width)
        sized = picture.resize((round(picture.width * share), round(picture.height * share)), Image.Resampling.LANCZOS)
        for colours in (64, 24):
            kept = io.BytesIO()
            sized.quantize(colours, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
            if len(kept.getvalue()) <= MOST_BYTES:
                return kept.getvalue()
    raise ValueError("the picture is too large")
