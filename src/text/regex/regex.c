// SPDX-License-Identifier: Apache-2.0
/* regex.c: PCRE2 behind regex.h. Compiled code is immutable; limits are set on every search, since patterns come from
 * files.
 *
 * A search runs compiled to machine code on 32 KiB of stack. When it runs out of stack (-46) it gets a larger one; when
 * that does not do or the match limit (-47) is hit, the interpreter takes over with its state on a bounded heap and a
 * larger budget; when that is used up too, the search fails. It never just finds less. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "text/regex/regex.h"

#include <pcre2.h>

#include "base/alloc.h"

#define JIT_STACK_BYTES (8u << 20)
#define JIT_MATCH_LIMIT 10000000u
#define SLOW_MATCH_LIMIT 50000000u
#define MAX_GROUPS WEFT__REGEX_GROUPS
#define SLOW_HEAP_KIB 262144u /* 256 MiB */

struct weft__regex {
    pcre2_code *code;
    int jit;
};

static void *regex_take(PCRE2_SIZE n, void *arg)
{
    (void)arg;
    return weft__alloc(n);
}

static void give(void *p, void *arg)
{
    (void)arg;
    weft__free(p);
}

static weft_status regex_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "regular expression: out of memory");
}

static weft_status compile(const weft__strbuf *text, uint32_t more, weft__regex *regex, weft_error *err)
{
    const uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C | more;
    weft_status status = WEFT_OK;
    pcre2_general_context *general = pcre2_general_context_create(regex_take, give, NULL);
    pcre2_compile_context *context = general ? pcre2_compile_context_create(general) : NULL;
    if (!context) {
        status = regex_no_memory(err);
        goto done;
    }
    pcre2_set_newline(context, PCRE2_NEWLINE_LF);
    pcre2_set_parens_nest_limit(context, 120);
    int code;
    PCRE2_SIZE at;
    regex->code = pcre2_compile((PCRE2_SPTR)(text->data ? text->data : ""), text->len, options, &code, &at, context);
    if (!regex->code) {
        char message[160] = "";
        pcre2_get_error_message(code, (PCRE2_UCHAR *)message, sizeof message);
        status = code == PCRE2_ERROR_HEAP_FAILED
                     ? regex_no_memory(err)
                     : weft_fail(err, WEFT_FORMAT, "regular expression: %s (near byte %zu)", message, (size_t)at);
        goto done;
    }
    /* Without machine code searches are slower, not different. */
    regex->jit = pcre2_jit_compile(regex->code, PCRE2_JIT_COMPLETE) == 0;
done:
    pcre2_compile_context_free(context);
    pcre2_general_context_free(general);
    return status;
}

typedef weft_status translator(const char *pattern, size_t n, weft__strbuf *out, weft_error *err);

static weft_status make(translator *translate, uint32_t options, const char *pattern, size_t n, weft__regex **out,
                        weft_error *err)
{
    *out = NULL;
    weft__strbuf text = {0};
    weft__regex *regex = NULL;
    weft_status status = translate(pattern, n, &text, err);
    if (status) goto done;
    regex = weft__alloc_zero(1, sizeof *regex);
    status = regex ? compile(&text, options, regex, err) : regex_no_memory(err);
    if (status) goto done;
    *out = regex;
    regex = NULL;
done:
    weft__regex_free(&regex);
    weft__strbuf_free(&text);
    return status;
}

weft_status weft__regex_compile(const char *pattern, size_t n, weft__regex **out, weft_error *err)
{
    return make(weft__regex_translate, PCRE2_MULTILINE | PCRE2_NO_AUTO_CAPTURE, pattern, n, out, err);
}

weft_status weft__regex_compile_python(const char *pattern, size_t n, weft__regex **out, weft_error *err)
{
    uint32_t n_groups = 0;
    weft_status st = make(weft__regex_translate_python, 0, pattern, n, out, err);
    if (st) return st;
    pcre2_pattern_info((*out)->code, PCRE2_INFO_CAPTURECOUNT, &n_groups);
    if (n_groups < MAX_GROUPS) return WEFT_OK;
    weft__regex_free(out);
    return weft_fail(err, WEFT_LIMIT, "regular expression: %u groups; at most %d are taken", n_groups, MAX_GROUPS - 1);
}

void weft__regex_free(weft__regex **regex)
{
    if (!regex || !*regex) return;
    pcre2_code_free((*regex)->code);
    weft__free(*regex);
    *regex = NULL;
}

