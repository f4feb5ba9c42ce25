"""`run`: score models x tasks x seeds. Each finished run is a line in the store, so a killed run can be resumed.

memory   The texts of one task, its predictions, and the scores of one block; nothing grows with models or tasks. A
         model is released before the next one is opened. A record's peak is the resident set of the process, and
         `memory_before_mib` the part of it held before that model was opened.
speed    Texts per second of scoring. Opening the model and the first few texts, which encode labels and allocate
         buffers, are not counted.
seeds    Draw the texts if there is a limit. Nothing else is random, so without a limit each run is made once.
"""

import itertools
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, final

from labelspace.bench.adapters import HarnessLike, open_harness
from labelspace.bench.memory import give_back, resident_mib
from labelspace.bench.models import ModelSpec, OpenModel, computed_dtype, open_model
from labelspace.bench.plan import OwnFile, Plan
from labelspace.bench.records import NLI_TASK
from labelspace.bench.store import ResultStore, RunKey, chosen
from labelspace.bench.tasks import PROTOCOLS, Task, what_the_protocol_did
from labelspace.bench.work import Work, nli_work, works_of
from labelspace.checks import as_python, check_choice, check_number
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError, InputError
from labelspace.progress import Progress, progress_bar

Record = dict[str, Any]
_logger = logging.getLogger("labelspace")


@final
@dataclass(frozen=True, kw_only=True)
class RunReport:
    """The result of `run`."""

    finished: tuple[dict[str, Any], ...]
    """Records of the runs made by this call."""

    reused: tuple[dict[str, Any], ...]
    """Records that were already in the store."""

    absent: Mapping[str, str]
    """Requested tasks that cannot be run here -> reason."""

    notes: tuple[str, ...]
    """Further remarks for the user."""

    @property
    def records(self) -> tuple[dict[str, Any], ...]:
        """All requested records, reused ones first."""
        return self.reused + self.finished

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "finished": list(self.finished),
            "reused": list(self.reused),
            "absent": dict(self.absent),
            "notes": list(self.notes),
        }


class _Job(NamedTuple):
    model: ModelSpec | OpenModel
    key: RunKey
    revision: str | None
    work: Work


