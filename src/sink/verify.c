#include "sink/verify.h"

#include "base/buf.h"
#include "sink/verify_steps.h"

#include <stdio.h>

/* Looks until two in a row agree; what both found is the report. */

#define LOOKS_APART_US (2 * TIME_SECOND_US)

enum { LOOKS_MAX = 4, TEXT_MAX = 480, SCRATCH_MIB_MAX = 1536 };

const char *const VERIFY_CURE_LEDGER =
    "the ledger was changed from outside or is damaged: stop the server, put the last backup of "
    "the ledger back and run `lhbox recover` (docs/operations.md)";
const char *const VERIFY_CURE_OBJECT =
    "put the object back from a copy of the store; else the batch becomes held, and `lhbox sink "
    "batches discard` gives it up";
const char *const VERIFY_CURE_PLAN =
    "put the plan object back from a copy of the store; only the recovery of an older ledger "
    "needs it, so make a new `lhbox backup` now";
const char *const VERIFY_CURE_REJECTS =
    "put the file back from a copy of the store; the counts in the ledger stand";
const char *const VERIFY_CURE_PROPERTY =
    "find out who changed the table's property or rolled the table back; the rows wait "
    "(docs/operations.md, ledger_mismatch)";
const char *const VERIFY_CURE_FILES =
    "put the file back from a copy of the table's files, or roll the table back to a snapshot "
    "that does not need it";
const char *const VERIFY_CURE_TWICE =
    "find out who wrote it; take the second copy of the rows out with a delete by an engine";
const char *const VERIFY_CURE_AHEAD =
    "the ledger is older than the table: stop the server and run `lhbox recover`";

/* ---- findings ---- */

__attribute__((format(printf, 2, 0))) static str print_text(struct arena *arena, const char *format,
                                                            va_list arguments)
{
    char text[TEXT_MAX];
    int size = vsnprintf(text, sizeof(text), format, arguments);
    size_t kept = size < 0 ? 0 : (size_t)size;
    kept = kept < sizeof(text) ? kept : sizeof(text) - 1;
    return str_copy(arena, (str){text, kept});
}

void verify_find(struct verify *verify, const char *rule, str subject, const char *cure,
                 const char *format, ...)
{
    struct verify_report *report = verify->report;
    report->findings_in_all++;
    if (report->finding_count == VERIFY_FINDINGS_MAX) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    str text = print_text(verify->arena, format, arguments);
    va_end(arguments);
    report->findings[report->finding_count++] = (struct verify_finding){
        .rule = rule, .subject = str_copy(verify->arena, subject), .text = text, .cure = cure};
}

void verify_note(struct verify *verify, const char *kind, str subject)
{
    struct verify_report *report = verify->report;
    report->notes_in_all++;
    if (report->note_count < VERIFY_NOTES_MAX) {
        report->notes[report->note_count++] = (struct verify_note){
            .kind = kind, .subject = str_copy(verify->arena, subject)};
    }
}

/* ---- looks ---- */

MUST_USE static err report_init(struct arena *arena, struct verify_report *report,
                                struct error *error)
{
    *report = (struct verify_report){
        .findings = arena_array(arena, VERIFY_FINDINGS_MAX, sizeof(struct verify_finding)),
        .notes = arena_array(arena, VERIFY_NOTES_MAX, sizeof(struct verify_note)),
    };
    return report->findings == NULL || report->notes == NULL ? error_memory(error) : OK;
}

MUST_USE static err look(const struct verify_env *env, struct arena *arena, struct arena *scratch,
                         str sink_id, struct verify_report *report, struct error *error)
{
    struct verify verify = {.env = env, .arena = arena, .scratch = scratch, .report = report};
    TRY(report_init(arena, report, error));
    TRY(verify_read_ledger(&verify, sink_id, error));
    verify_ledger(&verify);
    TRY(verify_plans(&verify, error));
    TRY(verify_objects(&verify, error));
    TRY(verify_rejects(&verify, error));
    TRY(verify_folder(&verify, error));
    return verify_table(&verify, error);
}

static bool is_same(const struct verify_finding *a, const struct verify_finding *b)
{
    return str_equal(str_from(a->rule), str_from(b->rule)) && str_equal(a->subject, b->subject) &&
           str_equal(a->text, b->text);
}

static bool was_found(const struct verify_report *report, const struct verify_finding *finding)
{
    for (size_t i = 0; i < report->finding_count; i++) {
        if (is_same(&report->findings[i], finding)) {
            return true;
        }
    }
    return false;
}

/* Leaves in `report` what `before` had as well. True: they found the same. */
static bool keep_common(struct verify_report *report, const struct verify_report *before)
{
    size_t kept = 0;
    for (size_t i = 0; i < report->finding_count; i++) {
        if (was_found(before, &report->findings[i])) {
            report->findings[kept++] = report->findings[i];
        }
    }
    bool same = kept == report->finding_count && kept == before->finding_count;
    if (!same) {
        report->findings_in_all = (i64)kept;
        report->finding_count = kept;
    }
    return same;
}

/* Out of the look's arena. */
MUST_USE static err keep_report(struct arena *arena, struct verify_report *report,
                                struct error *error)
{
    struct verify_report kept = {0};
    TRY(report_init(arena, &kept, error));
    for (size_t i = 0; i < report->finding_count; i++) {
        kept.findings[i] = report->findings[i];
        kept.findings[i].subject = str_copy(arena, report->findings[i].subject);
        kept.findings[i].text = str_copy(arena, report->findings[i].text);
        if (kept.findings[i].subject.data == NULL || kept.findings[i].text.data == NULL) {
            return error_memory(error);
        }
    }
    for (size_t i = 0; i < report->note_count; i++) {
        kept.notes[i] = report->notes[i];
        kept.notes[i].subject = str_copy(arena, report->notes[i].subject);
        if (kept.notes[i].subject.data == NULL) {
            return error_memory(error);
        }
    }
    report->findings = kept.findings;
    report->notes = kept.notes;
    return OK;
}

err verify_sink(const struct verify_env *env, struct arena *arena, str sink_id,
                struct verify_report *out_report, struct error *error)
{
    AUTO_ARENA struct arena *scratch = arena_create((size_t)SCRATCH_MIB_MAX * MIB);
    struct verify_report before = {0};
    bool agreed = false;
    for (int looks = 0; looks < LOOKS_MAX && !agreed; looks++) {
        AUTO_ARENA struct arena *look_arena = arena_create((size_t)VERIFY_MIB_MAX * MIB);
        struct verify_report report = {0};
        if (looks > 0) {
            seam_wait_us(env->seam, LOOKS_APART_US);
        }
        arena_reset(scratch);
        TRY(look(env, look_arena, scratch, sink_id, &report, error));
        struct verify_report common = report;
        agreed = report.finding_count == 0 || (looks > 0 && keep_common(&common, &before));
        TRY(keep_report(arena, &common, error));
        before = common;
    }
    *out_report = before;
    return OK;
}
