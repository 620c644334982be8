// SPDX-License-Identifier: Apache-2.0
/* jinja.c: compiling and rendering as a whole (jinja.h). */
#include "text/jinja/jinja.h"

#include <string.h>

#include "base/alloc.h"
#include "text/jinja/ast.h"
#include "text/jinja/eval.h"

/* What compiling may cost: nodes visited, and bytes; a 30 kB template takes about 3 MB. */
#define COMPILE_STEPS ((uint64_t)20000000)
#define COMPILE_MEMORY ((size_t)256 << 20)

struct weft__jinja_call {
    weft__jinja_ctx ctx;
};

static weft_status compile_into(weft__jinja_ctx *c, weft__jinja *t, const char *source, size_t n)
{
    weft__jinja_compiler p = {.ctx = c};
    weft__jinja_val names;
    WEFT__JINJA_TRY(weft__jinja_new_dict(c, &names));
    p.names = names.u.dict;
    WEFT__JINJA_TRY(weft__jinja_lex(c, source, n, &p.tokens));
    WEFT__JINJA_TRY(weft__jinja_parse_template(&p, &t->body));
    return weft__jinja_resolve(&p, t);
}

static weft_status compile(const char *source, size_t n, int plain, weft__jinja **out, weft_error *err)
{
    *out = NULL;
    if (n > WEFT__JINJA_MAX_SOURCE) {
        return weft_fail(err, WEFT_LIMIT, "the template has %zu bytes; at most %u are taken", n,
                         WEFT__JINJA_MAX_SOURCE);
    }
    weft__jinja *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "out of memory for a template");
    weft__jinja_ctx ctx = {
        .steps = COMPILE_STEPS, .err = err, .plain = plain, .limits = {.max_steps = COMPILE_STEPS, .max_depth = 1000}};
    weft__jinja_arena_init(&ctx.arena, COMPILE_MEMORY);
    t->plain = plain;
    weft_status status = compile_into(&ctx, t, source, n);
    t->arena = ctx.arena;
    if (status) {
        weft__jinja_destroy(&t);
        return status;
    }
    *out = t;
    return WEFT_OK;
}

weft_status weft__jinja_compile(const char *source, size_t n, weft__jinja **out, weft_error *err)
{
    return compile(source, n, 0, out, err);
}

weft_status weft__jinja_compile_plain(const char *source, size_t n, weft__jinja **out, weft_error *err)
{
    return compile(source, n, 1, out, err);
}

int weft__jinja_reads(const weft__jinja *t, const char *name)
{
    for (size_t i = 0; i < t->names->n; i++) {
        const weft__jinja_entry *e = &t->names->entries[i];
        if (weft__jinja_str_is(e->key.u.s, name)) return t->reads[e->value.u.i];
    }
    return 0;
}

void weft__jinja_destroy(weft__jinja **t)
{
    if (!*t) return;
    weft__jinja_arena_free(&(*t)->arena);
    weft__free(*t);
    *t = NULL;
}

static weft__jinja_limits default_limits(void)
{
    return (weft__jinja_limits){
        .max_steps = 20000000,
        .max_depth = 1000,
        .max_output = (size_t)64 << 20,
        .max_memory = (size_t)512 << 20,
    };
}

weft_status weft__jinja_call_create(const weft__jinja_limits *limits, weft__jinja_call **out, weft_error *err)
{
    weft__jinja_call *call = weft__alloc_zero(1, sizeof *call);
    *out = NULL;
    if (!call) return weft_fail(err, WEFT_NO_MEMORY, "out of memory for a rendering");
    weft__jinja_ctx *c = &call->ctx;
    c->limits = limits ? *limits : default_limits();
    c->steps = c->limits.max_steps;
    c->err = err;
    weft__jinja_arena_init(&c->arena, c->limits.max_memory);
    weft__jinja_val globals;
    weft_status status = weft__jinja_new_dict(c, &globals);
    c->err = NULL;
    if (status) {
        weft__jinja_call_destroy(&call);
        return status;
    }
    c->globals = globals.u.dict;
    *out = call;
    return WEFT_OK;
}

void weft__jinja_call_destroy(weft__jinja_call **call)
{
    if (!*call) return;
    weft__jinja_arena_free(&(*call)->ctx.arena);
    weft__free(*call);
    *call = NULL;
}

