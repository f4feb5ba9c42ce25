"""Sources and targets of the two domains: the mix for pre-finetuning, and the rows of a target."""

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelspace.corpus import Pairs, draw_pairs, open_pairs
from labelspace.seeds import child_seed
from prefinetune.settings import SIZES, Settings


@dataclass(frozen=True)
class Target:
    """A task of a domain on which encoders are compared."""

    domain: str
    task: str
    """`"classification"` or `"retrieval"`."""

    title: str


TARGETS: Mapping[str, Target] = {
    "fomc": Target("finance", "classification", "FOMC"),
    "financial_phrasebank": Target("finance", "classification", "Financial PhraseBank"),
    "gold_headline": Target("finance", "classification", "Gold headlines"),
    "tatqa": Target("finance", "retrieval", "TAT-QA"),
    "stackoverflow_topics": Target("code", "classification", "Stack Overflow topics"),
    "nl2bash": Target("code", "retrieval", "NL2Bash"),
    "cosqa": Target("code", "retrieval", "CosQA"),
}
DOMAINS = ("finance", "code")
# One mix per domain excludes all texts of the scored targets; with more targets few sources would be left.
SCORED = ("fomc", "financial_phrasebank", "tatqa", "stackoverflow_topics", "nl2bash")
SMALL = ("fomc", "tatqa")

# Sets with the same texts: if one is a target, the other is not a source. See the data's README.
SHARED_TEXTS = (("fiqa_sentiment", "fiqa_aspect"), ("fincausal_detect", "fincausal_pairs"))

LABEL_NAMES = "label-names"
UNNAMED_MIX = f"finance-without-{LABEL_NAMES}"
"""The mix without sources whose positives are label names of a target; code has no such source."""


@dataclass(frozen=True)
class Mix:
    """The pairs for pre-finetuning."""

    pairs: Pairs
    left_out: tuple[str, ...]
    """Sources left out entirely."""

    dropped: Mapping[str, int]
    """Other sources -> number of pairs dropped because they contain a text of a target."""


@dataclass(frozen=True)
class Rows:
    """Labelled texts, or queries with a relevant document each."""

    texts: tuple[str, ...]
    positives: tuple[str, ...]
    """The label names, or the documents."""

    def __len__(self) -> int:
        return len(self.texts)


@dataclass(frozen=True)
class Search:
    """Queries, all documents, and the relevant ones of each query."""

    queries: tuple[str, ...]
    documents: tuple[str, ...]
    relevant: tuple[Mapping[int, float], ...]


def targets(settings: Settings, domain: str | None = None) -> tuple[str, ...]:
    """Return the names of the targets of a domain; None: of all domains."""
    names = SMALL if settings.small else TARGETS if settings.per_target else SCORED
    return tuple(name for name in names if domain in (None, TARGETS[name].domain))


def domains(settings: Settings) -> tuple[str, ...]:
    """Return the domains of the targets."""
    return tuple(domain for domain in DOMAINS if targets(settings, domain))


def folder_of(settings: Settings, name: str) -> Path:
    """Return the folder of a target."""
    return settings.data / "domain" / TARGETS[name].domain / name


def mix_name(settings: Settings, target: str) -> str:
    """Return the name of the mix of the encoders that fine-tuning on a target starts from."""
    return f"{TARGETS[target].domain}-without-{target}" if settings.per_target else TARGETS[target].domain


def mix_names(settings: Settings) -> tuple[str, ...]:
    """Return the names of all mixes that targets start from."""
    return tuple(dict.fromkeys(mix_name(settings, name) for name in targets(settings)))


def targets_of(settings: Settings, mix: str) -> tuple[str, ...]:
    """Return the targets whose texts a mix excludes."""
    if mix == UNNAMED_MIX:
        return targets(settings, "finance")
    return tuple(name for name in targets(settings) if mix_name(settings, name) == mix)


@functools.lru_cache(maxsize=4)
def read_mix(settings: Settings, name: str) -> Mix:
    """Draw the pairs of a mix.

    It excludes the sources of its targets, sources that share their texts, and every pair of another source that
    contains a text of a target: a train or test text, a query, or a relevant document. Other documents may occur. The
    mix without label names also excludes the sources that contain one.
    """
    domain, _, alone = name.partition("-without-")
    unnamed = alone == LABEL_NAMES
    # Includes targets that a small run does not score.
    left = (alone,) if alone and not unnamed else tuple(one for one in SCORED if TARGETS[one].domain == domain)
    out = {*left, *(one for group in SHARED_TEXTS if set(group) & set(left) for one in group)}
    kept_out = {text for one in left for text in target_texts(folder_of(settings, one), TARGETS[one].task)}
    names = {plain(label) for one in left if unnamed for label in label_names(settings, one)}
    sources, dropped = [], {}
    for file in sorted((settings.data / "domain" / domain).glob("*/pairs.parquet")):
        if file.parent.name in out:
            continue
        table = pq.read_table(file)
        positives = table["positive"].to_pylist()
        if names & set(map(plain, positives)):
            out.add(file.parent.name)
            continue
        rows = zip(table["anchor"].to_pylist(), positives, strict=True)
        keep = [plain(anchor) not in kept_out and plain(positive) not in kept_out for anchor, positive in rows]
        if not all(keep):
            dropped[file.parent.name] = keep.count(False)
        sources.append(open_pairs(table.filter(pa.array(keep))))
    pairs = draw_pairs(sources, per_source=settings.per_source, seed=0)
    return Mix(pairs, tuple(sorted(out)), dropped)


