/* journal_fixture: a journal over files in memory that fail and stop, or over a directory, and
 * records that tell which they are. */
#ifndef LHBOX_TESTS_JOURNAL_FIXTURE_H
#define LHBOX_TESTS_JOURNAL_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/journal_block.h"
#include "io/journal_files.h"

#include <ftw.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 64, FILE_NAME_ROOM = 64 };

/* ---- files in memory ---- */

enum fault { SOUND, FAILS, DIES_BEFORE, DIES_HALFWAY, DIES_AFTER, FAULTS };

struct fake_file {
    char name[FILE_NAME_ROOM]; /* empty: no such file */
    u8 *bytes;
    size_t size;
};

struct fake {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct fake_file files[FILES_MAX];
    enum fault fault;
    int fault_at;
    int calls;
    bool dead;
    int writes;
    bool gate_shut; /* writes stand before it */
    int at_gate;
};

/* What becomes of this call: nothing, a half, or all of it, and what is said of it. */
struct fate {
    bool happens;
    bool half;
    err answer;
};

static inline struct fate fake_call(struct fake *fake)
{
    int call = ++fake->calls;
    if (fake->dead || call != fake->fault_at || fake->fault == SOUND) {
        return (struct fate){.happens = !fake->dead, .answer = fake->dead ? IO : OK};
    }
    fake->dead = fake->fault != FAILS;
    return (struct fate){.happens = fake->fault == DIES_HALFWAY || fake->fault == DIES_AFTER,
                         .half = fake->fault == DIES_HALFWAY,
                         .answer = IO};
}

static inline err fake_answer(struct fake *fake, err answer, struct error *error)
{
    (void)pthread_mutex_unlock(&fake->lock);
    return answer == OK ? OK : error_set(error, answer, ERROR_STORE_DOWN, "the test's file fails");
}

static inline struct fake_file *fake_find(struct fake *fake, str name)
{
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (fake->files[i].name[0] != '\0' && str_equal(str_from(fake->files[i].name), name)) {
            return &fake->files[i];
        }
    }
    return NULL;
}

static inline struct fake_file *fake_new(struct fake *fake, str name, size_t size)
{
    size_t index = 0;
    while (index < FILES_MAX && fake->files[index].name[0] != '\0') {
        index++;
    }
    u8 *bytes = calloc(1, size + 1);
    if (index == FILES_MAX || bytes == NULL) {
        abort();
    }
    struct fake_file *file = &fake->files[index];
    (void)snprintf(file->name, sizeof(file->name), "%.*s", STR_ARG(name));
    file->bytes = bytes;
    file->size = size;
    return file;
}

static inline void fake_remove(struct fake_file *file)
{
    free(file->bytes);
    *file = (struct fake_file){0};
}

static inline err fake_list(void *self, struct arena *arena, str *out_names, size_t *out_count,
                            struct error *error)
{
    struct fake *fake = self;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    *out_count = 0;
    for (size_t i = 0; i < FILES_MAX; i++) {
        if (fake->files[i].name[0] != '\0') {
            out_names[(*out_count)++] = str_copy(arena, str_from(fake->files[i].name));
        }
    }
    return fake_answer(fake, fate.answer, error);
}

static inline err fake_load(void *self, struct arena *arena, str name, str *out_bytes,
                            struct error *error)
{
    struct fake *fake = self;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    const struct fake_file *file = fake_find(fake, name);
    if (fate.answer == OK && file != NULL) {
        *out_bytes = str_copy(arena, (str){(const char *)file->bytes, file->size});
    }
    return fake_answer(fake, fate.answer == OK && file == NULL ? NOT_FOUND : fate.answer, error);
}

static inline err fake_save(void *self, str name, str bytes, struct error *error)
{
    struct fake *fake = self;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    if (fate.happens && !fate.half) { /* a rename is done or not */
        struct fake_file *file = fake_find(fake, name);
        if (file != NULL) {
            fake_remove(file);
        }
        file = fake_new(fake, name, bytes.size);
        memcpy(file->bytes, bytes.data, bytes.size);
    }
    return fake_answer(fake, fate.answer, error);
}

