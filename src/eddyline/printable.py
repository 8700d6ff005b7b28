"""Text that came from outside (data, files, records, other systems), made safe to print.

A terminal obeys control characters, and characters that change the direction of text or have no width can make a line
look like another. `printable` replaces each of them by its JSON escape. Whatever prints foreign text passes it through
here, so the escape is the same everywhere, and printed JSON means the same as before.
"""

from __future__ import annotations

import re

UNPRINTABLE = "[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060\u2066-\u2069\ufeff]"
"""These characters, as a regular expression of Python and of RE2. The joiners U+200C and U+200D are not among them:
words of some languages, and emojis, need them."""
_UNPRINTABLE = re.compile(f"{UNPRINTABLE[:-1]}\ud800-\udfff]")
_SHORT = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def printable(text: str, keep: str = "") -> str:
    """The text with unprintable characters escaped, except those in `keep`.

    >>> printable("a\\x1b[31m\\u202e\\n")
    'a\\\\u001b[31m\\\\u202e\\\\n'
    >>> printable("two\\nlines", keep="\\n")
    'two\\nlines'
    """
    return _UNPRINTABLE.sub(lambda found: found[0] if found[0] in keep else _escape(found[0]), text)


def _escape(character: str) -> str:
    """The escape of one character of the Basic Multilingual Plane."""
    return _SHORT.get(character) or f"\\u{ord(character):04x}"
