#include "format/variant.h"

#include "base/assert.h"
#include "format/variant_encoding.h"

#include <stdlib.h>

enum {
    SHORT_STRING_MAX = 63,
    COUNT_IN_A_BYTE_MAX = 255, /* items of an object or array that is not "large" */
    SLOTS_FIRST = 16,
};

bool variant_builder_init(struct variant_builder *builder, struct arena *arena)
{
    *builder = (struct variant_builder){
        .arena = arena,
        .value = buf_create(arena, 256, VARIANT_BYTES_MAX),
        .metadata = buf_create(arena, 256, VARIANT_BYTES_MAX),
        .slots = arena_array(arena, SLOTS_FIRST, sizeof(u32)),
        .slot_count = SLOTS_FIRST,
        .slot_capacity = SLOTS_FIRST,
    };
    return buf_ok(&builder->value) && buf_ok(&builder->metadata) && builder->slots != NULL;
}

void variant_begin(struct variant_builder *builder)
{
    buf_truncate(&builder->value, 0);
    buf_truncate(&builder->metadata, 0);
    builder->name_count = 0;
    builder->item_count = 0;
    builder->depth = 0;
    /* As large as the next value needs, not as the largest one before did. */
    builder->slot_count = SLOTS_FIRST;
    memset(builder->slots, 0, SLOTS_FIRST * sizeof(*builder->slots));
}

/* ---- numbers in as few bytes as hold them ---- */

static u32 width_of(u32 largest)
{
    return largest <= 0xFF ? 1 : largest <= 0xFFFF ? 2 : largest <= 0xFFFFFF ? 3 : 4;
}

static void put_little(char *out, u32 value, u32 width)
{
    for (u32 i = 0; i < width; i++) {
        out[i] = (char)(u8)(value >> (8 * i));
    }
}

/* ---- names ---- */

/* Twice as many places, in the room of an earlier value where that suffices. */
static bool slots_grow(struct variant_builder *builder)
{
    u32 wanted = builder->slot_count * 2;
    if (wanted > builder->slot_capacity) {
        u32 *slots = arena_array(builder->arena, wanted, sizeof(*slots));
        if (slots == NULL) {
            return false;
        }
        builder->slots = slots;
        builder->slot_capacity = wanted;
    }
    builder->slot_count = wanted;
    memset(builder->slots, 0, wanted * sizeof(*builder->slots));
    for (u32 i = 0; i < builder->name_count; i++) {
        u32 slot = builder->names[i].hash & (wanted - 1);
        while (builder->slots[slot] != 0) {
            slot = (slot + 1) & (wanted - 1);
        }
        builder->slots[slot] = i + 1;
    }
    return true;
}

static bool names_grow(struct variant_builder *builder)
{
    if (builder->name_count < builder->name_capacity) {
        return true;
    }
    u32 wanted = builder->name_capacity * 2 + 16;
    struct variant_name *names = arena_grow(builder->arena, builder->names,
                                            builder->name_capacity * sizeof(*names),
                                            wanted * sizeof(*names));
    if (names == NULL) {
        return false;
    }
    builder->names = names;
    builder->name_capacity = wanted;
    return true;
}

/* The name's place in the metadata, made when it is new. False at the arena's limit. */
static bool name_id(struct variant_builder *builder, str name, u32 *out_id)
{
    if (!names_grow(builder) ||
        (builder->name_count * 2 >= builder->slot_count && !slots_grow(builder))) {
        return false;
    }
    u32 mask = builder->slot_count - 1;
    u32 hash = (u32)str_hash(name);
    u32 slot = hash & mask;
    for (; builder->slots[slot] != 0; slot = (slot + 1) & mask) {
        u32 id = builder->slots[slot] - 1;
        if (str_equal(builder->names[id].text, name)) {
            *out_id = id;
            return true;
        }
    }
    *out_id = builder->name_count;
    builder->names[builder->name_count++] = (struct variant_name){.text = name, .hash = hash};
    builder->slots[slot] = builder->name_count;
    return true;
}

/* ---- items of the open container ---- */

static struct variant_frame *frame_top(struct variant_builder *builder)
{
    return builder->depth > 0 ? &builder->frames[builder->depth - 1] : NULL;
}

static struct variant_item *item_add(struct variant_builder *builder)
{
    if (builder->item_count == builder->item_capacity) {
        u32 wanted = builder->item_capacity * 2 + 16;
        struct variant_item *items = arena_grow(builder->arena, builder->items,
                                                builder->item_capacity * sizeof(*items),
                                                wanted * sizeof(*items));
        if (items == NULL) {
            builder->failed = true;
            return NULL;
        }
        builder->items = items;
        builder->item_capacity = wanted;
    }
    struct variant_item *item = &builder->items[builder->item_count++];
    *item = (struct variant_item){.start = (u32)builder->value.size};
    return item;
}