void weft__regex_scratch_free(weft__regex_scratch *s)
{
    pcre2_jit_stack_free(s->jit_stack);
    pcre2_match_context_free(s->context);
    pcre2_match_data_free(s->match_data);
    pcre2_general_context_free(s->general);
    *s = (weft__regex_scratch){0};
}

static int regex_prepare(weft__regex_scratch *s)
{
    if (s->context) return 1;
    if (!s->general) s->general = pcre2_general_context_create(regex_take, give, NULL);
    if (!s->general) return 0;
    if (!s->match_data) s->match_data = pcre2_match_data_create(MAX_GROUPS, s->general);
    if (!s->match_data) return 0;
    s->context = pcre2_match_context_create(s->general);
    if (!s->context) return 0;
    pcre2_set_match_limit(s->context, s->budget ? s->budget : JIT_MATCH_LIMIT);
    pcre2_set_heap_limit(s->context, SLOW_HEAP_KIB);
    return 1;
}

/* The second and third attempt, when machine code ran out of stack or budget. */
static int retry(const weft__regex *regex, weft__regex_scratch *s, const char *text, size_t n, size_t from,
                 uint32_t options, int rc)
{
    if (rc == PCRE2_ERROR_JIT_STACKLIMIT && !s->jit_stack) {
        s->jit_stack = pcre2_jit_stack_create(32768, JIT_STACK_BYTES, s->general);
        if (s->jit_stack) {
            pcre2_jit_stack_assign(s->context, NULL, s->jit_stack);
            rc = pcre2_jit_match(regex->code, (PCRE2_SPTR)text, n, from, options, s->match_data, s->context);
        }
    }
    if (s->budget || (rc != PCRE2_ERROR_JIT_STACKLIMIT && rc != PCRE2_ERROR_MATCHLIMIT)) return rc;
    pcre2_set_match_limit(s->context, SLOW_MATCH_LIMIT);
    rc = pcre2_match(regex->code, (PCRE2_SPTR)text, n, from, options | PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, s->match_data,
                     s->context);
    pcre2_set_match_limit(s->context, JIT_MATCH_LIMIT);
    return rc;
}

/* The match is in s->match_data. */
static weft_status search(const weft__regex *regex, weft__regex_scratch *s, const char *text, size_t n, size_t from,
                          uint32_t options, int *found, weft_error *err)
{
    *found = 0;
    if (!regex_prepare(s)) return regex_no_memory(err);
    int rc = regex->jit ? pcre2_jit_match(regex->code, (PCRE2_SPTR)text, n, from, options, s->match_data, s->context)
                        : pcre2_match(regex->code, (PCRE2_SPTR)text, n, from, options | PCRE2_NO_UTF_CHECK,
                                      s->match_data, s->context);
    if (rc < 0 && rc != PCRE2_ERROR_NOMATCH) rc = retry(regex, s, text, n, from, options, rc);
    *found = rc >= 0;
    if (rc >= 0) return WEFT_OK;
    if (rc == PCRE2_ERROR_NOMATCH) return WEFT_OK;
    if (rc == PCRE2_ERROR_NOMEMORY) return regex_no_memory(err);
    char message[160] = "";
    pcre2_get_error_message(rc, (PCRE2_UCHAR *)message, sizeof message);
    return weft_fail(err, WEFT_LIMIT, "a pattern gave up at byte %zu of %zu (%s)", from, n, message);
}

weft_status weft__regex_find(const weft__regex *regex, weft__regex_scratch *s, const char *text, size_t n, size_t from,
                             int *found, size_t *start, size_t *end, weft_error *err)
{
    weft_status st = search(regex, s, text, n, from, 0, found, err);
    if (st || !*found) return st;
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->match_data);
    *start = ends[0];
    *end = ends[1];
    return WEFT_OK;
}

weft_status weft__regex_match(const weft__regex *regex, weft__regex_scratch *s, const char *text, size_t n, size_t from,
                              int not_empty, int *found, weft__regex_groups *out, weft_error *err)
{
    weft_status st = search(regex, s, text, n, from, not_empty ? PCRE2_NOTEMPTY_ATSTART : 0, found, err);
    if (st || !*found) return st;
    uint32_t n_groups = 0;
    pcre2_pattern_info(regex->code, PCRE2_INFO_CAPTURECOUNT, &n_groups);
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(s->match_data);
    out->n = (int)n_groups + 1;
    for (int i = 0; i < out->n; i++) {
        const int took_part = ends[2 * i] != PCRE2_UNSET;
        out->start[i] = took_part ? ends[2 * i] : SIZE_MAX;
        out->end[i] = took_part ? ends[2 * i + 1] : SIZE_MAX;
    }
    return WEFT_OK;
}
