"""Files much larger than the memory used to read them."""

import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.corpus import open_table


@pytest.mark.slow
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_a_large_file_is_read_in_constant_memory(tmp_path, suffix):
    path = tmp_path / f"in.{suffix}"
    text, repeats = "lorem ipsum " * 80, 150_000
    if suffix == "parquet":
        pq.write_table(pa.table({"text": [f"{n} {text}" for n in range(repeats)]}), path, compression="none")
    else:
        line = f'{{"text": "{text}"}}\n' if suffix == "jsonl" else text + "\n"
        path.write_text(("text\n" if suffix == "csv" else "") + line * repeats)
    before = pa.total_allocated_bytes()
    most = rows = 0
    for batch in open_table(path).batches():
        rows += batch.num_rows
        if rows == 30 * 1024:
            time.sleep(0.5)  # a reader may run ahead of a slow scorer, but not far
        most = max(most, pa.total_allocated_bytes() - before)
    assert rows == repeats
    assert path.stat().st_size > 140e6
    assert most < (60e6 if suffix == "csv" else 20e6)
