"""Boundaries, and the ends of windows that belong to them."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eddyline.bound.slide import Slide, borrowed
from tests.support.properties import examples

TIMES = st.integers(-(2**60), 2**60)
LENGTHS = st.integers(1, 10**17)


@given(TIMES, LENGTHS, LENGTHS, st.integers(-(10**17), 10**17))
@examples(300)
def test_borrowed_windows_contain_the_rows_before_their_ends(time: int, size: int, step: int, offset: int) -> None:
    """The first window is the one that ends soonest after a row; its start is a multiple of the step behind offset."""
    slide = borrowed(size, step, offset)
    end = slide.end_of(slide.first_from(time))
    assert end - step <= time < end
    assert (end - size - offset) % step == 0
    assert 0 <= slide.origin < step and slide.first_from(time) == slide.last_upto(time + step - 1)


@given(st.lists(TIMES, min_size=1), LENGTHS, st.integers(0, 10**17))
@examples(200)
def test_arrays_are_as_numbers(times: list[int], step: int, origin: int) -> None:
    slide, array = Slide(step, origin % step), np.array(times, np.int64)
    for method in (slide.number_from, slide.number_upto, slide.first_from, slide.last_upto):
        assert method(array).tolist() == [method(time) for time in times]
    assert slide.at(slide.number_from(array)).tolist() == slide.first_from(array).tolist()
