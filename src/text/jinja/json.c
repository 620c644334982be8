// SPDX-License-Identifier: Apache-2.0
/* json.c: JSON into values (value.h), with what is trusted of it decided string by string. Owned by the rendering. */
#include <string.h>

#include "text/jinja/value.h"

typedef struct json_reader {
    weft__jinja_ctx *c;
    weft__jinja_trust trust;
    void *arg;
    int from_user; /* without `trust` */
} json_reader;

static weft_status read_value(json_reader *r, const weft__json *json, const char *key, int depth, weft__jinja_val *out);

static weft_status read_array(json_reader *r, const weft__json *json, int depth, weft__jinja_val *out)
{
    weft__jinja_val list, item;
    size_t n = weft__json_size(json);
    WEFT__JINJA_TRY(weft__jinja_new_list(r->c, WEFT__JINJA_LIST, n, &list));
    for (size_t i = 0; i < n; i++) {
        WEFT__JINJA_TRY(read_value(r, weft__json_at(json, i), "", depth + 1, &item));
        WEFT__JINJA_TRY(weft__jinja_append(r->c, list.u.list, item));
    }
    *out = list;
    return WEFT_OK;
}

static weft_status read_object(json_reader *r, const weft__json *json, int depth, weft__jinja_val *out)
{
    weft__jinja_val dict, key, value;
    weft__json_member m = {0};
    WEFT__JINJA_TRY(weft__jinja_new_dict(r->c, &dict));
    while (weft__json_next(json, &m)) {
        WEFT__JINJA_TRY(weft__jinja_string_copy(r->c, m.key, m.key_len, r->from_user, &key));
        WEFT__JINJA_TRY(read_value(r, m.value, m.key, depth + 1, &value));
        WEFT__JINJA_TRY(weft__jinja_dict_set(r->c, dict.u.dict, key, value));
    }
    *out = dict;
    return WEFT_OK;
}

static weft_status read_string(json_reader *r, const weft__json *json, const char *key, int depth, weft__jinja_val *out)
{
    const char *s = "";
    size_t n = 0;
    weft__json_string(json, &s, &n);
    int trusted = r->trust ? r->trust(r->arg, key, depth, s, n) : !r->from_user;
    return weft__jinja_string_copy(r->c, s, n, !trusted, out);
}

static weft_status read_value(json_reader *r, const weft__json *json, const char *key, int depth, weft__jinja_val *out)
{
    int boolean = 0;
    int64_t i = 0;
    double d = 0;
    weft_status status;
    switch (weft__json_kind_of(json)) {
    case WEFT__JSON_BOOL:
        weft__json_bool(json, &boolean);
        *out = weft__jinja_bool(boolean);
        return WEFT_OK;
    case WEFT__JSON_INT:
        weft__json_int(json, &i);
        *out = weft__jinja_int(i);
        return WEFT_OK;
    case WEFT__JSON_DOUBLE:
        weft__json_double(json, &d);
        *out = weft__jinja_float(d);
        return WEFT_OK;
    case WEFT__JSON_STRING: return read_string(r, json, key, depth, out);
    case WEFT__JSON_ARRAY:
    case WEFT__JSON_OBJECT: break;
    default: *out = weft__jinja_none(); return WEFT_OK;
    }
    WEFT__JINJA_TRY(weft__jinja_enter(r->c));
    status = weft__json_kind_of(json) == WEFT__JSON_ARRAY ? read_array(r, json, depth, out)
                                                          : read_object(r, json, depth, out);
    weft__jinja_leave(r->c);
    return status;
}

weft_status weft__jinja_from_json(weft__jinja_ctx *c, const weft__json *json, weft__jinja_trust trust, void *arg,
                                  weft__jinja_val *out)
{
    json_reader r = {.c = c, .trust = trust, .arg = arg, .from_user = 1};
    return read_value(&r, json, "", 0, out);
}

weft_status weft__jinja_parse_json(weft__jinja_ctx *c, const weft__jinja_str *text, weft__jinja_val *out)
{
    weft_error why = {0};
    weft__json *json;
    WEFT__JINJA_TRY(weft__jinja_spend(c, text->len / 8));
    weft_status status = weft__json_parse(text->data, text->len, &json, &why);
    if (status)
        return weft__jinja_fail(c, status == WEFT_FORMAT ? WEFT_ARGUMENT : status, "from_json: %s", why.message);
    json_reader r = {.c = c, .from_user = weft__jinja_str_any_user(text)};
    status = read_value(&r, json, "", 0, out);
    weft__json_free(&json);
    return status;
}
