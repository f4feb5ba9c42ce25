"""A saved model as one function from Arrow to Arrow, for engines that spread rows over processes and machines.

Ray, Spark and Dask send the function to their processes; none of them is imported here. What travels is settings only:
each process opens the model when it gets its first rows, and keeps it for all functions of that model.
"""

import hashlib
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, TypeVar, final

import pyarrow as pa

from labelspace.classify.fitted import Fitted
from labelspace.classify.saved.fetching import model_folder
from labelspace.classify.saved.opening import open_to_answer
from labelspace.classify.saved.saving import LABELS
from labelspace.classify.tables.columns import answer_columns, output_schema
from labelspace.classify.tables.stream import CHUNK_ROWS
from labelspace.corpus import open_table
from labelspace.corpus.documents import check_kind
from labelspace.errors import ModelFolderError
from labelspace.header import CLASSIFIER, HEADER, read_header

Rows = TypeVar("Rows", pa.Table, pa.RecordBatch)

_OPEN_MODELS = 4  # a pipeline rarely asks more models than this in one process
_opening = Lock()


@final
class Batches:
    """Adds to rows the columns that `predict_file` adds to a file; an Arrow table or record batch in, the same out.

    Calls that get the same rows give the same bits. Other cuts change the encoder's batches, and with them the last
    digits: about 1e-7 of a score in float32, 1e-3 in bfloat16.

    Args:
        folder: folder of a saved model, at the same place on every machine, or its name on the hub.
        text_column: column with the documents.
        pair_column: column with the second texts, for a model fitted on pairs.
        all_scores: True adds columns with the scores of every label, as for `predict_file`.
        top: adds columns with this number of likeliest labels, as for `predict_file`.
        prefix: prefix of the added columns.
        device: as for `load`.
        trust_remote_code: as for `load`.

    Raises:
        ModelFolderError: the folder holds no classifier, or on another machine not the same one.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     label = Batches(clf.save(f"{folder}/model"))
        ...     label(pa.table({"text": ["the match", "the vote"]})).column_names
        ['text', 'predicted_label', 'predicted_score', 'predicted_probability']
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        text_column: str = "text",
        pair_column: str | None = None,
        all_scores: bool = False,
        top: int | None = None,
        prefix: str = "predicted_",
        device: str | None = None,
        trust_remote_code: bool = False,
    ) -> None:
        here = Path(folder)
        self.folder = str(here.absolute() if here.is_dir() else folder)
        self.text_column, self.pair_column = text_column, pair_column
        self.all_scores, self.top, self.prefix = all_scores, top, prefix
        self.device, self.trust_remote_code = device, trust_remote_code
        self.digest = _digest(self.folder)

    def __call__(self, rows: Rows) -> Rows:
        """Return the rows with the answers in added columns.

        Raises:
            ColumnError: no such column.
            InputError: a row without a text, a column of the same name as an added one, or pairs for a model of texts.
        """
        model = self._model()
        table = open_table(rows, text_column=self.text_column, pair_column=self.pair_column, batch_rows=CHUNK_ROWS)
        check_kind(table.kind, model.reads_)
        how: Any = {"all_scores": self.all_scores, "top": self.top}
        schema = output_schema(table.schema, model, self.prefix, **how)
        answered = pa.Table.from_batches(
            (
                pa.record_batch(
                    [*batch.columns, *answer_columns(model, table.documents(batch), schema, **how)],
                    schema=schema,
                )
                for batch in table.batches()
            ),
            schema,
        )
        if isinstance(rows, pa.Table):
            return answered
        whole = answered.combine_chunks().to_batches()
        return whole[0] if whole else pa.RecordBatch.from_pylist([], schema=schema)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the columns and types that rows with this schema come back with; Spark asks for them beforehand.

        Raises:
            InputError: a column has the name of an added one.
        """
        return self(schema.empty_table()).schema

    def _model(self) -> Fitted:
        with _opening:  # a process may call from several threads
            return _opened(self.folder, self.digest, self.device, self.trust_remote_code)


@lru_cache(maxsize=_OPEN_MODELS)
def _opened(folder: str, digest: str, device: str | None, trust_remote_code: bool) -> Fitted:
    if _digest(folder) != digest:
        raise ModelFolderError(
            f"{folder} does not hold the model that Batches was made with; give every machine the same folder, and "
            "make Batches again after a new fit."
        )
    return open_to_answer(folder, device=device, trust_remote_code=trust_remote_code)


def _digest(folder: str) -> str:
    """Hash what tells a saved model from another: its header, which holds the hashes of its weights, and its labels."""
    found = model_folder(folder)
    read_header(found, CLASSIFIER)
    return hashlib.sha256(b"".join((found / name).read_bytes() for name in (HEADER, LABELS))).hexdigest()
