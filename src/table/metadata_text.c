#include "table/metadata_text.h"

#include "base/assert.h"
#include "table/metadata_private.h"

#include <stdatomic.h>

/* Lies in its own arena. */
struct metadata_text {
    struct arena *arena;
    atomic_llong references;
    struct metadata *metadata;
    struct document_text printed;
};

err metadata_text_print(const struct metadata *metadata, const struct metadata_text *before,
                        struct metadata_text **out_text, struct error *error)
{
    struct arena *arena = arena_create(METADATA_SCRATCH_BYTES_MAX);
    struct metadata_text *text = arena_alloc(arena, sizeof(*text));
    err result = text == NULL ? error_memory(error)
                              : document_print_after(arena, metadata_json(metadata),
                                                     before != NULL ? &before->printed : NULL,
                                                     &text->printed, error);
    if (result != OK) {
        arena_destroy(arena);
        return result;
    }
    text->arena = arena;
    text->metadata = metadata_share(metadata);
    atomic_init(&text->references, 1);
    *out_text = text;
    return OK;
}

struct metadata_text *metadata_text_share(struct metadata_text *text)
{
    if (text != NULL) {
        long long others = atomic_fetch_add(&text->references, 1);
        assert(others > 0);
    }
    return text;
}

void metadata_text_close(struct metadata_text *text)
{
    if (text != NULL && atomic_fetch_sub(&text->references, 1) == 1) {
        metadata_close(text->metadata);
        arena_destroy(text->arena);
    }
}

void metadata_text_close_at(struct metadata_text **text)
{
    metadata_text_close(*text);
    *text = NULL;
}

str metadata_text_bytes(const struct metadata_text *text)
{
    return text->printed.text;
}

const struct metadata *metadata_text_document(const struct metadata_text *text)
{
    return text->metadata;
}
