"""All planted faults fit the code. tests/lab/planted/test_noticed.py plants some of them."""

from __future__ import annotations

from collections import Counter

import pytest

from lab.planted.main import ROOT, UnfitFault, faults


def test_every_fault_fits_the_code_and_names_a_test() -> None:
    """If you change a line that a fault replaces, make the fault again in the new text."""
    wrong = []
    for fault in faults():
        try:
            fault.planted((ROOT / fault.file).read_text(encoding="utf-8"))
        except (UnfitFault, FileNotFoundError) as unfit:
            wrong.append(f"{fault}: {unfit}")
        file, _, test = fault.test.partition("::")
        if not (ROOT / file).exists() or f"def {test}(" not in (ROOT / file).read_text(encoding="utf-8"):
            wrong.append(f"{fault}: there is no test {fault.test}")
        if fault.old == fault.new or not fault.breaks:
            wrong.append(f"{fault}: it does not say what it breaks, or breaks nothing")
    assert not wrong, "\n".join(wrong)


def test_there_are_many() -> None:
    found = Counter(fault.area for fault in faults())
    assert found["migration"] >= 32 and found["spill"] >= 33 and found["balance"] >= 44 and found["engine"] >= 24
    assert len({str(fault) for fault in faults()}) == len(faults())


def test_a_text_that_is_there_twice_is_refused() -> None:
    fault = faults()[0]
    for text in ("", fault.old * 2):
        with pytest.raises(UnfitFault, match="times in src/eddyline/"):
            fault.planted(text)
    assert fault.planted(f"a{fault.old}b") == f"a{fault.new}b"
