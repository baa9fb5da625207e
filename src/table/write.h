/* write: what a table's own `write.*` properties ask of those who write its files.
 *
 * Names and defaults as the reference library has them ("Write properties" of its configuration
 * page), but for defaults that the contract sets otherwise; write.parquet.encodings, `compatible`
 * (the default) or `compact`, is lhbox's own. A property without a usable value
 * counts as not set: an owner's slip of the pen must not stop a sink. */
#ifndef LHBOX_TABLE_WRITE_H
#define LHBOX_TABLE_WRITE_H

#include "format/parquet/parquet.h"
#include "table/metadata.h"

/* write.parquet.* and write.metadata.metrics.*. The options of the columns are in the arena. A
 * codec that is not written becomes zstd, sizes are kept within what memory allows. */
MUST_USE err write_parquet_options(struct arena *arena, const struct metadata *metadata,
                                   const struct schema *schema, struct parquet_options *out_options,
                                   struct error *error);
/* The folder that `property` names, else `folder` in the table's location; no `/` at the end. data
 * NULL at the arena's limit. */
str write_folder(struct arena *arena, const struct metadata *metadata, const char *property,
                 const char *folder);
/* The URI of a new data file: in write.data.path, in the folder of its partition (may be empty),
 * with write.object-storage.enabled below a hash of its name. data NULL at the arena's limit. */
str write_data_uri(struct arena *arena, const struct metadata *metadata, str partition, str name);

#endif