def target_texts(folder: Path, task: str) -> set[str]:
    """Return the texts that a mix must exclude, from the train and the test side."""
    if task == "classification":
        return {plain(text) for split in ("train", "test") for text in _columns(folder, split)["text"]}
    queries, documents = _columns(folder, "queries"), _columns(folder, "corpus")
    answers = set(_columns(folder, "qrels")["doc_id"])
    pairs = _columns(folder, "pairs")
    texts = [*queries["text"], *pairs["anchor"], *pairs["positive"]]
    texts += [text for key, text in zip(documents["doc_id"], documents["text"], strict=True) if key in answers]
    return {plain(text) for text in texts}


def plain(text: str) -> str:
    """Normalise a text for comparison, ignoring white space and case."""
    return " ".join(text.split()).casefold()


@functools.lru_cache(maxsize=4)
def train_side(folder: Path, task: str) -> Rows:
    """Read all rows for fine-tuning on a target, without queries that are in the test side too."""
    if task == "classification":
        rows = _columns(folder, "train")
        return Rows(tuple(rows["text"]), tuple(rows["label_text"]))
    asked = {plain(text) for text in _columns(folder, "queries")["text"]}
    rows = _columns(folder, "pairs")
    pairs = [pair for pair in zip(rows["anchor"], rows["positive"], strict=True) if plain(pair[0]) not in asked]
    return Rows(tuple(query for query, _ in pairs), tuple(document for _, document in pairs))


def sizes(settings: Settings, name: str) -> tuple[int, ...]:
    """Return the numbers of rows to fine-tune on: those of 100, 500, 1,000 that give more rows than the last."""
    count = len(train_side(folder_of(settings, name), TARGETS[name].task))
    wanted = SIZES[:1] if settings.small else SIZES
    return tuple(size for before, size in zip((0, *wanted), wanted, strict=False) if before < count)


def train_rows(settings: Settings, name: str, size: int, seed: int) -> Rows:
    """Draw a stratified sample of a target's train side; samples are nested, so 500 rows contain the 100."""
    rows = train_side(folder_of(settings, name), TARGETS[name].task)
    groups = rows.positives if TARGETS[name].task == "classification" else ("",) * len(rows)
    order = nested_order(groups, child_seed(seed, "target rows", name))[:size]
    return Rows(tuple(rows.texts[row] for row in order), tuple(rows.positives[row] for row in order))


def nested_order(groups: Sequence[str], seed: int) -> list[int]:
    """Shuffle rows so that every prefix is stratified by group."""
    draw = np.random.default_rng(seed)
    keys = np.empty(len(groups))
    for group in sorted(set(groups)):
        own = np.flatnonzero(np.array([one == group for one in groups]))
        keys[draw.permutation(own)] = (np.arange(len(own)) + draw.random(len(own))) / len(own)
    return np.argsort(keys, kind="stable").tolist()


def test_rows(settings: Settings, name: str) -> Rows:
    """Return the scored texts of a classification target, one sample for all runs."""
    rows = _columns(folder_of(settings, name), "test")
    chosen = _drawn(len(rows["text"]), settings.test_rows, name)
    return Rows(tuple(rows["text"][row] for row in chosen), tuple(rows["label_text"][row] for row in chosen))


def search_of(settings: Settings, name: str) -> Search:
    """Return the queries of a retrieval target, one sample for all runs, and its whole corpus.

    Documents that differ only in case and white space are merged, and so are queries: a copy of a relevant document, or
    an answer to the same question asked elsewhere, must not count as wrong.
    """
    folder = folder_of(settings, name)
    queries, documents, answers = (_columns(folder, part) for part in ("queries", "corpus", "qrels"))
    number: dict[str, int] = {}
    place = {
        key: number.setdefault(plain(text), len(number))
        for key, text in zip(documents["doc_id"], documents["text"], strict=True)
    }
    kept = {place[key]: text for key, text in zip(documents["doc_id"], documents["text"], strict=True)}
    asked = dict(zip(queries["query_id"], map(plain, queries["text"]), strict=True))
    relevant: dict[str, dict[int, float]] = {}
    for query, document, score in zip(answers["query_id"], answers["doc_id"], answers["score"], strict=True):
        relevant.setdefault(asked[query], {})[place[document]] = float(score)
    texts = list({plain(text): text for text in queries["text"]}.values())
    chosen = [texts[row] for row in _drawn(len(texts), settings.test_rows, name)]
    return Search(
        tuple(chosen),
        tuple(kept[one] for one in range(len(number))),
        tuple(relevant[plain(text)] for text in chosen),
    )


def label_names(settings: Settings, name: str) -> list[str]:
    """Return the label names of a classification target; a retrieval target has none."""
    if TARGETS[name].task != "classification":
        return []
    return json.loads((folder_of(settings, name) / "meta.json").read_text(encoding="utf-8"))["label_names"]


def _drawn(count: int, most: int | None, name: str) -> list[int]:
    if most is None or count <= most:
        return list(range(count))
    draw = np.random.default_rng(child_seed(0, "test", name))
    return np.sort(draw.permutation(count)[:most]).tolist()


def _columns(folder: Path, part: str) -> dict[str, list[Any]]:
    return pq.read_table(folder / f"{part}.parquet").to_pydict()
