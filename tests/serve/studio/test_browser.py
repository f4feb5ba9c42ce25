"""The studio in a real browser: from an empty label file to a trained, exported model; and its speed and accessibility.

The screenshots of docs/studio.md are taken here, into the folder that LABELSPACE_SCREENSHOTS names.
"""

import csv
import json
import shutil
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.csv
import pyarrow.parquet
import pytest

from labelspace import Encoder, LabelSpace, load
from labelspace.encoders import DEFAULT_ENCODER
from serve.studio.conftest import DOCUMENTS, LONGEST, Studio, wait_for

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[3] / "examples"
# Labels that a newcomer writes.
WRITTEN = {
    "card": ["My card did not work, was swallowed, or has not arrived.", "I want to activate or replace a card."],
    "transfer": ["A transfer to another account is pending or failed.", "How long does a bank transfer take?"],
    "top up": ["I topped up my account and the money is not there.", "Can I top up by cheque or automatically?"],
    "identity": ["How do I prove who I am?", "The verification of my identity does not work."],
}
OTHER_SCRIPTS = [
    "Meine Karte wurde im Automaten eingezogen, was nun? Grüße aus Köln.",
    "بطاقتي لا تعمل في المتجر، ماذا أفعل؟",
]


@pytest.fixture(scope="module")
def real_encoder() -> Encoder:
    return Encoder(DEFAULT_ENCODER)


@pytest.fixture(scope="module")
def documents(tmp_path_factory) -> Path:
    """Questions of customers, shipped with the examples, and two texts in other scripts."""
    table = pyarrow.parquet.read_table(EXAMPLES / "banking77" / "pool.parquet", columns=["text"])
    texts = [*OTHER_SCRIPTS, *table.column("text").to_pylist()[: DOCUMENTS - len(OTHER_SCRIPTS)]]
    file = tmp_path_factory.mktemp("documents") / "docs.csv"
    pyarrow.csv.write_csv(pyarrow.table({"text": texts}), file)
    return file


@pytest.fixture
def studio(browser, real_encoder, documents, tmp_path, unused_port) -> Iterator[Studio]:
    """The studio on six labels, with comments, that are shipped with the examples."""
    labels = tmp_path / "labels.yaml"
    shutil.copy(EXAMPLES / "banking77_cards.yaml", labels)
    opened = Studio(labels, documents, browser, real_encoder, unused_port)
    opened.answered()
    yield opened
    opened.close()
    assert opened.errors == []


def axe(studio: Studio) -> list[str]:
    """Return the serious and critical findings of axe on the page as it is."""
    from axe_playwright_python.sync_playwright import Axe

    found = Axe().run(studio.page).response["violations"]
    return [
        f"{one['id']}: {node['html'][:160]}"
        for one in found
        if one["impact"] in ("serious", "critical")
        for node in one["nodes"]
    ]


def test_the_first_road_goes_from_no_label_file_to_a_trained_exported_model(
    browser, real_encoder, documents, tmp_path, unused_port
):
    labels = tmp_path / "labels.yaml"
    studio = Studio(labels, documents, browser, real_encoder, unused_port)
    keys = studio.page.keyboard
    studio.at("#new-label").click()
    for column, (name, descriptions) in enumerate(WRITTEN.items()):
        keys.type(name)
        keys.press("Enter")  # adds the label, and goes to its first description
        for place, text in enumerate(descriptions):
            if place:
                keys.press("Tab")
                keys.press("Tab")  # over the button that removes the one before
            studio.page.wait_for_selector(f"#label-{column}-description-{place}:focus")
            keys.type(text)
            studio.page.wait_for_selector(f"#label-{column}-description-{place + 1}")  # the next line
        studio.at("#new-label").click()
    studio.answered()
    wait_for(lambda: WRITTEN["identity"][-1] in labels.read_text())
    assert LabelSpace.from_file(labels).descriptions == tuple(map(tuple, WRITTEN.values()))
    studio.studied()
    studio.at("#filter").select_option("=transfer")
    studio.at("#order").select_option("nearest")
    studio.at("#documents summary").first.click()
    studio.page.wait_for_selector(".scored li")
    studio.screenshot("documents")

    studio.at("#tab-clicks").click()
    for clicks in range(1, 11):
        studio.page.wait_for_selector("#proposed")
        words = studio.at("#proposed").inner_text().lower()
        keys.press("3" if "top" in words else "2" if "transfer" in words else "4" if "identity" in words else "1")
        studio.page.wait_for_selector(f'#clicked:has-text("{clicks} clicked")')
    rows = list(csv.DictReader((tmp_path / "labels.clicks.csv").read_text().splitlines()))
    assert len(rows) == 10
    assert {row["source"] for row in rows} == {"random", "doubt"}
    studio.screenshot("clicks")

    studio.at("#tab-train").click()
    studio.at("#train").click()
    studio.page.wait_for_selector('#training[data-state="done"]', timeout=6 * LONGEST)
    assert studio.at("caption").inner_text() == "Before and after; the trained model has seen these documents"
    studio.screenshot("train")
    studio.at("#tab-export").click()
    studio.at("#name-trained").press("Enter")
    studio.page.wait_for_selector('#exported:has-text("Saved")')
    assert set(load(tmp_path / "labels-model").predict(["My card was swallowed", "Top up failed"])) <= set(WRITTEN)
    assert axe(studio) == []
    studio.close()
    assert studio.errors == []


