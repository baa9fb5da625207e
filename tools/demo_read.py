"""Reads the demo's table with stock DuckDB and stock PyIceberg and compares it with what was sent."""
import json
import sys
from pathlib import Path

import duckdb
from pyiceberg.catalog import load_catalog

EXTENSIONS = ("httpfs", "avro", "iceberg")


def extension_file(name: str) -> str:
    """The extension that the Python package of this name carries."""
    package = __import__(f"duckdb_extension_{name}")
    return str(next(Path(package.__file__).parent.rglob(f"{name}.duckdb_extension")))


def main(profile: str, sent: str) -> int:
    dev = json.loads(Path(profile).read_text())
    rows = [json.loads(line) for line in Path(sent).read_text().splitlines()]

    con = duckdb.connect(config={"allow_unsigned_extensions": "true"})
    for name in EXTENSIONS:
        con.execute(f"LOAD '{extension_file(name)}'")
    con.execute(f"ATTACH '{dev['warehouse']}' AS dev (TYPE iceberg, ENDPOINT '{dev['url']}/iceberg', "
                f"TOKEN '{dev['api_key']}')")
    query = "SELECT count(*) AS quakes, count(DISTINCT id) AS ids, max(mag) AS strongest FROM dev.quakes.week"
    print(f"DuckDB> {query}")
    count, ids, strongest = con.execute(query).fetchone()
    print(f"  {count} earthquakes, {ids} different ids, the strongest of magnitude {strongest}")
    query = "SELECT happened_at, mag, place, __ingest_ts FROM dev.quakes.week ORDER BY mag DESC LIMIT 3"
    print(f"DuckDB> {query}")
    for row in con.execute(query).fetchall():
        print("  ", *row, sep="  ")

    table = load_catalog("dev", type="rest", uri=f"{dev['url']}/iceberg", warehouse=dev["warehouse"],
                         token=dev["api_key"]).load_table("quakes.week")
    arrow = table.scan().to_arrow()
    print(f"PyIceberg> {arrow.num_rows} rows, columns {', '.join(arrow.column_names)}")

    wanted = sorted((row["id"], row.get("mag"), row["position"]["lat"]) for row in rows)
    got = {
        "DuckDB": con.execute('SELECT id, mag, "position".lat FROM dev.quakes.week ORDER BY id').fetchall(),
        "PyIceberg": [(row["id"], row["mag"], row["position"]["lat"]) for row in arrow.to_pylist()],
    }
    for reader, found in got.items():
        if sorted(found, key=lambda row: row[0]) != wanted:
            print(f"{reader} does not read what was sent", file=sys.stderr)
            return 1
    print(f"Both read exactly the {len(wanted)} rows that were sent.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