def run(
    models: Iterable[str | ModelSpec | OpenModel | HarnessLike],
    tasks: Iterable[str | Task | OwnFile],
    store: ResultStore | str | Path,
    *,
    seeds: Sequence[int] = (0,),
    limit: int | None = None,
    protocol: str = "full",
    unverbalized: str | None = None,
    data: Path | str | None = None,
    bootstrap: int = 1000,
    nli: Path | str | None = None,
    dtype: str = EncodingConfig.dtype,
    device: str = EncodingConfig.device,
    trust_remote_code: bool = False,
    offline: bool | None = None,
    verbose: bool = False,
) -> RunReport:
    """Score every model on every task, and store each result as soon as it is finished.

    Args:
        models: specifications (see `ModelSpec.parse`), open models, or models of the btzsc package: any object with
            `predict_scores(texts, labels, batch_size)` (see `open_harness`).
        tasks: names of data sets, `"btzsc"`, `"mteb"`, `"all"`, families such as `"topic"`, tasks, own files.
        store: the result store or its file. Stored results for the same texts and weights are reused.
        seeds: with a limit, one run for each seed.
        limit: maximum texts of each task, drawn by the seed; None: all.
        protocol: `"full"`: all rows; `"paper"`: the rows that the paper's tables were computed on.
        unverbalized: treatment of rows whose class has no hypothesis: `"leave_out"`, or `"class_0"` as in the authors'
            harness; None: `"class_0"` for the protocol `"paper"`, else `"leave_out"`.
        data: folder of the data sets; None: the hub, see `find_tasks`.
        bootstrap: samples for the 95 % interval of macro-F1 over texts; 0: no interval, not even of accuracy.
        nli: folder or file of NLI pairs, to measure each model's AUROC as well (Figure 3b); None: no AUROC.
        dtype: `"auto"`, `"float32"` or `"bfloat16"`.
        device: a torch device, or `"auto"`.
        trust_remote_code: True lets the models' own code run; never without.
        offline: True never contacts the hub for models or data, and uses its cache.
        verbose: True shows how far it is.

    Returns:
        The finished and the reused records, the absent tasks, and notes.

    Raises:
        ConfigError: an invalid option, an unknown task, or two models with one name.
        InputError: no task can be read, or the store is damaged.
        EncoderError: a model cannot be opened, or its scores are not finite; that run is not stored.
        OutputError: the store cannot be written.
        KeyboardInterrupt: finished runs are in the store; repeat the call to resume.

    Example:
        >>> import tempfile
        >>> import numpy as np
        >>> from labelspace import LabelSpace
        >>> rows = '{"text": "the match", "label": "sports"}\\n{"text": "the vote", "label": "politics"}\\n'
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file, labels, store = (Path(folder) / name for name in ("news.jsonl", "labels.yaml", "results.jsonl"))
        ...     _ = file.write_text(rows)
        ...     LabelSpace.from_names(["sports", "politics"]).to_file(labels)
        ...     own = OwnFile(file=file, labels=labels)
        ...     report = run(["tests/data/tiny-bert"], [own], store, dtype="float32", bootstrap=0)
        ...     again = run(["tests/data/tiny-bert"], [own], store, dtype="float32")
        >>> [record["texts"] for record in report.finished], len(again.reused)
        ([2], 1)
    """
    check_choice("protocol", protocol, PROTOCOLS)
    unverbalized = what_the_protocol_did(protocol, unverbalized)
    check_number("bootstrap", bootstrap, least=0, whole=True)
    if limit is not None:
        check_number("limit", limit, least=1, whole=True)
    bootstrap, limit = as_python((bootstrap, limit))  # they go into records
    EncodingConfig(dtype=dtype, device=device)
    asked = _asked(models)
    store = store if isinstance(store, ResultStore) else ResultStore(store)
    known = store.by_key()
    store.check_writable()
    notes: list[str] = []
    drawn = _seeds(seeds, limit, notes)
    rows = {"limit": limit, "protocol": protocol, "unverbalized": unverbalized, "offline": offline}
    sources, absent = Plan(Path(data) if data is not None else None, **rows).sources(tasks)
    works = works_of(sources, drawn, absent, bootstrap=bootstrap, device=device)
    if nli is not None:
        works.append(nli_work(Path(nli), limit, drawn[0], device))
    every = [
        _Job(model, RunKey(spec, work.name, protocol, unverbalized, limit, work.seed, computed), revision, work)
        for model in asked
        for spec, computed, revision in [_facts(model, dtype, device, offline)]
        for work in works
    ]
    reused, jobs = _reused(every, known, bootstrap, notes)
    finished: list[Record] = []
    opening = {"dtype": dtype, "device": device, "trust_remote_code": trust_remote_code, "offline": offline}
    try:
        with progress_bar("scoring", verbose=verbose) as report:
            for record in _records(jobs, opening, report, notes):
                finished.append(store.append(record))
    except KeyboardInterrupt:
        _logger.warning(
            "interrupted: %d of %d runs are finished and stored in %s; repeat the command to resume.",
            len(finished),
            len(jobs),
            store.path,
        )
        raise
    return RunReport(finished=tuple(finished), reused=tuple(reused), absent=absent, notes=tuple(dict.fromkeys(notes)))