def test_the_page_takes_no_key_until_it_knows_the_labels_and_asks_again_where_it_got_no_answer(studio):
    held: list[Any] = []
    studio.page.route("**/api/state", lambda route: held.append(route))
    studio.page.reload()
    studio.wait_for(held)
    assert studio.page.evaluate("document.querySelector('main').inert")
    studio.page.keyboard.press("Control+z")
    held.pop().abort()
    studio.wait_for(held)
    assert "does not answer" in studio.at("#problem").inner_text()
    held.pop().continue_()
    studio.at("#new-label").click()
    studio.page.keyboard.type("refund")
    studio.page.keyboard.press("Enter")
    studio.page.wait_for_selector("#label-6-description-0:focus")
    assert [label.name for label in studio.session.file.draft.labels][-1] == "refund"
    assert studio.at("#problem").is_hidden()
    studio.page.unroute("**/api/state")
    studio.errors.clear()  # Chromium's own line about the request that was broken off


def test_a_state_that_comes_after_a_newer_one_takes_no_label_and_no_cursor_away(studio):
    held: list[Any] = []
    studio.page.route("**/api/state", lambda route: held.append((route, route.fetch())))
    studio.page.reload()
    studio.wait_for(held)
    held.pop()[0].continue_()
    studio.at("#new-label").click()
    studio.page.evaluate("""async () => {
        const { store } = await import("/page/store.js");
        store.documents.map = [];  // as on a page whose documents have just been read
    }""")
    studio.wait_for(held)
    route, older = held.pop()
    studio.page.keyboard.type("refund")
    studio.page.keyboard.press("Enter")
    studio.page.wait_for_selector("#label-6-description-0:focus")
    route.fulfill(response=older)
    studio.page.wait_for_timeout(500)
    assert studio.page.evaluate("document.activeElement.id") == "label-6-description-0"
    studio.page.unroute("**/api/state")


def test_answers_for_2000_documents_come_while_typing_and_no_key_is_lost(studio, documents, capsys):
    started = time.perf_counter()
    studio.session.known.encoder.encode(studio.session.pool.texts)
    encoding = time.perf_counter() - started
    assert len(studio.session.pool.texts) == DOCUMENTS
    studio.studied()
    studio.at("#label-0-description-0").click()
    studio.page.keyboard.press("Control+End")
    times = []
    for letter in "it ran out last week":
        before = studio.at("body").get_attribute("data-version")
        started = time.perf_counter()
        studio.page.keyboard.type(letter)
        # A space at the end is no new text, so the next letter brings the answers.
        if letter != " ":
            studio.page.wait_for_selector(f'body:not([data-version="{before}"])')
            times.append(time.perf_counter() - started)
    median = statistics.median(times)
    with capsys.disabled():
        print(json.dumps({"key to answers": round(median, 3), "encoding": round(encoding, 2), "of": len(times)}))
    assert median < 1.0
    assert median < encoding / 4
    wait_for(lambda: "it ran out last week" in studio.session.file.draft.labels[0].descriptions[0])
    studio.page.keyboard.press("Control+z")
    wait_for(lambda: "it ran out" not in studio.session.file.text)
    assert studio.session.file.text == (EXAMPLES / "banking77_cards.yaml").read_text()


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious_on_any_view(studio, colours):
    studio.page.emulate_media(color_scheme=colours, reduced_motion="reduce")
    studio.studied()
    found = []
    for view in ("documents", "pairs", "map", "clicks", "train", "export"):
        studio.at(f"#tab-{view}").click()
        studio.page.wait_for_selector(f"#panel-{view} *")
        if view == "documents":
            studio.at("#documents summary").first.click()
            studio.page.wait_for_selector(".scored")
            studio.at("#none").check()
            studio.page.wait_for_selector('#limit:has-text("get no label")')
        if view == "map" and colours == "light":
            studio.screenshot(view)
        found += axe(studio)
        if view == "documents":
            studio.at("#none").uncheck()
            studio.page.wait_for_selector("#limit:empty", state="attached")
            studio.studied()
    assert found == []


