// SPDX-License-Identifier: Apache-2.0
/* traces_json.c: requests as spans (traces.h): JSON as protobuf's mapping has it, but for ids, which OTLP writes in
 * hexadecimal; 64-bit numbers are strings. Attributes are those of OpenTelemetry's semantic conventions where there are
 * some. No state. */
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/random.h"
#include "server/traces.h"
#include "weft/version.h"

/* ---- traceparent ---- */

static int read_hex(const char **text, int n, char *out)
{
    int any = 0;
    for (int i = 0; i < n; i++) {
        const char c = (*text)[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return 0;
        any |= c != '0';
        out[i] = c;
    }
    out[n] = 0;
    *text += n;
    return 1 + any;
}

static int skip_dash(const char **text)
{
    return *(*text)++ == '-';
}

/* version-trace-span-flags. Later versions may have more behind a further dash; "ff" is none. Zeros name nothing. */
int weft__server_trace_parent_read(const char *text, weft__server_trace_parent *out)
{
    weft__server_trace_parent read = {0};
    char version[3], flags[3];
    *out = read;
    if (!text || !read_hex(&text, 2, version) || !strcmp(version, "ff") || !skip_dash(&text) ||
        read_hex(&text, 32, read.trace) != 2 || !skip_dash(&text) || read_hex(&text, 16, read.span) != 2 ||
        !skip_dash(&text) || !read_hex(&text, 2, flags))
        return 0;
    if (*text && (!strcmp(version, "00") || *text != '-')) return 0;
    read.is_sampled = strchr("13579bdf", flags[1]) != NULL;
    *out = read;
    return 1;
}

/* ---- spans ---- */

static void put_id(weft__strbuf *out, const char *name, int n_words)
{
    weft__strbuf_printf(out, "\"%s\":\"", name);
    for (int i = 0; i < n_words; i++)
        weft__strbuf_printf(out, "%016llx", (unsigned long long)(weft__rng_entropy() | 1)); /* never all zeros */
    weft__strbuf_puts(out, "\"");
}

static void begin_attribute(weft__strbuf *out, const char *name)
{
    if (out->len && out->data[out->len - 1] != '[') weft__strbuf_puts(out, ",");
    weft__strbuf_printf(out, "{\"key\":\"%s\",\"value\":", name);
}

static void span_text(weft__strbuf *out, const char *name, const char *text)
{
    begin_attribute(out, name);
    weft__strbuf_puts(out, "{\"stringValue\":");
    weft__json_write_string(out, text, strlen(text));
    weft__strbuf_puts(out, "}}");
}

static void put_int(weft__strbuf *out, const char *name, int64_t value)
{
    begin_attribute(out, name);
    weft__strbuf_printf(out, "{\"intValue\":\"%lld\"}}", (long long)value);
}

static void put_double(weft__strbuf *out, const char *name, double value)
{
    begin_attribute(out, name);
    weft__strbuf_printf(out, "{\"doubleValue\":%.9g}}", value);
}

static void put_times(weft__strbuf *out, uint64_t begin, uint64_t end)
{
    weft__strbuf_printf(out, ",\"startTimeUnixNano\":\"%llu\",\"endTimeUnixNano\":\"%llu\"", (unsigned long long)begin,
                        (unsigned long long)(end > begin ? end : begin));
}

/* The ids of a request's span, as text for its children. */
struct span_ids {
    char trace[33], span[17];
};

static void put_phase(weft__strbuf *out, const struct span_ids *of, const char *name, uint64_t begin, uint64_t end)
{
    weft__strbuf_printf(out, ",{\"traceId\":\"%s\",", of->trace);
    put_id(out, "spanId", 1);
    weft__strbuf_printf(out, ",\"parentSpanId\":\"%s\",\"name\":\"%s\",\"kind\":1", of->span, name);
    put_times(out, begin, end);
    weft__strbuf_puts(out, "}");
}

/* What happened one after the other; a phase that a request did not come to is left out. The last work on its text was
 * done just before it was handed on. */
static void put_phases(weft__strbuf *out, const struct span_ids *of, const weft__server_span *s, uint64_t unix_ns)
{
    const weft__server_stages *t = &s->stages;
    const uint64_t tokenizer = t->read_ns - t->ns[WEFT__SERVER_TOKENIZER],
                   template = tokenizer - t->ns[WEFT__SERVER_TEMPLATE];
    const uint64_t prompt_end = t->first_ns ? t->first_ns : t->ended_ns;
    const struct {
        const char *name;
        uint64_t begin, end;
    } phases[] = {{"read", t->came_ns, template},
                  {"template", t->ns[WEFT__SERVER_TEMPLATE] ? template : 0, tokenizer},
                  {"tokenizer", tokenizer, t->read_ns},
                  {"prepare", t->read_ns, t->submitted_ns},
                  {"queue", t->submitted_ns, t->began_ns ? t->began_ns : t->ended_ns},
                  {"prompt", t->began_ns, prompt_end},
                  {"generate", t->first_ns, t->ended_ns},
                  {"write", t->ended_ns, s->ended_ns}};
    for (size_t i = 0; i < sizeof phases / sizeof *phases; i++)
        if (phases[i].begin && phases[i].end)
            put_phase(out, of, phases[i].name, phases[i].begin + unix_ns, phases[i].end + unix_ns);
}

static void put_attributes(weft__strbuf *out, const weft__server_span *s)
{
    char name[64];
    weft__strbuf_puts(out, ",\"attributes\":[");
    span_text(out, "http.request.method", s->method);
    span_text(out, "url.path", s->path);
    span_text(out, "weft.request.id", s->id);
    put_int(out, "http.response.status_code", s->status);
    if (s->was_run) {
        span_text(out, "gen_ai.request.model", s->model);
        span_text(out, "gen_ai.response.finish_reasons", s->finish);
        put_int(out, "gen_ai.usage.input_tokens", s->n_prompt);
        put_int(out, "gen_ai.usage.output_tokens", s->n_generated);
        put_int(out, "weft.cached_tokens", s->n_cached);
    }
    for (int i = 0; i < WEFT__SERVER_STAGES && s->was_run; i++) {
        snprintf(name, sizeof name, "weft.stage.%s_ms", weft__server_stage_name(i));
        put_double(out, name, (double)s->stages.ns[i] / 1e6);
    }
    weft__strbuf_puts(out, "]");
}

static void put_span(weft__strbuf *out, const weft__server_span *s, uint64_t unix_ns)
{
    struct span_ids ids;
    snprintf(ids.trace, sizeof ids.trace, "%016llx%016llx", (unsigned long long)(weft__rng_entropy() | 1),
             (unsigned long long)weft__rng_entropy());
    snprintf(ids.span, sizeof ids.span, "%016llx", (unsigned long long)(weft__rng_entropy() | 1));
    if (s->parent.trace[0]) memcpy(ids.trace, s->parent.trace, sizeof ids.trace);
    weft__strbuf_printf(out, "{\"traceId\":\"%s\",\"spanId\":\"%s\"", ids.trace, ids.span);
    if (s->parent.span[0]) weft__strbuf_printf(out, ",\"parentSpanId\":\"%s\"", s->parent.span);
    weft__strbuf_puts(out, ",\"name\":");
    char name[96];
    snprintf(name, sizeof name, "%s %s", s->method, s->path);
    weft__json_write_string(out, name, strlen(name));
    weft__strbuf_puts(out, ",\"kind\":2"); /* a server's */
    put_times(out, s->stages.came_ns + unix_ns, s->ended_ns + unix_ns);
    put_attributes(out, s);
    /* an error is the server's own, or an answer that did not reach its client */
    weft__strbuf_printf(out, ",\"status\":{\"code\":%d}}", s->status >= 500 || !s->complete ? 2 : 0);
    if (s->was_run) put_phases(out, &ids, s, unix_ns);
}

void weft__server_traces_write(const weft__server_span *spans, int n, uint64_t unix_ns, weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    span_text(out, "service.name", "weft");
    weft__strbuf_printf(out, ",{\"key\":\"service.version\",\"value\":{\"stringValue\":\"%d.%d.%d\"}}",
                        WEFT_VERSION_MAJOR, WEFT_VERSION_MINOR, WEFT_VERSION_PATCH);
    weft__strbuf_puts(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"weft.server\"},\"spans\":[");
    for (int i = 0; i < n; i++) {
        if (i) weft__strbuf_puts(out, ",");
        put_span(out, &spans[i], unix_ns);
    }
    weft__strbuf_puts(out, "]}]}]}");
}