/* Before each value: one in an array is an item; a member's item came with its name. */
static void value_starts(struct variant_builder *builder)
{
    const struct variant_frame *frame = frame_top(builder);
    if (frame != NULL && !frame->is_object) {
        (void)item_add(builder);
    }
}

void variant_name(struct variant_builder *builder, str name)
{
    assert(frame_top(builder) != NULL);
    assert(frame_top(builder)->is_object);
    struct variant_item *item = item_add(builder);
    if (item == NULL) {
        return;
    }
    item->name = name;
    if (!name_id(builder, name, &item->id)) {
        builder->failed = true;
    }
}

/* ---- scalars ---- */

static void put_header(struct variant_builder *builder, u32 basic, u32 rest)
{
    buf_append_byte(&builder->value, (u8)(rest << 2 | basic));
}

static void put_primitive(struct variant_builder *builder, u32 type, const void *bytes, size_t size)
{
    value_starts(builder);
    put_header(builder, VARIANT_BASIC_PRIMITIVE, type);
    buf_append_bytes(&builder->value, bytes, size);
}

void variant_null(struct variant_builder *builder)
{
    put_primitive(builder, VARIANT_NULL, "", 0);
}

void variant_boolean(struct variant_builder *builder, bool value)
{
    put_primitive(builder, value ? VARIANT_TRUE : VARIANT_FALSE, "", 0);
}

/* All hosts of ours are little-endian, as the encoding is. */
void variant_integer(struct variant_builder *builder, i64 value)
{
    if (value >= INT8_MIN && value <= INT8_MAX) {
        put_primitive(builder, VARIANT_INT8, &value, 1);
    } else if (value >= INT16_MIN && value <= INT16_MAX) {
        put_primitive(builder, VARIANT_INT16, &value, 2);
    } else if (value >= INT32_MIN && value <= INT32_MAX) {
        put_primitive(builder, VARIANT_INT32, &value, 4);
    } else {
        put_primitive(builder, VARIANT_INT64, &value, 8);
    }
}

void variant_decimal(struct variant_builder *builder, i128 unscaled, i32 scale)
{
    assert(scale >= 0);
    assert(scale <= VARIANT_DECIMAL_SCALE_MAX);
    u8 bytes[1 + sizeof(unscaled)];
    bytes[0] = (u8)scale;
    memcpy(bytes + 1, &unscaled, sizeof(unscaled));
    i128 size = unscaled < 0 ? -unscaled : unscaled;
    if (size <= 999999999) {
        put_primitive(builder, VARIANT_DECIMAL4, bytes, 1 + 4);
    } else if (size <= 999999999999999999) {
        put_primitive(builder, VARIANT_DECIMAL8, bytes, 1 + 8);
    } else {
        put_primitive(builder, VARIANT_DECIMAL16, bytes, 1 + 16);
    }
}

void variant_double(struct variant_builder *builder, double value)
{
    put_primitive(builder, VARIANT_DOUBLE, &value, sizeof(value));
}

void variant_string(struct variant_builder *builder, str text)
{
    assert(text.size <= VARIANT_BYTES_MAX);
    u32 size = (u32)text.size;
    value_starts(builder);
    if (size <= SHORT_STRING_MAX) {
        put_header(builder, VARIANT_BASIC_SHORT_STRING, size);
    } else {
        put_header(builder, VARIANT_BASIC_PRIMITIVE, VARIANT_STRING);
        buf_append_bytes(&builder->value, &size, sizeof(size));
    }
    buf_append(&builder->value, text);
}

/* ---- arrays and objects ---- */

static void container_begin(struct variant_builder *builder, bool is_object)
{
    value_starts(builder);
    assert(builder->depth < VARIANT_DEPTH_MAX);
    builder->frames[builder->depth++] = (struct variant_frame){
        .is_object = is_object,
        .start = (u32)builder->value.size,
        .first_item = builder->item_count,
    };
}

void variant_array(struct variant_builder *builder)
{
    container_begin(builder, false);
}

void variant_object(struct variant_builder *builder)
{
    container_begin(builder, true);
}

static int compare_items(const void *left, const void *right)
{
    const struct variant_item *a = left;
    const struct variant_item *b = right;
    return str_compare(a->name, b->name);
}

static u32 largest_id(const struct variant_item *items, u32 count)
{
    u32 largest = 0;
    for (u32 i = 0; i < count; i++) {
        largest = items[i].id > largest ? items[i].id : largest;
    }
    return largest;
}