static inline err fake_make(void *self, str name, u64 bytes, struct error *error)
{
    struct fake *fake = self;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    assert_null(fake_find(fake, name));
    if (fate.happens) {
        (void)fake_new(fake, name, fate.half ? (size_t)(bytes / 2) + 7 : (size_t)bytes);
    }
    return fake_answer(fake, fate.answer, error);
}

static inline err fake_remove_call(void *self, str name, struct error *error)
{
    struct fake *fake = self;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    struct fake_file *file = fake_find(fake, name);
    if (fate.happens && !fate.half && file != NULL) {
        fake_remove(file);
    }
    return fake_answer(fake, fate.answer, error);
}

static inline err fake_open(void *self, str name, int *out_file, u64 *out_bytes,
                            struct error *error)
{
    struct fake *fake = self;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    const struct fake_file *file = fake_find(fake, name);
    if (fate.answer == OK && file != NULL) {
        *out_file = (int)(file - fake->files);
        *out_bytes = file->size;
    }
    return fake_answer(fake, fate.answer == OK && file == NULL ? NOT_FOUND : fate.answer, error);
}

static inline err fake_read(void *self, int file, u64 offset, void *out_bytes, size_t size,
                            struct error *error)
{
    struct fake *fake = self;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    assert_true(offset + size <= fake->files[file].size);
    memcpy(out_bytes, fake->files[file].bytes + offset, size);
    return fake_answer(fake, fate.answer, error);
}

static inline err fake_write(void *self, int file, u64 offset, const void *bytes, size_t size,
                             struct error *error)
{
    struct fake *fake = self;
    assert_true(size % JOURNAL_BLOCK_BYTES == 0 && (uintptr_t)bytes % JOURNAL_ALIGNMENT == 0);
    (void)pthread_mutex_lock(&fake->lock);
    fake->writes++;
    fake->at_gate++;
    (void)pthread_cond_broadcast(&fake->changed);
    while (fake->gate_shut) {
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    }
    fake->at_gate--;
    struct fate fate = fake_call(fake);
    assert_true(offset + size <= fake->files[file].size);
    if (fate.happens) {
        size_t part = fate.half ? size / 2 : size;
        memcpy(fake->files[file].bytes + offset, bytes, part);
    }
    return fake_answer(fake, fate.answer, error);
}

static inline err fake_fill(void *self, int file, u64 bytes, struct error *error)
{
    struct fake *fake = self;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    assert_true(bytes == fake->files[file].size);
    return fake_answer(fake, fate.answer, error);
}

static inline err fake_sync(void *self, int file, struct error *error)
{
    struct fake *fake = self;
    (void)file;
    (void)pthread_mutex_lock(&fake->lock);
    struct fate fate = fake_call(fake);
    return fake_answer(fake, fate.answer, error);
}

static inline void fake_close(void *self, int file)
{
    (void)self;
    (void)file;
}

static inline void fake_end(void *self)
{
    (void)self;
}

static const struct journal_file_ops FAKE_OPS = {
    .list = fake_list,
    .load = fake_load,
    .save = fake_save,
    .make = fake_make,
    .remove = fake_remove_call,
    .open = fake_open,
    .read = fake_read,
    .fill = fake_fill,
    .write = fake_write,
    .sync = fake_sync,
    .close = fake_close,
    .end = fake_end,
};

static inline void fake_gate(struct fake *fake, bool shut)
{
    (void)pthread_mutex_lock(&fake->lock);
    fake->gate_shut = shut;
    (void)pthread_cond_broadcast(&fake->changed);
    (void)pthread_mutex_unlock(&fake->lock);
}

static inline void fake_await_write(struct fake *fake)
{
    (void)pthread_mutex_lock(&fake->lock);
    while (fake->at_gate == 0) {
        (void)pthread_cond_wait(&fake->changed, &fake->lock);
    }
    (void)pthread_mutex_unlock(&fake->lock);
}

/* ---- a journal over either ---- */

struct fixture {
    struct arena *arena;
    struct fake *fake;
    char directory[64]; /* empty: in memory */
    struct journal_options options;
    struct journal journal;
};

static struct fixture fixture;

