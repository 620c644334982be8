// SPDX-License-Identifier: Apache-2.0
/* feedback.c: see feedback.h. */
#include "learn/feedback.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum { SCORE_MOST = 1000000, VERIFIER_MOST = 128, MESSAGE_MOST = 16 << 10 };

static weft_status said_fault(char field[32], const char *name, weft_error *err, const char *what)
{
    snprintf(field, 32, "%.31s", name);
    return weft_fail(err, WEFT_ARGUMENT, "'%s' %s", name, what);
}

/* A text without NUL of 1 to `most` bytes. */
static int said_text(const weft__json *v, size_t most, const char **text, size_t *n)
{
    return weft__json_string(v, text, n) && *n && *n <= most && !memchr(*text, 0, *n);
}

/* The id of an answer, and its number. */
static int id_of(const weft__json *v, const char **id)
{
    size_t n;
    return said_text(v, WEFT__LEARN_ID - 1, id, &n);
}

static int is_key(const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i] < 0x20 || text[i] > 0x7e) return 0;
    return n && n < WEFT__LEARN_KEY;
}

static int read_key(const weft__json *v, const char **key)
{
    size_t n;
    return weft__json_is_null(v) || (weft__json_string(v, key, &n) && is_key(*key, n));
}

static int index_of(const weft__json *v, int32_t *out)
{
    int64_t i = 0;
    if (v && !weft__json_is_null(v) && (!weft__json_int(v, &i) || i < 0 || i > 1 << 20)) return 0;
    *out = (int32_t)i;
    return 1;
}

static int only_members(const weft__json *v, const char *const *names)
{
    weft__json_member m = {0};
    while (weft__json_next(v, &m)) {
        int known = 0;
        for (const char *const *n = names; *n; n++) known |= !strcmp(*n, m.key);
        if (!known) return 0;
    }
    return weft__json_kind_of(v) == WEFT__JSON_OBJECT;
}

static const char *read_preferred(const weft__json *v, weft__learn_feedback *f)
{
    static const char *const names[] = {"over", "index", NULL};
    return only_members(v, names) && id_of(weft__json_get(v, "over"), &f->over_id) &&
                   index_of(weft__json_get(v, "index"), &f->over_choice)
               ? NULL
               : "must be an object: over, the id of the request whose answer is worse, and its index";
}

static const char *read_verifier(const weft__json *v, weft__learn_feedback *f)
{
    static const char *const names[] = {"name", "passed", "score", "message", NULL};
    const weft__json *message = weft__json_get(v, "message"), *score = weft__json_get(v, "score");
    size_t n;
    int passed = 0;
    f->value = 0;
    if (!only_members(v, names) || !said_text(weft__json_get(v, "name"), VERIFIER_MOST, &f->name, &n) ||
        !(weft__json_bool(weft__json_get(v, "passed"), &passed) ^ weft__json_double(score, &f->value)) ||
        !(fabs(f->value) <= SCORE_MOST))
        return "must be an object: name, and passed (true, false) or score (a number), and perhaps a message";
    if (!score) f->value = passed;
    if (message && !said_text(message, MESSAGE_MOST, &f->text, &f->n_text))
        return "has a message that is no text, empty, or longer than 16 KiB";
    return NULL;
}

/* NULL, or what is wrong with it. */
static const char *read_value(weft__learn_kind kind, const weft__json *v, weft__learn_feedback *f)
{
    f->kind = kind;
    switch (kind) {
    case WEFT__LEARN_CORRECTION:
    case WEFT__LEARN_EDIT:
        return said_text(v, WEFT__LEARN_TEXT, &f->text, &f->n_text) ? NULL
                                                                    : "must be a text of 1 byte to 256 KiB without NUL";
    case WEFT__LEARN_PREFERRED: return read_preferred(v, f);
    case WEFT__LEARN_THUMB:
        f->value = weft__json_is(v, "up") ? 1 : -1;
        return weft__json_is(v, "up") || weft__json_is(v, "down") ? NULL : "must be up or down";
    case WEFT__LEARN_REWARD:
        return weft__json_double(v, &f->value) && fabs(f->value) <= 1 ? NULL : "must be a number from -1 to 1";
    case WEFT__LEARN_VERIFIER: return read_verifier(v, f);
    case WEFT__LEARN_KINDS: break;
    }
    return "is not known";
}

