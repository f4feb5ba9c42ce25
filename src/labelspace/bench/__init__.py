"""The benchmark: 22 data sets, every family of zero-shot scorers, one store of results.

    cards, tasks, local, hub     which data sets there are, and their texts
    models, plan, runner         models by one word each; which tasks are run, a file of one's own among them
    work, scoring, memory        what one run scores, and what it costs
    store, records               what is kept, and what a line of it must hold
    ways, rows, tables, figures  what a store says, beside the paper's published numbers
    published, compare           these numbers, and where a model would stand among them
    leaderboard, adapters        results and models for other people's harnesses
    statistics, similarity, nli  intervals and rank correlation; words in common; ability in NLI
    scatter, naming              what the scatter plots share; names beside their points

Everything loads on first use.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = [
    "BTZSC",
    "MTEB",
    "BenchTable",
    "ModelSpec",
    "OpenModel",
    "OwnFile",
    "ResultStore",
    "RunReport",
    "Task",
    "TaskCard",
    "bench_figures",
    "bench_tables",
    "find_tasks",
    "load_task",
    "open_model",
    "own_task",
    "run",
    "similarities",
]

if TYPE_CHECKING:
    from labelspace.bench.cards import BTZSC, MTEB, TaskCard
    from labelspace.bench.figures import bench_figures
    from labelspace.bench.models import ModelSpec, OpenModel, open_model
    from labelspace.bench.plan import OwnFile, own_task
    from labelspace.bench.runner import RunReport, run
    from labelspace.bench.similarity import similarities
    from labelspace.bench.store import ResultStore
    from labelspace.bench.tables import BenchTable, bench_tables
    from labelspace.bench.tasks import Task, find_tasks, load_task

__getattr__ = late_names(
    __name__,
    {
        "cards": "BTZSC MTEB TaskCard",
        "figures": "bench_figures",
        "models": "ModelSpec OpenModel open_model",
        "plan": "OwnFile own_task",
        "runner": "RunReport run",
        "similarity": "similarities",
        "store": "ResultStore",
        "tables": "BenchTable bench_tables",
        "tasks": "Task find_tasks load_task",
    },
)
