"""Plan shapes: read, written, and refused in one line."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eddyline.errors import SettingError
from eddyline.plan.tree import Tree, mjoin, parse_tree, passed, shape, span_of, weighted
from lab.fuzz.trees import random_tree
from tests.support.properties import examples

ABC = ["a", "b", "c"]


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("(a b c)", Tree((0, 1, 2))),
        ("a b c", Tree((0, 1, 2))),
        ("((a b) c)", Tree((Tree((0, 1)), 2))),
        ("(c (b a))", Tree((2, Tree((1, 0))))),
        (" ( ( b  c )a ) ", Tree((Tree((1, 2)), 0))),
        ("(a b) c", Tree((Tree((0, 1)), 2))),
        ("((A B) C)", Tree((Tree((0, 1)), 2))),
        ("(((a) b) ((c)))", Tree((Tree((0, 1)), 2))),
        ('(("a" b) c)', Tree((Tree((0, 1)), 2))),
        ("((a b)! c)", Tree((Tree((0, 1), late=True), 2))),
        ("(c(b a) !)", Tree((2, Tree((1, 0), late=True)))),
        ("(((a b))! c)", Tree((Tree((0, 1), late=True), 2))),
        ("((a b)+ c)", Tree((Tree((0, 1), grouped=True), 2))),
        ("((a b)!+ c)", Tree((Tree((0, 1), True, True), 2))),
        ("((a b) + ! c)", Tree((Tree((0, 1), True, True), 2))),
        ("((a)+ b c)", Tree((Tree((0,), grouped=True), 1, 2))),
        ("((((a))+ b)+ c)", Tree((Tree((Tree((0,), grouped=True), 1), grouped=True), 2))),
    ],
)
def test_read(text: str, tree: Tree) -> None:
    assert parse_tree(text, ABC) == tree


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("(a b c))", "plan=(a b c)): one ) too many"),
        (")", "plan=): one ) too many"),
        ("((a b) c", "plan=((a b) c: one ( is never closed"),
        ("(a () b c)", "plan=(a () b c): () has nothing in it"),
        ("(a b a c)", "plan=(a b a c): a is there twice"),
        ("(a b (A c))", "plan=(a b (A c)): A is there twice"),
        ("(a b x)", "plan=(a b x): there is no alias x; the query has a, b, c"),
        ("(a b)", "plan=(a b): c is missing"),
        ("(b)", "plan=(b): a, c is missing"),
        ("", "plan=: a, b, c is missing"),
        ("(a b c)!", "plan=(a b c)!: there is nothing above the ! of the whole tree"),
        ("((a b c)!)", "plan=((a b c)!): there is nothing above the ! of the whole tree"),
        ("((a)! b c)", "plan=((a)! b c): ! does not stand behind an operator"),
        ("(a! (b c))", "plan=(a! (b c)): ! does not stand behind an operator"),
        ("((a b)!! c)", "plan=((a b)!! c): ! does not stand behind an operator"),
        ("(!(a b) c)", "plan=(!(a b) c): ! does not stand behind an operator"),
        ("(a b c)+", "plan=(a b c)+: there is nothing above the + of the whole tree"),
        ("(a+ b c)", "plan=(a+ b c): + does not stand behind an operator"),
        ("((a)!+ b c)", "plan=((a)!+ b c): ! does not stand behind an operator"),
        ("((a b)++ c)", "plan=((a b)++ c): + does not stand behind an operator"),
        ("((a + b) c)", "plan=((a + b) c): + does not stand behind an operator"),
        ('(a b "c)', 'plan=(a b "c): there is no alias "; the query has a, b, c'),
    ],
)
def test_refused(text: str, answer: str) -> None:
    with pytest.raises(SettingError) as refused:
        parse_tree(text, ABC)
    assert str(refused.value) == answer


@examples(100)
@given(st.integers(0, 10**9), st.integers(1, 9))
def test_what_is_written_is_read_again(seed: int, sources: int) -> None:
    """Whatever the aliases are: those that are not plain stand in quotes."""
    rng = random.Random(seed)
    edges = {(i, j) for i in range(sources) for j in range(i) if rng.random() < 0.5}
    tree = random_tree(rng, sources, edges, grouped=0.5)
    names = [
        rng.choice(["a", "Order", "x y", "(", ")", "!", "a!", "+", "a+b", '"', 'say "hi"', "", "é", "-"]) + str(i)
        for i in range(sources)
    ]
    written = tree.text(names)
    assert parse_tree(written, names) == tree
    assert parse_tree(written.upper(), names) == tree
    assert parse_tree(tree.text(names[::-1]), names[::-1]) == tree


def test_one_source() -> None:
    assert parse_tree("(a)", ["a"]) == parse_tree("a", ["a"]) == mjoin(1) == Tree((0,))
    assert mjoin(1).text(["a"]) == "(a)"


def test_spans_and_what_is_below() -> None:
    tree = parse_tree("(((a b) c) (d e) f)", list("abcdef"))
    assert [below.span for below in tree.below()] == [0b11, 0b111, 0b11000]
    assert tree.span == 0b111111 and list(tree.sources()) == [0, 1, 2, 3, 4, 5]
    assert [span_of(child) for child in tree.children] == [0b111, 0b11000, 0b100000]


def test_late_operators_leave_selections_to_those_above() -> None:
    selections = [0b11, 0b110, 0b1, 0b1000]
    for text, done in {
        "(((a b) c) d)": {0b11: 0b101, 0b111: 0b111, 0b1111: 0b1111},
        "(((a b)! c) d)": {0b11: 0, 0b111: 0b111, 0b1111: 0b1111},
        "(((a b) c)! d)": {0b11: 0b101, 0b111: 0b101, 0b1111: 0b1111},
        "(((a b)! c)! d)": {0b11: 0, 0b111: 0, 0b1111: 0b1111},
        "((a b)! (c d))": {0b11: 0, 0b1100: 0b1000, 0b1111: 0b1111},
    }.items():
        assert passed(parse_tree(text, "abcd"), selections) == done, text


def test_late_is_part_of_a_tree() -> None:
    late, early = parse_tree("((a b)! c)", ABC), parse_tree("((a b) c)", ABC)
    assert late != early and late.text(ABC) == "((a b)! c)" and early.text(ABC) == "((a b) c)"
    assert eval(repr(late)) == late and eval(repr(early)) == early


def test_so_is_grouped() -> None:
    plain = parse_tree("((a b) c)", ABC)
    for text in ("((a b)+ c)", "((a b)!+ c)"):
        tree = parse_tree(text, ABC)
        assert tree != plain and tree.text(ABC) == text and eval(repr(tree)) == tree


def test_weights_go_up() -> None:
    for text, spans in {
        "(((a b) c) d)": set[int](),
        "(((a b)+ c) d)": {0b11, 0b111},
        "(((a b) c)+ d)": {0b111},
        "((a b)+ (c d))": {0b11},
        "(a (b c)+ d)": {0b110},
    }.items():
        assert weighted(parse_tree(text, "abcd")) == spans, text


def test_a_wrong_tree_cannot_be_made() -> None:
    with pytest.raises(AssertionError, match="twice"):
        Tree((Tree((0, 1)), 1))
    with pytest.raises(AssertionError, match="joins nothing"):
        Tree((Tree((0,)), 1))


def test_what_the_setting_asks_for() -> None:
    assert shape("auto", ABC) == shape("mjoin", ABC) == mjoin(3)
    assert shape("((a b) c)", ABC) == Tree((Tree((0, 1)), 2))
    with pytest.raises(SettingError, match="there is no alias mjoin"):
        shape("(mjoin)", ABC)