void weft__jinja_allow_mutation(weft__jinja_call *call, int allow)
{
    call->ctx.allow_mutation = allow;
}

void weft__jinja_set_now(weft__jinja_call *call, int64_t unix_seconds)
{
    call->ctx.now = unix_seconds;
    call->ctx.has_now = 1;
}

/* Setting variables costs memory, not steps. */
static weft_status set_global(weft__jinja_ctx *c, const char *name, weft__jinja_val value)
{
    weft__jinja_val key;
    WEFT__JINJA_TRY(weft__jinja_string_copy(c, name, strlen(name), 0, &key));
    return weft__jinja_dict_set(c, c->globals, key, value);
}

static weft_status finish_setting(weft__jinja_ctx *c, weft_status status)
{
    c->err = NULL;
    c->steps = c->limits.max_steps;
    c->depth = 0;
    return status;
}

static weft__jinja_ctx *begin_setting(weft__jinja_call *call, weft_error *err)
{
    call->ctx.err = err;
    call->ctx.steps = UINT64_MAX;
    return &call->ctx;
}

weft_status weft__jinja_set_bool(weft__jinja_call *call, const char *name, int value, weft_error *err)
{
    weft__jinja_ctx *c = begin_setting(call, err);
    return finish_setting(c, set_global(c, name, weft__jinja_bool(value)));
}

weft_status weft__jinja_set_string(weft__jinja_call *call, const char *name, const char *s, size_t n, int from_user,
                                   weft_error *err)
{
    weft__jinja_val value;
    if (!weft__utf8_valid(s, n)) return weft_fail(err, WEFT_FORMAT, "the variable '%s' is not UTF-8", name);
    weft__jinja_ctx *c = begin_setting(call, err);
    weft_status status = weft__jinja_string_copy(c, s, n, from_user, &value);
    return finish_setting(c, status ? status : set_global(c, name, value));
}

weft_status weft__jinja_set_json(weft__jinja_call *call, const char *name, const weft__json *value,
                                 weft__jinja_trust trust, void *trust_arg, weft_error *err)
{
    weft__jinja_val v;
    weft__jinja_ctx *c = begin_setting(call, err);
    weft_status status = weft__jinja_from_json(c, value, trust, trust_arg, &v);
    return finish_setting(c, status ? status : set_global(c, name, v));
}

/* What the rendering wrote, as memory of the caller's. */
static weft_status hand_over(const weft__jinja_buf *b, weft__jinja_output *out, weft_error *err)
{
    out->text = weft__strndup(b->data ? b->data : "", b->len);
    out->segments = weft__alloc_array(b->n_runs, sizeof *out->segments);
    if (!out->text || !out->segments) {
        weft__jinja_output_free(out);
        return weft_fail(err, WEFT_NO_MEMORY, "out of memory for %zu bytes of output", b->len);
    }
    out->len = b->len;
    out->n_segments = b->n_runs;
    size_t from = 0;
    for (size_t i = 0; i < b->n_runs; i++) {
        out->segments[i] = (weft__jinja_segment){from, b->runs[i].end - from, b->runs[i].from_user};
        from = b->runs[i].end;
    }
    return WEFT_OK;
}

static weft_status render_into(weft__jinja_ctx *c, const weft__jinja *t, weft__jinja_buf *b)
{
    weft__jinja_scope *scope;
    c->out = c->root_out = b;
    WEFT__JINJA_TRY(weft__jinja_scope_create(c, NULL, &t->body, &scope));
    return weft__jinja_exec(c, t, scope, &t->body);
}

weft_status weft__jinja_render(const weft__jinja *t, weft__jinja_call *call, weft__jinja_output *out, weft_error *err)
{
    weft__jinja_ctx *c = &call->ctx;
    weft__jinja_buf b = {0};
    memset(out, 0, sizeof *out);
    if (c->rendered) return weft_fail(err, WEFT_STATE, "the call has been rendered already; make a new one");
    c->rendered = 1;
    c->plain = t->plain;
    c->err = err;
    weft_status status = render_into(c, t, &b);
    if (!status) status = hand_over(&b, out, err);
    c->err = NULL;
    c->out = c->root_out = NULL;
    return status;
}

void weft__jinja_output_free(weft__jinja_output *out)
{
    weft__free(out->text);
    weft__free(out->segments);
    memset(out, 0, sizeof *out);
}
