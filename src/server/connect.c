#include "server/connect.h"

#include "base/buf.h"

const char CONNECT_SINKS_NOTE[] = "A sink takes JSON arrays by POST with its send key and commits "
                                  "them to its one table. Make one "
                                  "with `lhbox sink create WAREHOUSE --table NAMESPACE.TABLE "
                                  "--name NAME --save FILE`; rows that do "
                                  "not fit the table's schema are in `lhbox sink rejects NAME`.";

str connect_rejects_recipe(struct arena *arena, str prefix)
{
    return str_format(
        arena,
        "SELECT * FROM read_json('%.*s*.ndjson', format = 'newline_delimited',\n"
        "    columns = {batch_id: 'VARCHAR', \"row\": 'BIGINT', reason: 'VARCHAR',\n"
        "               \"column\": 'VARCHAR', detail: 'VARCHAR', did_you_mean: 'VARCHAR',\n"
        "               also: 'JSON', received_at: 'VARCHAR', schema_id: 'BIGINT',\n"
        "               data: 'JSON', data_base64: 'VARCHAR'});\n",
        STR_ARG(prefix));
}

/* The recipe as a comment: it fails as long as no row was rejected. */
static str rejects_comment(struct arena *arena, str prefix)
{
    buf out = buf_create(arena, KIB, 64 * KIB);
    str rest = connect_rejects_recipe(arena, prefix);
    str line = {NULL, 0};
    buf_append(&out, STR("-- Rows that did not fit, and why, once there are some:\n"));
    while (rest.size > 0 && str_next(&rest, '\n', &line)) {
        buf_append_format(&out, "-- %.*s\n", STR_ARG(line));
    }
    return buf_str(&out);
}

static str block_duckdb(struct arena *arena, const struct connect_subject *subject)
{
    str wh = subject->warehouse;
    str attach = str_format(arena,
                            "INSTALL httpfs; INSTALL avro; INSTALL iceberg;\n"
                            "LOAD httpfs; LOAD avro; LOAD iceberg;\n"
                            "ATTACH '%.*s' AS %.*s (TYPE iceberg, ENDPOINT '%.*s/iceberg',\n"
                            "    TOKEN '%.*s');\n",
                            STR_ARG(wh), STR_ARG(wh), STR_ARG(subject->url),
                            STR_ARG(subject->api_key));
    str rejects = subject->rejects_prefix.size > 0 ? rejects_comment(arena, subject->rejects_prefix)
                                                   : STR("");
    if (subject->table.size == 0) {
        return str_format(arena, "%.*sSHOW ALL TABLES;\n%.*s", STR_ARG(attach), STR_ARG(rejects));
    }
    return str_format(arena, "%.*sSELECT * FROM %.*s.%.*s;\n%.*s", STR_ARG(attach), STR_ARG(wh),
                      STR_ARG(subject->table), STR_ARG(rejects));
}

static str block_pyiceberg(struct arena *arena, const struct connect_subject *subject)
{
    str load = str_format(arena,
                          "from pyiceberg.catalog import load_catalog\n"
                          "catalog = load_catalog(\"%.*s\", type=\"rest\", uri=\"%.*s/iceberg\",\n"
                          "                       warehouse=\"%.*s\", token=\"%.*s\")\n",
                          STR_ARG(subject->warehouse), STR_ARG(subject->url),
                          STR_ARG(subject->warehouse), STR_ARG(subject->api_key));
    if (subject->table.size == 0) {
        return str_format(arena, "%.*sprint(catalog.list_namespaces())\n", STR_ARG(load));
    }
    return str_format(arena, "%.*sprint(catalog.load_table(\"%.*s\").scan().to_arrow())\n",
                      STR_ARG(load), STR_ARG(subject->table));
}

/* A table is kept for a moment only, so that a session sees what a sink commits. With the cache off
 * Spark refuses to update a table into which others commit meanwhile. */
static str block_spark(struct arena *arena, const struct connect_subject *subject)
{
    str wh = subject->warehouse;
    return str_format(
        arena,
        "spark-sql --packages org.apache.iceberg:iceberg-spark-runtime-3.5_2.12:1.11.0 \\\n"
        "  --conf spark.sql.extensions="
        "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions \\\n"
        "  --conf spark.sql.catalog.%.*s=org.apache.iceberg.spark.SparkCatalog \\\n"
        "  --conf spark.sql.catalog.%.*s.type=rest \\\n"
        "  --conf spark.sql.catalog.%.*s.uri=%.*s/iceberg \\\n"
        "  --conf spark.sql.catalog.%.*s.warehouse=%.*s \\\n"
        "  --conf spark.sql.catalog.%.*s.token='%.*s' \\\n"
        "  --conf spark.sql.catalog.%.*s.cache.expiration-interval-ms=1\n",
        STR_ARG(wh), STR_ARG(wh), STR_ARG(wh), STR_ARG(subject->url), STR_ARG(wh), STR_ARG(wh),
        STR_ARG(wh), STR_ARG(subject->api_key), STR_ARG(wh));
}

static str block_trino(struct arena *arena, const struct connect_subject *subject)
{
    return str_format(arena,
                      "connector.name=iceberg\n"
                      "iceberg.catalog.type=rest\n"
                      "iceberg.rest-catalog.uri=%.*s/iceberg\n"
                      "iceberg.rest-catalog.warehouse=%.*s\n"
                      "iceberg.rest-catalog.security=OAUTH2\n"
                      "iceberg.rest-catalog.oauth2.token=%.*s\n"
                      "fs.hadoop.enabled=true\n",
                      STR_ARG(subject->url), STR_ARG(subject->warehouse),
                      STR_ARG(subject->api_key));
}

static str block_curl(struct arena *arena, const struct connect_subject *subject)
{
    str sink = subject->sink_id.size > 0 ? subject->sink_id : STR("<sink id>");
    str key = subject->send_key.size > 0 ? subject->send_key : STR("<send key>");
    return str_format(arena,
                      "curl -X POST %.*s/v1/sinks/%.*s \\\n"
                      "     -H 'Authorization: Bearer %.*s' \\\n"
                      "     -H \"Idempotency-Key: $(date +%%s)-$$\" \\\n"
                      "     -H 'Content-Type: application/json' \\\n"
                      "     -d '[{\"x\": 1, \"who\": \"north\"}, {\"x\": 2}]'\n",
                      STR_ARG(subject->url), STR_ARG(sink), STR_ARG(key));
}

str connect_block(struct arena *arena, str engine, const struct connect_subject *subject)
{
    static const struct {
        const char *name;
        str (*block)(struct arena *arena, const struct connect_subject *subject);
    } engines[] = {
        {"duckdb", block_duckdb}, {"pyiceberg", block_pyiceberg}, {"spark", block_spark},
        {"trino", block_trino},   {"curl", block_curl},
    };
    for (size_t i = 0; i < ARRAY_COUNT(engines); i++) {
        if (str_equal(engine, str_from(engines[i].name))) {
            return engines[i].block(arena, subject);
        }
    }
    return (str){NULL, 0};
}