static inline void fixture_make(void)
{
    fixture = (struct fixture){.arena = arena_create((size_t)512 * MIB)};
    fixture.options = (struct journal_options){.segment_bytes = MIB,
                                               .segments = 2,
                                               .identity = STR("installation-1"),
                                               .seam = seam_system()};
}

static inline int set_up_fake(void **state)
{
    fixture_make();
    fixture.fake = calloc(1, sizeof(*fixture.fake));
    (void)pthread_mutex_init(&fixture.fake->lock, NULL);
    (void)pthread_cond_init(&fixture.fake->changed, NULL);
    *state = &fixture;
    return 0;
}

static inline int set_up_dir(void **state)
{
    fixture_make();
    (void)snprintf(fixture.directory, sizeof(fixture.directory), "/tmp/lhbox-journal-XXXXXX");
    assert_non_null(mkdtemp(fixture.directory));
    fixture.options.directory = str_format(fixture.arena, "%s/log", fixture.directory);
    *state = &fixture;
    return 0;
}

static inline int remove_entry(const char *path, const struct stat *status, int flag,
                               struct FTW *walk)
{
    (void)status;
    (void)flag;
    (void)walk;
    return remove(path);
}

static inline int tear_down(void **state)
{
    struct fixture *f = *state;
    journal_close(&f->journal);
    if (f->fake != NULL) {
        for (size_t i = 0; i < FILES_MAX; i++) {
            free(f->fake->files[i].bytes);
        }
        free(f->fake);
    } else {
        (void)nftw(f->directory, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
    }
    arena_destroy(f->arena);
    return 0;
}

/* Its buffers last until the next one. */
static inline err try_open(struct fixture *f, struct error *error)
{
    static struct arena *memory;
    arena_destroy(memory);
    memory = arena_create((size_t)4 * MIB);
    if (f->fake == NULL) {
        return journal_open_dir(memory, &f->options, &f->journal, error);
    }
    const struct journal_files files = {&FAKE_OPS, f->fake};
    return journal_open_files(memory, &f->options, &files, &f->journal, error);
}

static inline void must_open(struct fixture *f)
{
    struct error error = {0};
    if (try_open(f, &error) != OK) {
        fail_msg("%s", error.message);
    }
}

/* ---- records that tell which they are ---- */

enum { RECORDS_MAX = 20000 };

struct replayed {
    u32 ids[RECORDS_MAX];
    size_t count;
};

static inline err submit(struct fixture *f, u32 id, size_t size, u64 *out_position)
{
    char head[8];
    static const char filler[JOURNAL_RECORD_BYTES_MAX + 1];
    num_store_u32(head, id);
    num_store_u32(head + 4, ~id);
    const str pieces[] = {{head, sizeof(head)}, {filler, size - sizeof(head)}};
    return journal_submit(&f->journal, pieces, ARRAY_COUNT(pieces), out_position, NULL);
}

static inline err append(struct fixture *f, u32 id, size_t size)
{
    u64 position = 0;
    TRY(submit(f, id, size, &position));
    return journal_wait(&f->journal, position, NULL);
}

static inline err note(void *context, u64 position, str bytes, struct error *error)
{
    struct replayed *replayed = context;
    (void)error;
    assert_true(position >= JOURNAL_BLOCK_BYTES);
    assert_true(bytes.size >= 8 && num_load_u32(bytes.data) == ~num_load_u32(bytes.data + 4));
    assert_true(replayed->count < RECORDS_MAX);
    replayed->ids[replayed->count++] = num_load_u32(bytes.data);
    return OK;
}

static inline void replay(struct fixture *f, struct replayed *out_replayed)
{
    out_replayed->count = 0;
    assert_int_equal(journal_replay(&f->journal, note, out_replayed, NULL), OK);
}

static inline void assert_replay(struct fixture *f, u32 first, size_t count)
{
    static struct replayed replayed;
    replay(f, &replayed);
    assert_int_equal(replayed.count, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(replayed.ids[i], first + i);
    }
}

static inline void reopen(struct fixture *f)
{
    journal_close(&f->journal);
    must_open(f);
}

#endif
