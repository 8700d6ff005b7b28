"""What the progress line and the closing sentence say of spilling."""

from __future__ import annotations

from eddyline.cli.progress import closing, line
from eddyline.runtime.reporting.summary import Progress, Summary


def test_the_line_says_how_much_is_on_disk_and_how_far_the_clean_up_is() -> None:
    assert "disk" not in line(Progress())
    assert line(Progress(groups_on_disk=3, log_bytes=2_540_000)).endswith(" | 3 groups on disk, log 2.5 MB")
    assert line(Progress(groups_on_disk=3, swept=1, to_sweep=3)).endswith("groups on disk: 1 of 3")


def test_the_closing_sentence_says_what_spilling_did() -> None:
    assert "memory" not in closing(Summary())
    done = closing(Summary(groups_left=12, sweeps=31, sweep_results=4120))
    assert done.endswith("; groups left memory 12 times, 31 sweeps made 4,120 results later")
    kept = closing(Summary(groups_left=1, groups_on_disk=1))
    ending = "; groups left memory 1 time; some results of 1 group on disk come with the next run (--final gives them)"
    assert kept.endswith(ending)
