"""The icon is the mark, in every container."""

from __future__ import annotations

import os
import struct
from base64 import b64encode
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, sync_playwright

from installer.browser import find_browser
from installer.icon import icns, ico
from installer.program import ICON
from tests.source_tree import ROOT

PNG = (ROOT / ICON).read_bytes()
SIGNATURE = b"\x89PNG\r\n\x1a\n"
# How far two pictures of the same size are apart: the mean difference of a value of a pixel, of 255.
COMPARE = """async ([a, b]) => {
  const pixels = async (source) => {
    const image = new Image(256, 256);
    image.src = source;
    await image.decode();
    const context = new OffscreenCanvas(256, 256).getContext("2d");
    context.drawImage(image, 0, 0, 256, 256);
    return context.getImageData(0, 0, 256, 256).data;
  };
  const [one, other] = [await pixels(a), await pixels(b)];
  return one.reduce((sum, value, at) => sum + Math.abs(value - other[at]), 0) / one.length;
}"""


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Any page, in light colours, as the icon is."""
    sandbox = [] if os.name == "nt" or os.geteuid() else ["--no-sandbox"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=find_browser(), args=sandbox)
        yield browser.new_page(color_scheme="light")


def test_it_is_drawn_from_the_mark(page: Page) -> None:
    mark = (ROOT / "ui" / "assets" / "mark.svg").read_bytes()
    pictures = (("svg+xml", mark), ("png", PNG))
    urls = [f"data:image/{kind};base64,{b64encode(picture).decode()}" for kind, picture in pictures]
    assert page.evaluate(COMPARE, urls) < 1


def test_windows_container() -> None:
    content = ico(PNG)
    reserved, kind, count = struct.unpack("<HHH", content[:6])
    width, height, _, _, _, bits, length, offset = struct.unpack("<BBBBHHII", content[6:22])
    assert (reserved, kind, count, width, height, bits) == (0, 1, 1, 0, 0, 32)  # 0 is 256
    assert content[offset : offset + length] == PNG and offset + length == len(content)
    assert PNG[:8] == SIGNATURE and struct.unpack(">II", PNG[16:24]) == (256, 256)


def test_apple_container() -> None:
    content = icns(PNG)
    assert content[:4] == b"icns" and struct.unpack(">I", content[4:8]) == (len(content),)
    assert content[8:12] == b"ic08" and struct.unpack(">I", content[12:16]) == (len(content) - 8,)
    assert content[16:] == PNG
