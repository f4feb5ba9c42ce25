"""The page by keyboard: every key goes where it was meant, nothing typed is lost, and the focus stays."""

import csv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labelspace import Encoder
from serve.studio.conftest import POOL, Studio, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture
def studio(browser: Any, encoder: Encoder, label_file: Path, tmp_path: Path, unused_port: int) -> Iterator[Studio]:
    documents = tmp_path / "docs.csv"
    documents.write_text("text\n" + "\n".join(POOL) + "\n", encoding="utf-8")
    opened = Studio(label_file, documents, browser, encoder, unused_port)
    opened.answered()
    yield opened
    opened.close()
    assert opened.errors == []


def descriptions(studio: Studio, label: int) -> tuple[str, ...]:
    return studio.session.file.draft.labels[label].descriptions


def until(studio: Studio, holds: Callable[[], bool]) -> None:
    """Wait until something holds, while the browser goes on."""
    wait_for(lambda: studio.page.wait_for_timeout(20) or holds())


def focused(studio: Studio) -> str:
    return studio.page.evaluate("document.activeElement.id || document.activeElement.tagName")


def clicks(studio: Studio) -> list[str]:
    """Return the labels that the file of clicks holds."""
    file = studio.session.file.path.with_name("labels.clicks.csv")
    return [row["label"] for row in csv.DictReader(file.read_text().splitlines())] if file.is_file() else []


def hold_an_edit(studio: Studio) -> list[Any]:
    """Return where the next edit waits until it is let through; those after it go through."""
    held: list[Any] = []
    studio.page.route("**/api/edit", lambda route: held.append(route) if not held else route.continue_())
    return held


def test_what_is_typed_after_a_description_was_emptied_goes_where_the_cursor_is(studio: Studio):
    before = descriptions(studio, 0)
    held = hold_an_edit(studio)
    studio.at("#label-0-description-0").fill("")
    studio.at("#label-1-description-0").click()
    studio.wait_for(held)
    studio.page.keyboard.press("Control+End")
    studio.page.keyboard.type(" Loans")
    held[0].continue_()
    until(studio, lambda: descriptions(studio, 0) == before[1:])
    studio.page.keyboard.type(" are dear.")
    until(studio, lambda: descriptions(studio, 1)[0].endswith(" Loans are dear."))
    assert descriptions(studio, 0) == before[1:]
    studio.page.unroute("**/api/edit")


def test_what_is_typed_while_a_rename_is_answered_is_kept(studio: Studio):
    held = hold_an_edit(studio)
    studio.at("#label-0-name").fill("games")
    studio.at("#label-0-phrase").click()
    studio.wait_for(held)
    studio.page.keyboard.type("games of")
    held[0].continue_()
    studio.page.keyboard.type(" a team")
    until(studio, lambda: studio.session.file.draft.labels[0].phrase == "games of a team")
    assert studio.session.file.draft.labels[0].name == "games"
    assert studio.at("#label-0-phrase").input_value() == "games of a team"
    studio.page.unroute("**/api/edit")


def test_an_edit_that_got_no_answer_is_called_unsaved_and_sent_again(studio: Studio):
    studio.page.route("**/api/edit", lambda route: route.abort())
    field = studio.at("#label-0-description-0")
    field.fill("A team wins.")
    studio.page.wait_for_selector('#saved:has-text("not saved yet")')
    assert "does not answer" in studio.at("#problem").inner_text()
    field.fill("A team wins a cup.")
    studio.page.wait_for_timeout(300)
    assert "does not answer" in studio.at("#problem").inner_text()
    studio.page.unroute("**/api/edit")
    until(studio, lambda: descriptions(studio, 0)[0] == "A team wins a cup.")
    studio.page.wait_for_selector("#problem", state="hidden")
    assert studio.at("#saved").inner_text() == "saved"
    assert field.input_value() == "A team wins a cup."
    studio.errors.clear()  # Chromium's own lines about the requests that were broken off


def test_an_edit_whose_answer_was_lost_is_made_once_and_what_was_typed_since_is_kept(studio: Studio):
    before = descriptions(studio, 0)

    def lose(route: Any) -> None:
        route.fetch()
        route.abort()

    studio.page.route("**/api/edit", lose)
    field = studio.at("#label-0-description-0")
    field.fill("A team wins.")
    studio.page.wait_for_selector('#saved:has-text("not saved yet")')
    assert descriptions(studio, 0)[0] == "A team wins."
    field.press_sequentially(" A cup.")
    studio.at("#label-0-description-2").fill("A third.")
    studio.page.unroute("**/api/edit")
    wanted = ("A team wins. A cup.", *before[1:], "A third.")
    until(studio, lambda: descriptions(studio, 0) == wanted)
    studio.page.wait_for_selector("#problem", state="hidden")
    assert field.input_value() == "A team wins. A cup."
    studio.errors.clear()


