"""Foreign text reaches no terminal with characters that it obeys."""

import json
import unicodedata

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from eddyline.printable import UNPRINTABLE, printable


@pytest.mark.parametrize("text", ["plain", "Grüße, 東京", "مرحبا", "می\u200cخواهم", "👨\u200d👩", "a\u00a0b", ""])
def test_text_that_people_write_stays_as_it_is(text: str) -> None:
    assert printable(text) == text


def test_no_control_character_and_no_surrogate_is_left() -> None:
    every = "".join(map(chr, range(0x10000)))
    left = {unicodedata.category(c) for c in printable(every)}
    assert not left & {"Cc", "Cs", "Zl", "Zp"}
    printable(every).encode()
    turns = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}
    assert not {unicodedata.bidirectional(c) for c in printable(every)} & turns


def test_the_escape_is_that_of_json_so_json_means_the_same() -> None:
    value = "\x7f\x9b31m\u202e\u2028"
    assert json.loads(printable(json.dumps(value, ensure_ascii=False))) == value


def test_characters_to_keep_stay() -> None:
    assert printable("a\n\tb\x1b", keep="\n\t") == "a\n\tb\\u001b"


def test_arrow_finds_the_same_characters() -> None:
    characters = [chr(n) for n in range(0x10000) if not 0xD800 <= n < 0xE000]
    found = pc.match_substring_regex(pa.array(characters), UNPRINTABLE).to_pylist()
    assert found == [printable(c) != c for c in characters]
