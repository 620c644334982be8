// SPDX-License-Identifier: Apache-2.0
/* request_json.c: any bytes as the body of each kind of request: what comes through is within its ranges, and a refusal
 * has a status, a message, and leaves nothing behind; which model it means is known before it is parsed. The first byte
 * chooses the kind. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "api/fields.h"
#include "text/stop.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

enum { N_VOCAB = 300 };

static void check(const weft__api_params *a)
{
    if (a->n < 0 || a->n > WEFT__API_MAX_N || a->n_stops > WEFT__API_MAX_STOPS || a->n_bias > WEFT__API_MAX_BIASES ||
        a->n_bias_texts > WEFT__API_MAX_BIASES)
        abort();
    if (!(a->temperature >= 0 && a->temperature <= 100) || !(a->top_p >= 0 && a->top_p <= 1) || a->max_tokens < -1 ||
        a->n_top < -1 || a->n_top > 20)
        abort();
    if (a->n_best > 1 && (a->n != a->n_best || a->stream)) abort();
    if (a->retries < 0 || a->retries > 8 || ((a->retries || a->verify_message) && !a->verify)) abort();
    for (int i = 0; i < a->n_stops; i++)
        if (!a->stop_lengths[i] || a->stop_lengths[i] > WEFT__API_MAX_STOP_BYTES) abort();
    if (a->tools.offered.len) { /* what is offered is JSON, and something of it may be called */
        weft__json *tools;
        if (weft__json_parse(a->tools.offered.data, a->tools.offered.len, &tools, NULL)) abort();
        if (!weft__json_size(tools) || !a->tools.called.len) abort();
        weft__json_free(&tools);
    }
    for (int32_t i = 0; i < a->n_bias; i++)
        if (a->bias[i].token < 0 || a->bias[i].token >= N_VOCAB || isnan(a->bias[i].bias) ||
            a->bias[i].bias == INFINITY)
            abort();
}

/* The stops found in the body itself, whole and byte by byte, end the same text. */
static void check_stops(const weft__api_params *a, const char *text, size_t n)
{
    weft__stop whole, bytes;
    weft__strbuf x = {0}, y = {0};
    if (weft__stop_begin(&whole, a->stops, a->stop_lengths, a->n_stops, NULL) ||
        weft__stop_begin(&bytes, a->stops, a->stop_lengths, a->n_stops, NULL))
        abort();
    int found = weft__stop_push(&whole, text, n, &x), each = 0;
    for (size_t i = 0; i < n && !each; i++) each = weft__stop_push(&bytes, text + i, 1, &y);
    if (!found) weft__stop_flush(&whole, &x);
    if (!each) weft__stop_flush(&bytes, &y);
    if (found != each || x.len != y.len || (x.len && memcmp(x.data, y.data, x.len)) || (!found && x.len != n)) abort();
    weft__stop_free(&whole);
    weft__stop_free(&bytes);
    weft__strbuf_free(&x);
    weft__strbuf_free(&y);
}

static void want_text(const weft__json *root, const char *name, const char *got)
{
    char want[257] = "";
    const char *text;
    size_t n;
    if (weft__json_string(weft__json_get(root, name), &text, &n) && strlen(text) == n)
        snprintf(want, sizeof want, "%s", text);
    if (strcmp(want, got)) abort();
}

/* Which model is meant is found without a tree, and is what the tree has. */
static void check_meant(const char *text, size_t n)
{
    weft__json *root = NULL;
    weft__api_meant meant;
    int64_t ms = 0;
    weft__api_meant_read(text, n, &meant);
    if (strlen(meant.model) >= sizeof meant.model || meant.timeout_ms < 0 || meant.timeout_ms > WEFT__API_TIMEOUT_MAX)
        abort();
    if (weft__json_parse(text, n, &root, NULL)) return;
    want_text(root, "model", meant.model);
    want_text(root, "user", meant.user);
    if (!weft__json_int(weft__json_get(root, "timeout_ms"), &ms) || ms < 0 || ms > WEFT__API_TIMEOUT_MAX) ms = 0;
    if (ms != meant.timeout_ms) abort();
    weft__json_free(&root);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t before = weft__alloc_live(), n_forms = 0;
    weft__api_params params;
    weft__api_error error;
    while (weft__api_tables[n_forms]) n_forms++;
    if (!n) return 0;
    int ok = weft__api_params_parse(weft__api_tables[data[0] % n_forms], N_VOCAB, (const char *)data + 1, n - 1,
                                    &params, &error);
    if (ok) {
        check(&params);
        if (params.n_stops) check_stops(&params, (const char *)data + 1, n - 1);
    } else if (error.status < 400 || !error.message[0]) abort();
    weft__api_params_free(&params);
    check_meant((const char *)data + 1, n - 1);
    if (weft__alloc_live() != before) abort();
    return 0;
}
