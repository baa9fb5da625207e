/* partition: partition specs and their transforms.
 *
 * Iceberg table spec, "Partitioning"; transform results before 1970 follow the reference library
 * (floor, not truncation). */
#ifndef LHBOX_TABLE_PARTITION_H
#define LHBOX_TABLE_PARTITION_H

#include "format/column.h"
#include "table/schema.h"

enum { PARTITION_FIELDS_MAX = 128 };

enum partition_transform {
    PARTITION_IDENTITY,
    PARTITION_BUCKET,
    PARTITION_TRUNCATE,
    PARTITION_YEAR,
    PARTITION_MONTH,
    PARTITION_DAY,
    PARTITION_HOUR,
    PARTITION_VOID,
    PARTITION_OTHER, /* a transform we do not know */
};

struct partition_field {
    i32 source_id;
    i32 field_id; /* from 1000 */
    enum partition_transform transform;
    i32 parameter; /* bucket, truncate */
    str name;
};

struct partition_spec {
    i32 id;
    struct partition_field *fields;
    size_t count;
};

/* One value of a partition tuple: what year, month, day and hour give (int), or null. */
struct partition_value {
    bool is_null;
    i64 number;
};

MUST_USE err partition_from_json(struct arena *arena, const json_t *document,
                                 struct partition_spec *out_spec, struct error *error);
/* `day(ts)`, `bucket[16](id)`, `truncate[4](name)`, `identity(x)` or `x` as a spec field JSON
 * {"source-id","field-id","name","transform"}, named as the reference library does. */
MUST_USE err partition_parse_text(str text, const struct type *root, i32 field_id,
                                  json_t **out_field, struct error *error);
/* What a spec must keep before it is written: every source (void's aside) is a column of a type
 * that the transform takes, no name is taken by a column (identity's own aside) or twice, and no
 * column has two time transforms or one other twice. */
MUST_USE err partition_check(const struct partition_spec *spec, const struct type *root,
                             struct error *error);
/* The transform named by its text; PARTITION_OTHER when it is not known. */
enum partition_transform partition_transform_parse(str text, i32 *out_parameter);
/* Type of the values: int for bucket, year, month and hour, date for day, else the source's. False
 * when the source is gone or the transform is not known. */
MUST_USE bool partition_result_type(const struct partition_field *field, const struct type *root,
                                    struct type *out_type);
/* Year, month, day or hour of the value at `index` of a date or timestamp column. */
struct partition_value partition_apply(const struct partition_field *field,
                                       const struct column *column, i64 index);
/* `ts_day=2026-09-21/x_year=2026`: the folder of a tuple, names and values percent-encoded. A
 * hint for people: parts that would make it longer than a key may be are left out, so it may be
 * empty. data NULL at the arena's limit. */
str partition_path(struct arena *arena, const struct partition_spec *spec,
                   const struct partition_value *values);

#endif
