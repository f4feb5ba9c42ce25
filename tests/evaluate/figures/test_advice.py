"""The figure of an advice: every judged description and confused pair is named, and helping differs from hurting."""

import pytest
from matplotlib.colors import to_rgb

from labelspace.consensus.signals import Range
from labelspace.evaluate import Advice, DescriptionAdvice, PairAdvice, advice_figure
from labelspace.evaluate.figures.advice import HARMS, HELPS
from pictures import greys, nothing_is_cut, words_of


def advised(count: int, pairs: int, name: str = "label") -> Advice:
    """Advice on `count` descriptions, of which ten are judged, the first half hurting."""
    return Advice(
        documents=4321,
        words=0.6,
        neighbours=0.5,
        macro_f1=Range(0.5, 0.58, 0.66),
        descriptions=tuple(
            DescriptionAdvice(
                label=f"{name}_{number}",
                text="A text of some length about something that is described here.",
                wins=1000 + number,
                leaving=5,
                coming=2,
                other=f"{name}_0",
                near=5,
                strays=2,
                among=f"{name}_0",
                words=0.0,
                neighbours=0.0,
                macro_f1=0.005 - 0.001 * number if number < 10 else None,
                cure="Keep it.",
            )
            for number in range(count)
        ),
        pairs=tuple(
            PairAdvice(labels=(f"{name}_{n}", f"{name}_{n + 1}"), confused=70 + n, between=(), words=((), ()), cure="")
            for n in range(pairs)
        ),
        notes=(),
    )


@pytest.mark.parametrize(
    ("pairs", "name"),
    [
        (0, "x"),
        (3, "a_label_whose_name_is_as_long_as_names_get"),
        pytest.param(20, "x", marks=pytest.mark.slow),
        pytest.param(20, "a_label_whose_name_is_as_long_as_names_get", marks=pytest.mark.slow),
    ],
)
def test_every_judged_description_and_every_pair_is_named(tmp_path, pairs, name):
    png, svg = advice_figure(advised(15, pairs, name), tmp_path / "advice")
    assert nothing_is_cut(png)
    words = words_of(svg)
    assert "The worst descriptions on 4,321 documents without labels" in words
    assert {f"{1000 + number:,}" for number in range(10)} <= set(words)
    assert "1,010" not in words, "it was not judged"
    assert {str(70 + number) for number in range(pairs)} <= set(words)


def test_a_long_name_leaves_room_for_the_description_and_for_the_other_name(tmp_path):
    (svg,) = advice_figure(
        advised(2, 1, "Öffentlicher Personennahverkehr und Fahrgastinformationssysteme"), tmp_path / "a.svg"
    )
    words = " ".join(words_of(svg))
    assert "Öffentlicher Personenna…: A text of some length" in words
    assert "Öffentlicher Personennahve… and Öffentlicher Personennahve…" in words


def test_hurting_and_helping_differ_in_grey_and_in_hatch():
    faces = greys([to_rgb(look["facecolor"]) for look in (HELPS, HARMS)])
    assert abs(faces[0] - faces[1]) > 0.3
    assert HELPS["hatch"] != HARMS["hatch"]


@pytest.mark.slow
def test_the_same_advice_gives_the_same_bytes(tmp_path):
    one, other = (advice_figure(advised(3, 2), tmp_path / f"{name}.svg")[0].read_bytes() for name in "ab")
    assert one == other
