"""What a notebook shows of a result, and what threads of one kernel must not do to one another."""

import logging
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from xml.etree import ElementTree

import pytest
from IPython.lib.pretty import pretty

import labelspace
from labelspace import DescriptionClassifier, ZeroShotClassifier
from labelspace.errors import LabelSpaceWarning, own_filters, unsaid, warn
from labelspace.evaluate import confusion_figure, estimate, evaluate, label_similarity_figure
from labelspace.labels import lint
from labelspace.notebook import FigureFiles

LABELS = {"labels": {"sports": ["Matches and games."], "money": ["Banks and prices."]}}
TEXTS = [f"{what} {number}" for what in ("the team won", "the bank closed") for number in range(30)]
Y = ["sports"] * 30 + ["money"] * 30


@pytest.fixture
def clf(tiny_encoder_folder: Path) -> ZeroShotClassifier:
    return ZeroShotClassifier(LABELS, tiny_encoder_folder).fit()


def test_a_result_is_shown_as_it_is_printed(clf: ZeroShotClassifier):
    results = [
        evaluate(clf, TEXTS, Y, baselines=False),
        estimate(clf, TEXTS),
        clf.explain(TEXTS[0]),
        *lint({"labels": {"a": ["One."], "b": ["One."]}})[:1],
    ]
    assert len(results) == 4
    for result in results:
        assert pretty(result) == str(result)
        assert pretty([result]) == f"[{result}]"
        assert repr(result).startswith(f"{type(result).__name__}(")


def test_the_files_of_a_figure_are_shown_as_a_picture(clf: ZeroShotClassifier, tmp_path: Path):
    found = evaluate(clf, TEXTS, Y, baselines=False)
    both = confusion_figure(found, tmp_path / "both")
    assert both == (tmp_path / "both.png", tmp_path / "both.svg")
    assert isinstance(both, FigureFiles)
    assert both._repr_png_() == (tmp_path / "both.png").read_bytes()
    assert both._repr_svg_() is None, "one picture is enough"
    alone = confusion_figure(found, tmp_path / "alone.svg")
    assert (alone._repr_png_(), alone._repr_svg_()) == (None, (tmp_path / "alone.svg").read_text(encoding="utf-8"))
    (tmp_path / "alone.svg").unlink()
    assert alone._repr_svg_() is None, "it is gone, and a cell that shows it must not fail"


def test_names_of_labels_are_no_elements_of_a_picture_that_a_page_shows(tiny_encoder_folder: Path, tmp_path: Path):
    names = ["--><script>alert(1)</script>", 'x"><img src=x onerror=alert(1)> & <b>']
    clf = ZeroShotClassifier(names, tiny_encoder_folder).fit()
    (file,) = label_similarity_figure(clf, tmp_path / "names.svg")
    parts = {element.tag.rpartition("}")[2] for element in ElementTree.parse(file).iter()}
    assert "path" in parts
    assert not parts & {"script", "img", "b", "text"}
    assert "<script" not in file.read_text(encoding="utf-8"), "nor in a comment that one could end"


def test_modules_are_found_in_the_package_without_an_import_of_their_own():
    assert {"evaluate", "corpus", "classify"} <= set(dir(labelspace))
    for name in dir(labelspace):
        getattr(labelspace, name)
    with pytest.raises(AttributeError, match="no attribute 'utils'"):
        labelspace.utils  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.slow
def test_fits_in_threads_leave_the_warnings_and_the_log_of_the_process_as_they_were(tiny_encoder_folder: Path):
    logger = logging.getLogger("transformers")
    before = list(warnings.filters), logger.level

    def fit(seed: int) -> None:
        DescriptionClassifier(LABELS, tiny_encoder_folder, seed=seed, max_steps=1).fit()

    for _ in range(3):
        with ThreadPoolExecutor(4) as threads:
            list(threads.map(fit, range(4)))
    assert (list(warnings.filters), logger.level) == before


def test_of_two_threads_one_at_a_time_has_filters_of_its_own():
    before, entered, inside = list(warnings.filters), threading.Event(), []

    def other() -> None:
        entered.set()
        with own_filters():
            inside.append(list(warnings.filters) == before)

    thread = threading.Thread(target=other)
    with own_filters():
        warnings.simplefilter("ignore", ResourceWarning)
        thread.start()
        entered.wait(10)
        thread.join(0.2)
        assert not inside
    thread.join(10)
    assert inside == [True]
    assert list(warnings.filters) == before


def test_a_caller_can_leave_out_a_warning_in_its_own_thread():
    with unsaid("training"), unsaid("a view"):
        warn("training ended")
        warn("a view ended")
        with pytest.warns(LabelSpaceWarning, match="^the student"):
            warn("the student ended")
    with pytest.warns(LabelSpaceWarning, match="^training"):
        warn("training ended")