def _reused(
    jobs: Sequence[_Job], known: Mapping[RunKey, Record], bootstrap: int, notes: list[str]
) -> tuple[list[Record], list[_Job]]:
    """Return the records that the store already has, and the jobs left to do."""
    reused, left = [], []
    for job in jobs:
        record, why = chosen(known, job.key, fingerprint=job.work.fingerprint, revision=job.revision)
        notes += [why] if why else []
        if record is None:
            left.append(job)
            continue
        reused.append(record)
        if job.revision is not None and "+" in job.revision and "+" not in (record.get("revision") or "+"):
            notes.append(f"{job.key.model}: results stored without settings are reused; these cannot be checked.")
        if isinstance(job.model, OpenModel) and job.model.revision is None:
            notes.append(f"{job.key.model}: the stored result of this name is reused; its weights cannot be checked.")
    scored = [record for record in reused if record["task"] != NLI_TASK]
    if fewer := sum((record.get("intervals") or {}).get("repeats", 0) < bootstrap for record in scored):
        notes.append(
            f"{fewer} of {len(scored)} stored results have an interval of fewer than {bootstrap} samples, or none, and "
            "are reused; with another store they are scored again."
        )
    return reused, left


def _records(jobs: Sequence[_Job], opening: dict[str, Any], report: Progress, notes: list[str]) -> Iterator[Record]:
    """Do the jobs in order. Each model is opened once, and released before the next one."""
    total = sum(job.work.texts for job in jobs)
    done = 0
    for _, own in itertools.groupby(jobs, key=lambda job: job.key.model):
        opened = before = None
        for job in own:
            if opened is None:
                give_back()  # memory of the previous model
                if isinstance(job.model, OpenModel):
                    opened = job.model
                else:
                    before = resident_mib()
                    opened = open_model(job.model, **opening)
            try:
                record = job.work.make(opened, job.key, _part(report, done, total, job.key))
                why = f"{job.key.model} scores no pairs of sentences; its NLI AUROC is not measured."
            except InputError as error:  # such as a hypothesis that is longer than the model reads
                if job.key.task != NLI_TASK:
                    raise
                record, why = None, f"{job.key.model}: its NLI AUROC is not measured, because {error}"
            if record is not None:
                yield {**record, "memory_before_mib": before}
            else:
                notes.append(why)
            done += job.work.texts


def _asked(models: Iterable[str | ModelSpec | OpenModel | HarnessLike]) -> list[ModelSpec | OpenModel]:
    """Return each model once; refuse two objects with one name, which would share results in the store."""
    asked: dict[str, ModelSpec | OpenModel] = {}
    objects: dict[str, object] = {}
    for given in models:
        if isinstance(given, OpenModel):
            model = given
        elif isinstance(given, ModelSpec) or not isinstance(given, HarnessLike):
            model = ModelSpec.parse(given)
        else:
            model = open_harness(given)
        word = str(model) if isinstance(model, ModelSpec) else model.spec
        as_object = None if isinstance(model, ModelSpec) else given
        if word in asked and objects[word] is not as_object:
            raise ConfigError(f"two models are called {word}; give each a name of its own, as its model_name.")
        asked[word], objects[word] = model, as_object
    if not asked:
        raise ConfigError("there is no model to run; name at least one, for example embedding:all-MiniLM-L6-v2.")
    return list(asked.values())


def _seeds(seeds: Sequence[int], limit: int | None, notes: list[str]) -> tuple[int, ...]:
    drawn = tuple(dict.fromkeys(as_python(list(seeds))))
    if not drawn:
        raise ConfigError("seeds must hold at least one seed. Got none instead.")
    for seed in drawn:
        check_number("seeds", seed, least=0, whole=True)
    if limit is None and drawn != (0,):
        notes.append("seeds only draw texts for a limit; without one each model is run once on each task.")
        return (0,)
    return drawn


def _facts(model: ModelSpec | OpenModel, dtype: str, device: str, offline: bool | None) -> tuple[str, str, str | None]:
    """Return a model's specification, dtype and weights revision without opening it."""
    if isinstance(model, OpenModel):
        return model.spec, str(model.describe.get("dtype") or "float32"), model.revision
    return str(model), computed_dtype(model, dtype, device, offline), model.folder_revision()


def _part(report: Progress, before: int, whole: int, key: RunKey) -> Progress:
    def told(done: float, total: float | None = None, note: str = "") -> None:  # noqa: ARG001  of the one task
        report(before + done, whole, note or f"{key.model} on {key.task}")

    return told
