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
    weft__jctx ctx;
};

static weft_status compile_into(weft__jctx *c, weft__jinja *t, const char *source, size_t n)
{
    weft__jcompiler p = {.ctx = c};
    weft__jval names;
    WEFT__J_TRY(weft__j_new_dict(c, &names));
    p.names = names.u.dict;
    WEFT__J_TRY(weft__j_lex(c, source, n, &p.tokens));
    WEFT__J_TRY(weft__j_parse_template(&p, &t->body));
    return weft__j_resolve(&p, t);
}

weft_status weft__jinja_compile(const char *source, size_t n, weft__jinja **out, weft_error *err)
{
    *out = NULL;
    if (n > WEFT__JINJA_MAX_SOURCE) {
        return weft_fail(err, WEFT_LIMIT, "the template has %zu bytes; at most %u are taken", n, WEFT__JINJA_MAX_SOURCE);
    }
    weft__jinja *t = weft__alloc_zero(1, sizeof *t);
    if (!t) return weft_fail(err, WEFT_NO_MEMORY, "out of memory for a template");
    weft__jctx ctx = {.steps = COMPILE_STEPS, .err = err, .limits = {.max_steps = COMPILE_STEPS, .max_depth = 1000}};
    weft__jarena_init(&ctx.arena, COMPILE_MEMORY);
    weft_status status = compile_into(&ctx, t, source, n);
    t->arena = ctx.arena;
    if (status) {
        weft__jinja_destroy(&t);
        return status;
    }
    *out = t;
    return WEFT_OK;
}

void weft__jinja_destroy(weft__jinja **t)
{
    if (!*t) return;
    weft__jarena_free(&(*t)->arena);
    weft__free(*t);
    *t = NULL;
}

int weft__jinja_uses(const weft__jinja *t, const char *name)
{
    for (size_t i = 0; i < t->n_globals; i++) {
        if (weft__j_str_is(t->globals[i], name)) return 1;
    }
    return 0;
}

weft__jinja_limits weft__jinja_default_limits(void)
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
    weft__jctx *c = &call->ctx;
    c->limits = limits ? *limits : weft__jinja_default_limits();
    c->steps = c->limits.max_steps;
    c->err = err;
    weft__jarena_init(&c->arena, c->limits.max_memory);
    weft__jval globals;
    weft_status status = weft__j_new_dict(c, &globals);
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
    weft__jarena_free(&(*call)->ctx.arena);
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
static weft_status set_global(weft__jctx *c, const char *name, weft__jval value)
{
    weft__jval key;
    WEFT__J_TRY(weft__j_string_copy(c, name, strlen(name), 0, &key));
    return weft__j_dict_set(c, c->globals, key, value);
}

static weft_status finish_setting(weft__jctx *c, weft_status status)
{
    c->err = NULL;
    c->steps = c->limits.max_steps;
    c->depth = 0;
    return status;
}

static weft__jctx *begin_setting(weft__jinja_call *call, weft_error *err)
{
    call->ctx.err = err;
    call->ctx.steps = UINT64_MAX;
    return &call->ctx;
}

weft_status weft__jinja_set_bool(weft__jinja_call *call, const char *name, int value, weft_error *err)
{
    weft__jctx *c = begin_setting(call, err);
    return finish_setting(c, set_global(c, name, weft__j_bool(value)));
}

weft_status weft__jinja_set_string(weft__jinja_call *call, const char *name, const char *s, size_t n, int from_user,
                                   weft_error *err)
{
    weft__jval value;
    if (!weft__utf8_valid(s, n)) return weft_fail(err, WEFT_FORMAT, "the variable '%s' is not UTF-8", name);
    weft__jctx *c = begin_setting(call, err);
    weft_status status = weft__j_string_copy(c, s, n, from_user, &value);
    return finish_setting(c, status ? status : set_global(c, name, value));
}

weft_status weft__jinja_set_json(weft__jinja_call *call, const char *name, const weft__json *value, weft__jinja_trust trust,
                                 void *trust_arg, weft_error *err)
{
    weft__jval v;
    weft__jctx *c = begin_setting(call, err);
    weft_status status = weft__j_from_json(c, value, trust, trust_arg, &v);
    return finish_setting(c, status ? status : set_global(c, name, v));
}

/* What the rendering wrote, as memory of the caller's. */
static weft_status hand_over(const weft__jbuf *b, weft__jinja_output *out, weft_error *err)
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

static weft_status render_into(weft__jctx *c, const weft__jinja *t, weft__jbuf *b)
{
    weft__jscope *scope;
    c->out = c->root_out = b;
    WEFT__J_TRY(weft__j_scope_create(c, NULL, &t->body, &scope));
    return weft__j_exec(c, t, scope, &t->body);
}

weft_status weft__jinja_render(const weft__jinja *t, weft__jinja_call *call, weft__jinja_output *out, weft_error *err)
{
    weft__jctx *c = &call->ctx;
    weft__jbuf b = {0};
    memset(out, 0, sizeof *out);
    if (c->rendered) return weft_fail(err, WEFT_STATE, "the call has been rendered already; make a new one");
    c->rendered = 1;
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
