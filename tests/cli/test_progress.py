"""What the progress line and the closing sentence say of spilling."""

from __future__ import annotations

from eddyline.cli.progress import closing, line, sweeping
from eddyline.runtime.reporting.summary import Progress, Summary


def test_the_line_says_how_much_is_on_disk_and_how_far_the_clean_up_is() -> None:
    assert "disk" not in line(Progress())
    assert line(Progress(groups_on_disk=3, log_bytes=2_540_000)).endswith(" | 3 groups on disk, log 2.5 MB")
    behind = Progress(groups_on_disk=1, results_behind_us=9_000_000)
    assert line(behind).endswith(" | 1 group on disk, log 0.0 MB, their results up to 9 s behind")


def test_the_clean_up_at_the_end_has_a_bar_and_the_time_left() -> None:
    begun = Progress(rows_out=1234, groups_on_disk=4, to_sweep=4)
    assert line(begun) == f"groups on disk: {'░' * 20} 0 of 4 swept | 1,234 out"
    half = Progress(swept=2, to_sweep=4, sweep_seconds=61.4)
    assert line(half) == f"groups on disk: {'█' * 10}{'░' * 10} 2 of 4 swept, 50 %, 1 min 1 s left | 0 out"
    done = Progress(swept=4, to_sweep=4, sweep_seconds=70)
    assert line(done) == f"groups on disk: {'█' * 20} 4 of 4 swept, 100 %, 0 s left | 0 out"
    long = sweeping(Progress(swept=250, to_sweep=256, sweep_seconds=4000))
    assert "1 min 36 s left" in long and len(long) <= 80, "on a narrow terminal, too"


def test_the_closing_sentence_says_what_spilling_did() -> None:
    assert "memory" not in closing(Summary())
    done = closing(Summary(groups_left=12, sweeps=31, sweep_results=4120))
    assert done.endswith("; groups left memory 12 times, 31 sweeps made 4,120 results later")
    kept = closing(Summary(groups_left=1, groups_on_disk=1))
    ending = "; groups left memory 1 time; some results of 1 group on disk come with the next run (--final gives them)"
    assert kept.endswith(ending)
