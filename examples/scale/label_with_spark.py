"""Label Parquet files with Spark, on all machines of the cluster.

    spark-submit examples/scale/label_with_spark.py MODEL IN OUT

MODEL is the folder of a saved model, at the same place on every machine, or its name on the hub. IN and OUT are folders
or addresses, such as s3a://bucket/in. Each Python process of Spark opens the model once. Spark repeats the work of a
process that dies, and shows the rows of a partition when all of it is done.
"""

import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from labelspace.classify import Batches


def main(model: str, source: str, target: str) -> None:
    spark = SparkSession.builder.appName("labelspace").getOrCreate()
    documents = spark.read.parquet(source)
    label = Batches(model)
    schema = from_arrow_schema(label.schema(to_arrow_schema(documents.schema)))

    def labelled(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(label, batches)

    documents.mapInArrow(labelled, schema).write.parquet(target)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
