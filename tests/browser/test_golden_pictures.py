"""The golden pictures: few, small, and able to tell."""

from __future__ import annotations

import io

import pytest
from PIL import Image, ImageDraw

from golden_pictures import FOLDER, MOST_BYTES, MOST_PICTURES, PICTURES, compared


def test_there_are_few_and_each_is_small() -> None:
    kept = sorted(FOLDER.glob("*.png"))
    assert {p.stem for p in kept} == set(PICTURES)
    assert len(kept) <= MOST_PICTURES
    assert all(p.stat().st_size <= MOST_BYTES for p in kept)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_which_a_part_is_gone_is_another(name: str) -> None:
    picture = Image.open(FOLDER / f"{name}.png").convert("RGB")
    assert compared(name, _png(picture)) == ""
    bare = picture.copy()
    ground = picture.getpixel((2, picture.height - 2))
    ImageDraw.Draw(bare).rectangle((0, picture.height // 4, picture.width, picture.height * 3 // 4), fill=ground)
    assert "elsewhere" in compared(name, _png(bare))


def _png(picture: Image.Image) -> bytes:
    kept = io.BytesIO()
    picture.save(kept, "PNG")
    return kept.getvalue()
