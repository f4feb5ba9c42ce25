"""Label Parquet files with Ray Data, on all machines of the cluster.

    python examples/scale/label_with_ray.py MODEL IN OUT

MODEL is the folder of a saved model, at the same place on every machine, or its name on the hub. IN and OUT are folders
or addresses, such as s3://bucket/in. Each process of Ray opens the model once. Ray repeats the work of a process that
dies.
"""

import sys

import ray.data

from labelspace.classify import Batches


def main(model: str, source: str, target: str) -> None:
    documents = ray.data.read_parquet(source)
    labelled = documents.map_batches(Batches(model), batch_format="pyarrow", batch_size=2048)
    labelled.write_parquet(target)


if __name__ == "__main__":
    main(*sys.argv[1:])