def test_a_silence_of_the_studio_is_told_until_it_answers_again(studio: Studio):
    studio.page.route("**/api/status", lambda route: route.abort())
    studio.page.wait_for_selector('#problem:has-text("does not answer")')
    studio.page.unroute("**/api/status")
    studio.page.wait_for_selector("#problem", state="hidden")
    studio.errors.clear()


def test_a_name_that_is_refused_stays_in_its_field_with_the_reason(studio: Studio):
    name = studio.at("#label-0-name")
    name.fill("money")
    name.press("Tab")
    studio.page.wait_for_selector("#label-0-name[aria-invalid=true][aria-errormessage=problem]")
    assert "money" in studio.at("#problem").inner_text()
    assert name.input_value() == "money"
    name.fill("games")
    name.press("Tab")
    until(studio, lambda: studio.session.file.draft.labels[0].name == "games")
    studio.page.wait_for_selector("#problem", state="hidden")
    assert studio.at("[aria-invalid]").count() == 0
    studio.errors.clear()  # Chromium's own line about the answer 422


def test_a_reason_stays_beside_its_refused_name_while_other_fields_are_edited(studio: Studio):
    studio.at("#label-0-name").fill("money")
    studio.at("#label-0-name").press("Tab")
    studio.page.wait_for_selector("#label-0-name[aria-invalid=true]")
    studio.at("#label-1-description-0").fill("A bank closes.")
    until(studio, lambda: descriptions(studio, 1)[0] == "A bank closes.")
    studio.page.wait_for_timeout(200)
    assert studio.at("#label-0-name").input_value() == "money"
    assert "money" in studio.at("#problem").inner_text()
    studio.errors.clear()


def test_a_text_that_was_meant_for_a_removed_label_stays_on_no_other(studio: Studio):
    held = hold_an_edit(studio)
    kept = studio.session.file.draft.labels[1]
    studio.at("#label-0-name").locator("xpath=..").get_by_role("button").click()
    studio.wait_for(held)
    studio.at("#label-0-phrase").fill("matches")
    held[0].continue_()
    studio.page.wait_for_selector('#problem:has-text("have changed since the page showed them")')
    studio.page.wait_for_selector("#label-1-name", state="detached")
    assert studio.session.file.draft.labels == (kept,)
    until(studio, lambda: studio.at("#label-0-phrase").input_value() == (kept.phrase or ""))
    studio.page.unroute("**/api/edit")
    studio.errors.clear()


def test_no_undo_waits_behind_an_edit_that_got_no_answer(studio: Studio):
    studio.at("#label-1-description-0").fill("A bank closes.")
    until(studio, lambda: descriptions(studio, 1)[0] == "A bank closes.")
    studio.page.route("**/api/edit", lambda route: route.abort())
    studio.at("#label-0-description-0").fill("A team wins.")
    studio.page.wait_for_selector('#saved:has-text("not saved yet")')
    for _ in range(3):
        studio.page.keyboard.press("Control+z")
        studio.page.wait_for_timeout(100)
    studio.page.unroute("**/api/edit")
    until(studio, lambda: descriptions(studio, 0)[0] == "A team wins.")
    studio.page.wait_for_timeout(300)
    assert descriptions(studio, 1)[0] == "A bank closes."
    studio.errors.clear()


def test_a_tab_goes_on_with_a_studio_that_was_started_again(studio: Studio):
    before = studio.session.file.version
    studio.session.file = type(studio.session.file)(studio.session.file.path)
    assert studio.session.file.version > before
    studio.at("#label-0-description-0").fill("A team wins.")
    until(studio, lambda: descriptions(studio, 0)[0] == "A team wins.")
    studio.page.wait_for_selector('#saved:has-text("saved")')
    assert studio.at("#problem").is_hidden()


def test_the_page_is_as_long_as_the_window_and_an_error_is_in_sight_at_200_percent(studio: Studio):
    assert studio.page.evaluate("document.documentElement.scrollHeight - innerHeight") <= 0
    studio.page.set_viewport_size({"width": 640, "height": 400})
    studio.at("#new-label").fill("money")
    studio.at("#new-label").press("Enter")
    studio.page.wait_for_selector("#problem:not([hidden])")
    assert studio.page.evaluate("document.getElementById('problem').getBoundingClientRect().top") >= 0
    assert studio.page.evaluate("scrollY") > 0
    studio.errors.clear()