def test_a_change_on_disk_is_shown_and_the_user_chooses(studio):
    file = studio.session.file.path
    theirs = file.read_text().replace("its renewal", "its end")
    file.write_text(theirs)
    studio.page.wait_for_selector("#conflict[open]")
    assert "its end" in studio.at("#theirs").inner_text()
    assert "its renewal" in studio.at("#mine").inner_text()
    assert axe(studio) == []
    studio.screenshot("conflict")
    studio.page.keyboard.press("Escape")
    studio.at("#keep-theirs").click()
    studio.page.wait_for_selector("#conflict", state="hidden")
    assert studio.at("#label-0-phrase").input_value().endswith("its end")
    studio.at("#undo").click()
    wait_for(lambda: "its renewal" in file.read_text())


def test_a_second_tab_sees_the_edits_of_the_first_and_keys_reach_no_other_label(studio, browser):
    names = [label.name for label in studio.session.file.draft.labels]
    second = browser.new_page()
    second.goto(f"{studio.page.url}?token=test")
    second.wait_for_selector("#label-1-description-0")
    second.locator("#label-1-description-0").click()  # a field that is being typed in is brought up to date, too
    studio.at("#label-0-name").locator("xpath=..").get_by_role("button").click()
    wait_for(lambda: len(studio.session.file.draft.labels) < len(names))
    shown = json.dumps(studio.session.file.draft.labels[1].descriptions[0])
    second.wait_for_function(f"() => document.getElementById('label-1-description-0').value === {shown}")
    assert second.locator("#label-0-name").input_value() == names[1]

    # Keys that are typed while a label above is being removed.
    kept = studio.session.file.draft.labels[1:]
    held = []
    second.route("**/api/edit", lambda route: held.append(route) if not held else route.continue_())
    second.locator("#label-0-name").locator("xpath=..").get_by_role("button").click()
    wait_for(lambda: second.evaluate("1") and held)
    second.locator("#label-1-description-0").click()
    second.keyboard.type("never ")
    held[0].continue_()
    second.wait_for_selector('#problem:has-text("have changed since the page showed them")')
    assert studio.session.file.draft.labels == kept
    second.close()


def test_a_rename_moves_no_document_and_after_ten_skips_others_are_proposed(studio):
    studio.at("#label-0-name").fill("another name")
    studio.at("#label-0-name").press("Tab")
    studio.page.wait_for_function("() => document.getElementById('moved').textContent !== ''")
    assert studio.at("#moved").inner_text() == "No document changed its label with the last edit."
    studio.page.get_by_role("tab", name="Click labels").click()
    shown = set()
    for _ in range(12):
        text = studio.at("#proposed").inner_text()
        shown.add(text)
        studio.page.get_by_role("button", name="Skip").click()
        studio.page.wait_for_function(f"() => document.getElementById('proposed').textContent !== {json.dumps(text)}")
    assert len(shown) == 12


def test_german_and_arabic_are_shown_in_their_own_direction(studio):
    studio.at("#order").select_option("file")
    for words, direction in zip(OTHER_SCRIPTS, ("ltr", "rtl"), strict=True):
        shown = studio.page.get_by_text(words)
        assert shown.evaluate("each => getComputedStyle(each).direction") == direction
    field = studio.at("#label-0-phrase")
    field.fill("بطاقة على وشك الانتهاء")
    assert field.evaluate("each => getComputedStyle(each).direction") == "rtl"


def test_at_200_percent_nothing_is_cut_off(studio):
    studio.page.set_viewport_size({"width": 640, "height": 400})  # what 200 % leaves of 1280 by 800
    for view in ("documents", "map", "export"):
        studio.at(f"#tab-{view}").click()
        wide = studio.page.evaluate("() => document.documentElement.scrollWidth - innerWidth")
        assert wide <= 0, view


def test_the_map_is_read_with_the_arrow_keys(studio):
    studio.at("#tab-map").click()
    studio.at(".map").focus()
    read = set()
    for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowLeft"):
        studio.page.keyboard.press(key)
        read.add(studio.at("#map-says").inner_text())
    assert len(read) > 2
    studio.at(".legend button").first.click()
    assert studio.at(".map path:not(.pale)").count() == 1


def test_a_document_is_shown_as_text_alone(browser, real_encoder, tmp_path, unused_port):
    hostile = '<img src=x onerror="document.title=1"><script>document.title=2</script>'
    file = tmp_path / "docs.csv"
    rows = [hostile, *(f"{hostile} {row}" for row in range(60))]
    pyarrow.csv.write_csv(pyarrow.table({"text": rows}), file)
    labels = tmp_path / "labels.yaml"
    labels.write_text(f"labels: [{json.dumps(hostile)}, money]\n")
    studio = Studio(labels, file, browser, real_encoder, unused_port)
    studio.answered()
    assert hostile in studio.at("#documents").inner_text()
    assert studio.at("main img, main script").count() == 0
    assert studio.page.title() == "labels.yaml · labelspace studio"
    studio.close()
    assert studio.errors == []
