"""Prints as JSON, for each engine, sums over the Parquet files of a session that it reads in place.

The argument is the folder of the session.
"""

import json
import shutil
import sys

folder = sys.argv[1]
kernels = f"{folder}/tables/kernels/*.parquet"
calls = f"{folder}/tables/collectives/*.parquet"


def polars_sums():
    import polars as pl

    time = pl.scan_parquet(kernels).group_by("rank", "class").agg(pl.len(), pl.col("dur_ns").sum(), pl.col("exclusive_ns").sum())
    wire = (
        pl.scan_parquet(calls)
        .group_by("communicator", "operation", "sequence")
        .agg((pl.col("dur_ns").min() * pl.len()).alias("wire_ns"), pl.col("dur_ns").sum().alias("time_ns"))
        .select("wire_ns", "time_ns")
        .sum()
    )
    return sorted(time.collect().rows()), wire.collect().row(0)


by_class = 'SELECT rank, class, count(*), sum(dur_ns), sum(exclusive_ns) FROM {} GROUP BY rank, class ORDER BY rank, class'
by_call = (
    "SELECT sum(wire_ns), sum(time_ns) FROM (SELECT min(dur_ns) * count(*) AS wire_ns, sum(dur_ns) AS time_ns "
    "FROM {} GROUP BY communicator, operation, sequence) AS calls"
)


def duckdb_sums():
    import duckdb

    rows = lambda sql, files: duckdb.sql(sql.format(f"read_parquet('{files}')")).fetchall()
    return rows(by_class, kernels), rows(by_call, calls)[0]


def chdb_sums():
    import chdb

    rows = lambda sql, files: [
        json.loads(line) for line in str(chdb.query(sql.format(f"file('{files}', Parquet)"), "JSONCompactEachRow")).splitlines()
    ]
    return rows(by_class, kernels), rows(by_call, calls)[0]


def spark_sums():
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    rows = lambda sql, files: [list(row) for row in spark.sql(sql.format(f"parquet.`{files}`")).collect()]
    return rows(by_class, kernels), rows(by_call, calls)[0]


def with_integers(row):
    return [value if isinstance(value, str) and not value.isdigit() else int(value) for value in row]


sums_of = {}
engines = {"polars": polars_sums, "duckdb": duckdb_sums, "chdb": chdb_sums}
if shutil.which("java"):
    engines["spark"] = spark_sums
for name, compute_sums in engines.items():
    time, wire = compute_sums()
    sums_of[name] = {"kernels": [with_integers(row) for row in time], "collectives": with_integers(wire)}
print(json.dumps(sums_of))