static weft_status read_members(const weft__json *root, weft__learn_said *out, char field[32], weft_error *err)
{
    weft__learn_feedback *f = &out->feedback;
    weft__json_member m = {0};
    int n_kinds = 0;
    size_t n;
    while (weft__json_next(root, &m)) {
        const char *fault = NULL;
        weft__learn_kind kind = 0;
        while (kind < WEFT__LEARN_KINDS && strcmp(m.key, weft__learn_kind_name(kind))) kind++;
        if (!strcmp(m.key, "request_id"))
            fault = id_of(m.value, &f->id) ? NULL : "must be the id of an answer of this server";
        else if (!strcmp(m.key, "index"))
            fault = index_of(m.value, &f->choice) ? NULL : "must be the number of one of its choices, from 0";
        else if (!strcmp(m.key, "user"))
            fault = weft__json_is_null(m.value) || said_text(m.value, 256, &out->user, &n) ? NULL : "must be a text";
        else if (!strcmp(m.key, "idempotency_key"))
            fault = read_key(m.value, &f->key) ? NULL : "must be a text of 1 to 255 bytes of printable ASCII";
        else if (kind == WEFT__LEARN_KINDS) fault = "is not known here";
        else if (n_kinds++)
            fault = "is one thing too many: one of correction, edit, preferred, thumb, reward and verifier at a time";
        else fault = read_value(kind, m.value, f);
        if (fault) return said_fault(field, m.key, err, fault);
    }
    if (!f->id) return said_fault(field, "request_id", err, "is missing: the id of the answer that this is about");
    if (!n_kinds)
        return weft_fail(
            err, WEFT_ARGUMENT,
            "what is said of the answer is missing: correction, edit, preferred, thumb, reward or verifier");
    return WEFT_OK;
}

weft_status weft__learn_feedback_read(const char *text, size_t n, weft__learn_said *out, char field[32],
                                      weft_error *err)
{
    *out = (weft__learn_said){0};
    field[0] = 0;
    weft_status st = weft__json_parse(text, n, &out->root, err);
    if (!st && weft__json_kind_of(out->root) != WEFT__JSON_OBJECT)
        st = weft_fail(err, WEFT_ARGUMENT, "the body must be a JSON object");
    if (!st) st = read_members(out->root, out, field, err);
    if (st) weft__json_free(&out->root);
    return st == WEFT_LIMIT ? weft_fail(err, WEFT_FORMAT, "the JSON nests too deep") : st;
}

/* The text between quotes, with what is escaped; its end, or NULL: there is none, or something is escaped wrongly. */
static const char *read_quoted(const char *at, char *out, size_t *n)
{
    for (*n = 0; *at && *at != '"'; at++) {
        if (*at == '\\' && *++at != '"' && *at != '\\') return NULL;
        if (*n + 1 >= WEFT__LEARN_KEY) return NULL;
        out[(*n)++] = *at;
    }
    return *at ? at + 1 : NULL;
}

weft_status weft__learn_key_read(const char *value, char out[WEFT__LEARN_KEY], weft_error *err)
{
    size_t n = strcspn(value, " \t\",");
    const char *end = value + n;
    if (*value == '"') end = read_quoted(value + 1, out, &n);
    else if (n < WEFT__LEARN_KEY) memcpy(out, value, n);
    if (!end || *end || !is_key(*value == '"' ? out : value, n))
        return weft_fail(err, WEFT_ARGUMENT,
                         "must be one key of 1 to 255 bytes of printable ASCII, between quotes where it has blanks, "
                         "commas or quotes");
    out[n] = 0;
    return WEFT_OK;
}