def test_the_right_label_is_chosen_with_the_arrow_keys(studio: Studio):
    studio.at("#documents summary").first.press("Enter")
    studio.page.wait_for_selector("#documents select")
    row = studio.at("#documents > li").first.get_attribute("data-row")
    studio.page.keyboard.press("Tab")
    for label in ("sports", "money"):
        studio.page.keyboard.press("ArrowDown")
        until(studio, lambda label=label: clicks(studio) == [label])
        studio.page.wait_for_selector(f"#right-{row}:focus")


def test_digits_label_one_document_each_and_ctrl_z_takes_the_last_click_back(studio: Studio):
    studio.at("#tab-clicks").click()
    studio.page.wait_for_selector("#proposed")
    text, shown = studio.session.file.text, studio.at("#proposed").inner_text()
    studio.page.keyboard.down("1")
    for _ in range(5):
        studio.page.keyboard.down("1")  # it is held
    studio.page.keyboard.up("1")
    studio.page.wait_for_selector('#clicked:has-text("1 clicked")')
    studio.page.wait_for_function("text => document.getElementById('proposed').textContent !== text", arg=shown)
    studio.at("#label-0-name").locator("xpath=..").get_by_role("button").focus()
    studio.page.keyboard.press("2")
    studio.at("#tab-clicks").focus()
    studio.page.keyboard.press("2")
    studio.page.wait_for_selector('#clicked:has-text("2 clicked")')
    assert clicks(studio) == ["sports", "money"]
    studio.page.keyboard.press("Control+z")
    studio.page.wait_for_selector('#clicked:has-text("1 clicked")')
    assert clicks(studio) == ["sports"]
    studio.page.get_by_role("button", name="Take the label").click()
    studio.page.wait_for_selector('#clicked:has-text("0 clicked")')
    studio.page.keyboard.press("Control+z")
    studio.page.wait_for_selector('#clicked:has-text("1 clicked")')
    assert clicks(studio) == ["sports"]
    assert studio.session.file.text == text


def test_a_proposed_document_is_still_there_after_a_silence(studio: Studio):
    studio.at("#tab-clicks").click()
    shown = studio.at("#proposed").inner_text()
    for path in ("**/api/click", "**/api/proposals*"):
        studio.page.route(path, lambda route: route.abort())
    studio.page.keyboard.press("1")
    studio.page.wait_for_selector("#problem:not([hidden])")
    assert studio.at("#proposed").inner_text() == shown
    for path in ("**/api/click", "**/api/proposals*"):
        studio.page.unroute(path)
    studio.page.keyboard.press("1")
    studio.page.wait_for_selector('#clicked:has-text("1 clicked")')
    studio.errors.clear()


def test_ctrl_z_in_a_line_takes_back_the_typing_alone(studio: Studio):
    studio.at("#label-1-description-0").fill("A bank closes.")
    until(studio, lambda: descriptions(studio, 1)[0] == "A bank closes.")
    studio.at("#new-label").click()
    studio.page.keyboard.type("wrong")
    studio.page.keyboard.press("Control+z")
    studio.page.wait_for_timeout(200)
    assert studio.at("#new-label").input_value() != "wrong"
    assert descriptions(studio, 1)[0] == "A bank closes."


def test_the_focus_stays_where_a_part_of_the_page_is_drawn_again(studio: Studio):
    studio.at("#more").press("Enter")
    assert studio.page.evaluate("document.activeElement.closest('li').matches(':nth-child(41)')")
    studio.at("#tab-map").click()
    studio.at("#legend-1").press("Enter")
    assert focused(studio) == "legend-1"
    studio.at("#new-label").fill("weather")
    studio.at("#new-label").press("Enter")
    studio.page.wait_for_selector("#label-2-description-0:focus")
    studio.page.keyboard.press("Control+z")
    studio.page.wait_for_selector("#label-2-name", state="detached")
    assert focused(studio) == "new-label"
    studio.at("#undo").focus()
    assert studio.at("#undo").get_attribute("aria-disabled") == "true"


def test_a_filter_and_the_name_of_an_export_stay_while_labels_change(studio: Studio):
    studio.at("#filter").select_option("=money")
    studio.at("#tab-export").click()
    studio.at("#name-documents").fill("mine.csv")
    studio.at("#new-label").fill("a first one")
    studio.at("#new-label").press("Enter")
    until(studio, lambda: len(studio.session.file.draft.labels) == 3)
    studio.at("#label-0-name").locator("xpath=..").get_by_role("button").click()
    until(studio, lambda: len(studio.session.file.draft.labels) == 2)
    studio.answered()
    assert studio.at("#name-documents").input_value() == "mine.csv"
    studio.at("#tab-documents").click()
    assert studio.at("#filter").input_value() == "=money"
