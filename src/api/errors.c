// SPDX-License-Identifier: Apache-2.0
/* errors.c: errors in the JSON of each dialect (errors.h). */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "api/errors.h"

weft__api_dialect weft__api_dialect_of(const char *path)
{
    return !strncmp(path, "/v1/", 4) || !strcmp(path, "/chat/completions") || !strcmp(path, "/models")
               ? WEFT__API_OPENAI
               : WEFT__API_LLAMA;
}

static const char *openai_type(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 429: return "rate_limit_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
    }
}

static const char *openai_code(int status)
{
    switch (status) {
    case 401: return "invalid_api_key";
    case 413: return "request_too_large";
    case 429: return "rate_limit_exceeded";
    case 503: return "service_unavailable";
    default: return NULL;
    }
}

static const char *llama_type(int status)
{
    switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 501: return "not_supported_error";
    case 429:
    case 503: return "unavailable_error";
    default: return status < 500 ? "invalid_request_error" : "server_error";
    }
}

static void put_openai(weft__strbuf *out, const weft__api_error *f)
{
    const char *code = f->code ? f->code : openai_code(f->status);
    weft__strbuf_puts(out, "{\"error\":{\"message\":");
    weft__json_write_string(out, f->message, strlen(f->message));
    weft__strbuf_printf(out, ",\"type\":\"%s\",\"param\":", openai_type(f->status));
    if (f->field[0]) weft__json_write_string(out, f->field, strlen(f->field));
    else weft__strbuf_puts(out, "null");
    weft__strbuf_printf(out, code ? ",\"code\":\"%s\"}}" : ",\"code\":%s}}", code ? code : "null");
}

static void put_llama(weft__strbuf *out, const weft__api_error *f)
{
    int too_long = f->code && !strcmp(f->code, "context_length_exceeded");
    weft__strbuf_printf(out, "{\"error\":{\"code\":%d,\"message\":", f->status);
    weft__json_write_string(out, f->message, strlen(f->message));
    weft__strbuf_printf(out, ",\"type\":\"%s\"", too_long ? "exceed_context_size_error" : llama_type(f->status));
    if (too_long)
        weft__strbuf_printf(out, ",\"n_prompt_tokens\":%lld,\"n_ctx\":%lld", (long long)f->n_prompt,
                            (long long)f->n_ctx);
    weft__strbuf_puts(out, "}}");
}

char *weft__api_error_body(weft__api_dialect dialect, const weft__api_error *error, size_t *n)
{
    weft__strbuf out = {0};
    if (dialect == WEFT__API_OPENAI) put_openai(&out, error);
    else put_llama(&out, error);
    if (out.failed) weft__strbuf_free(&out);
    *n = out.len;
    return out.data;
}

void weft__api_put_error_event(weft__api_dialect dialect, weft_status status, const char *message, weft__strbuf *out)
{
    weft__api_error error = {0};
    size_t n;
    weft__api_error_of(&error, status, message);
    char *body = weft__api_error_body(dialect, &error, &n);
    if (body) {
        weft__strbuf_puts(out, "data: ");
        weft__strbuf_put(out, body, n);
        weft__strbuf_puts(out, "\n\n");
    } else {
        out->failed = 1;
    }
    weft__free(body);
}

const char *weft__api_no_memory_event(weft__api_dialect dialect)
{
    static const char *const said[] = {
        "data: {\"error\":{\"message\":\"no memory for the answer\",\"type\":\"server_error\",\"param\":null,"
        "\"code\":\"service_unavailable\"}}\n\n",
        "data: {\"error\":{\"code\":503,\"message\":\"no memory for the answer\",\"type\":\"unavailable_error\"}}\n\n"};
    return said[dialect == WEFT__API_LLAMA];
}

void weft__api_hide_tenants(char *message, const char *tenant)
{
    static const char in_names[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
    const size_t n = WEFT__API_MAX_TENANT + 1;
    for (char *at = message; (at = strstr(at, "key-"));) {
        if (strspn(at + 4, "0123456789abcdef") != n - 5 || at[n - 1] != '.') {
            at++;
            continue;
        }
        size_t cut = tenant && strncmp(at, tenant, n - 1) ? strspn(at, in_names) - 1 : n;
        memmove(at, at + cut, strlen(at + cut) + 1);
        if (cut != n) *at++ = '?';
    }
}

void weft__api_error_of(weft__api_error *error, weft_status status, const char *message)
{
    int http;
    switch (status) {
    case WEFT_ARGUMENT:
    case WEFT_FORMAT:
    case WEFT_LIMIT:
    case WEFT_UNSUPPORTED: http = 400; break;
    case WEFT_NOT_FOUND: http = 404; break;
    case WEFT_EXISTS: http = 409; break;
    case WEFT_BUSY: http = 429; break;
    case WEFT_TIMEOUT: http = 504; break;
    case WEFT_STATE:
    case WEFT_CANCELLED:
    case WEFT_NO_MEMORY: http = 503; break;
    default: http = 500; break;
    }
    weft__api_error_set(error, http, NULL, "%s", message && *message ? message : weft_status_text(status));
    weft__api_hide_tenants(error->message, NULL);
}
