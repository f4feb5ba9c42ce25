"""The benchmark: 22 data sets, every family of zero-shot scorers, one store of results.

    cards, tasks, local, hub     the data sets and their texts
    models, plan, runner         model specifications, the tasks of a run, the run itself
    work, scoring, memory        scoring one model on one task, with time and memory
    store, records               the result store, and the checks on each line of it
    ways, rows, tables, figures  tables and figures of a store, beside the paper's published numbers
    published, compare           the published numbers, and a model's rank among them
    leaderboard, adapters        exchange with the btzsc package: results and models
    statistics, similarity, nli  intervals and rank correlation; word overlap; AUROC on NLI pairs
    scatter, naming              parts shared by the scatter plots; labels of their points

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