/* How a container's head is laid out: count, ids (of an object), offsets and the end's. */
struct container_head {
    u32 count;
    u32 count_width; /* 1, or 4 when it is "large" */
    u32 id_width;    /* of an array 0 */
    u32 offset_width;
    u32 items_size;
    bool is_object;
};

static u32 head_size(const struct container_head *head)
{
    return 1 + head->count_width + head->count * head->id_width +
           (head->count + 1) * head->offset_width;
}

static u8 head_byte(const struct container_head *head)
{
    u32 large = head->count_width > 1 ? 1 : 0;
    u32 offset = head->offset_width - 1;
    u32 rest = head->is_object ? large << 4 | (head->id_width - 1) << 2 | offset
                               : large << 2 | offset;
    return (u8)(rest << 2 | (head->is_object ? VARIANT_BASIC_OBJECT : VARIANT_BASIC_ARRAY));
}

static void head_write(char *out, const struct container_head *head,
                       const struct variant_item *items, u32 start)
{
    *out++ = (char)head_byte(head);
    put_little(out, head->count, head->count_width);
    out += head->count_width;
    for (u32 i = 0; i < head->count; i++, out += head->id_width) {
        put_little(out, items[i].id, head->id_width);
    }
    for (u32 i = 0; i < head->count; i++, out += head->offset_width) {
        put_little(out, items[i].start - start, head->offset_width);
    }
    put_little(out, head->items_size, head->offset_width);
}

/* The items are in place already: they move up to make room for the head. */
void variant_end(struct variant_builder *builder)
{
    assert(builder->depth > 0);
    const struct variant_frame *frame = &builder->frames[--builder->depth];
    u32 count = builder->item_count - frame->first_item;
    struct variant_item *items = count > 0 ? &builder->items[frame->first_item] : NULL;
    builder->item_count = frame->first_item;
    if (builder->failed || !buf_ok(&builder->value)) {
        return;
    }
    struct container_head head = {
        .count = count,
        .count_width = count > COUNT_IN_A_BYTE_MAX ? 4 : 1,
        .items_size = (u32)builder->value.size - frame->start,
        .is_object = frame->is_object,
    };
    head.offset_width = width_of(head.items_size);
    if (frame->is_object) {
        head.id_width = width_of(largest_id(items, count));
        if (count > 1) {
            qsort(items, count, sizeof(*items), compare_items);
        }
    }
    u32 size = head_size(&head);
    if (buf_reserve(&builder->value, size) == NULL) {
        return;
    }
    char *start = builder->value.data + frame->start;
    memmove(start + size, start, head.items_size);
    head_write(start, &head, items, frame->start);
    buf_commit(&builder->value, size);
}

/* ---- the metadata ---- */

static bool names_are_sorted(const struct variant_builder *builder)
{
    for (u32 i = 1; i < builder->name_count; i++) {
        if (str_compare(builder->names[i - 1].text, builder->names[i].text) >= 0) {
            return false;
        }
    }
    return true;
}

static void metadata_write(struct variant_builder *builder)
{
    buf *out = &builder->metadata;
    size_t total = 0;
    for (u32 i = 0; i < builder->name_count; i++) {
        total += builder->names[i].text.size;
    }
    assert(total <= UINT32_MAX); /* of slices of one value, each name once */
    u32 width = width_of(total > builder->name_count ? (u32)total : builder->name_count);
    u32 flags = names_are_sorted(builder) ? VARIANT_META_SORTED : 0;
    buf_append_byte(out, (u8)(VARIANT_VERSION | flags | (width - 1) << VARIANT_META_WIDTH_SHIFT));
    char number[4];
    put_little(number, builder->name_count, width);
    buf_append_bytes(out, number, width);
    size_t offset = 0;
    for (u32 i = 0; i <= builder->name_count; i++) {
        put_little(number, (u32)offset, width);
        buf_append_bytes(out, number, width);
        offset += i < builder->name_count ? builder->names[i].text.size : 0;
    }
    for (u32 i = 0; i < builder->name_count; i++) {
        buf_append(out, builder->names[i].text);
    }
}

bool variant_finish(struct variant_builder *builder, str *out_metadata, str *out_value)
{
    assert(builder->depth == 0);
    metadata_write(builder);
    if (builder->failed || !buf_ok(&builder->value) || !buf_ok(&builder->metadata)) {
        return false;
    }
    assert(builder->value.size > 0);
    *out_metadata = buf_str(&builder->metadata);
    *out_value = buf_str(&builder->value);
    return true;
}
