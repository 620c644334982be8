// SPDX-License-Identifier: Apache-2.0
/* dump.c: Python's json.dumps, for the filter tojson (value.h). Owned by the rendering. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "text/jinja/value.h"

typedef struct dumper {
    weft__jinja_ctx *c;
    const weft__jinja_dump *how;
    weft__jinja_buf out;
    int any_user;
    size_t level;
} dumper;

static weft_status dump_value(dumper *d, weft__jinja_val v);

static weft_status dump_put(dumper *d, const char *text)
{
    return weft__jinja_puts(d->c, &d->out, text);
}

/* The escape of a character, or NULL when it stands for itself. */
static const char *json_escape(uint32_t cp, int ascii, char room[16])
{
    switch (cp) {
    case '"': return "\\\"";
    case '\\': return "\\\\";
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    case '\b': return "\\b";
    case '\f': return "\\f";
    default: break;
    }
    if (cp >= 0x20 && (cp < 0x7F || !ascii)) return NULL;
    if (cp >= 0x10000) {
        uint32_t low = cp - 0x10000;
        snprintf(room, 16, "\\u%04x\\u%04x", 0xD800 + (low >> 10), 0xDC00 + (low & 0x3FF));
    } else {
        snprintf(room, 16, "\\u%04x", cp);
    }
    return room;
}

static weft_status dump_str(dumper *d, const weft__jinja_str *s)
{
    d->any_user |= weft__jinja_str_any_user(s);
    WEFT__JINJA_TRY(dump_put(d, "\""));
    WEFT__JINJA_TRY(weft__jinja_spend(d->c, s->len / 16));
    size_t from = 0;
    for (size_t at = 0, n; at < s->len; at += n) {
        uint32_t cp;
        char room[16];
        n = weft__utf8_decode(s->data + at, s->len - at, &cp, NULL);
        const char *escape = json_escape(cp, d->how->ascii, room);
        if (!escape) continue;
        WEFT__JINJA_TRY(weft__jinja_put(d->c, &d->out, s->data + from, at - from, 0));
        WEFT__JINJA_TRY(dump_put(d, escape));
        from = at + n;
    }
    WEFT__JINJA_TRY(weft__jinja_put(d->c, &d->out, s->data + from, s->len - from, 0));
    return dump_put(d, "\"");
}

static weft_status dump_number(dumper *d, weft__jinja_val v)
{
    char text[48];
    if (v.type == WEFT__JINJA_INT) {
        snprintf(text, sizeof text, "%lld", (long long)v.u.i);
    } else if (isnan(v.u.f)) {
        return dump_put(d, "NaN");
    } else if (isinf(v.u.f)) {
        return dump_put(d, v.u.f < 0 ? "-Infinity" : "Infinity");
    } else {
        text[weft__jinja_print_double(v.u.f, text)] = 0;
    }
    return dump_put(d, text);
}

static weft_status new_line(dumper *d)
{
    if (!d->how->indent) return WEFT_OK;
    d->any_user |= weft__jinja_str_any_user(d->how->indent);
    WEFT__JINJA_TRY(dump_put(d, "\n"));
    for (size_t i = 0; i < d->level; i++) {
        WEFT__JINJA_TRY(weft__jinja_spend(d->c, 1));
        WEFT__JINJA_TRY(weft__jinja_put(d->c, &d->out, d->how->indent->data, d->how->indent->len, 0));
    }
    return WEFT_OK;
}

static weft_status put_separator(dumper *d, const weft__jinja_str *given, const char *otherwise)
{
    if (!given) return dump_put(d, otherwise);
    d->any_user |= weft__jinja_str_any_user(given);
    return weft__jinja_put(d->c, &d->out, given->data, given->len, 0);
}

/* What comes before element i of a container. */
static weft_status before_item(dumper *d, size_t i)
{
    if (i) WEFT__JINJA_TRY(put_separator(d, d->how->item_sep, d->how->indent ? "," : ", "));
    return new_line(d);
}

static weft_status dump_list(dumper *d, const weft__jinja_list *list)
{
    WEFT__JINJA_TRY(dump_put(d, "["));
    d->level++;
    for (size_t i = 0; i < list->n; i++) {
        WEFT__JINJA_TRY(before_item(d, i));
        WEFT__JINJA_TRY(dump_value(d, list->items[i]));
    }
    d->level--;
    if (list->n) WEFT__JINJA_TRY(new_line(d));
    return dump_put(d, "]");
}

static weft_status dump_key(dumper *d, weft__jinja_val key)
{
    if (key.type == WEFT__JINJA_STRING) return dump_str(d, key.u.s);
    WEFT__JINJA_TRY(dump_put(d, "\""));
    if (key.type == WEFT__JINJA_NONE) {
        WEFT__JINJA_TRY(dump_put(d, "null"));
    } else if (key.type == WEFT__JINJA_BOOL) {
        WEFT__JINJA_TRY(dump_put(d, key.u.i ? "true" : "false"));
    } else if (key.type == WEFT__JINJA_INT || key.type == WEFT__JINJA_FLOAT) {
        WEFT__JINJA_TRY(dump_number(d, key));
    } else {
        return weft__jinja_fail(d->c, WEFT_ARGUMENT, "tojson: a key of type '%s' is not possible in JSON",
                                weft__jinja_type_name(key));
    }
    return dump_put(d, "\"");
}

/* The entries of dict ordered by key, as two lists. */
static weft_status sorted_entries(dumper *d, const weft__jinja_dict *dict, weft__jinja_val *keys,
                                  weft__jinja_val *values)
{
    WEFT__JINJA_TRY(weft__jinja_new_list(d->c, WEFT__JINJA_LIST, dict->n, keys));
    WEFT__JINJA_TRY(weft__jinja_new_list(d->c, WEFT__JINJA_LIST, dict->n, values));
    for (size_t i = 0; i < dict->n; i++) {
        WEFT__JINJA_TRY(weft__jinja_append(d->c, keys->u.list, dict->entries[i].key));
        WEFT__JINJA_TRY(weft__jinja_append(d->c, values->u.list, dict->entries[i].value));
    }
    return weft__jinja_sort(d->c, keys->u.list->items, values->u.list->items, dict->n, 0);
}

static weft_status dump_dict(dumper *d, const weft__jinja_dict *dict)
{
    weft__jinja_val keys, values;
    if (d->how->sort_keys) WEFT__JINJA_TRY(sorted_entries(d, dict, &keys, &values));
    WEFT__JINJA_TRY(dump_put(d, "{"));
    d->level++;
    for (size_t i = 0; i < dict->n; i++) {
        WEFT__JINJA_TRY(before_item(d, i));
        WEFT__JINJA_TRY(dump_key(d, d->how->sort_keys ? keys.u.list->items[i] : dict->entries[i].key));
        WEFT__JINJA_TRY(put_separator(d, d->how->key_sep, ": "));
        WEFT__JINJA_TRY(dump_value(d, d->how->sort_keys ? values.u.list->items[i] : dict->entries[i].value));
    }
    d->level--;
    if (dict->n) WEFT__JINJA_TRY(new_line(d));
    return dump_put(d, "}");
}

static weft_status dump_value(dumper *d, weft__jinja_val v)
{
    weft_status status;
    WEFT__JINJA_TRY(weft__jinja_spend(d->c, 1));
    switch (v.type) {
    case WEFT__JINJA_NONE: return dump_put(d, "null");
    case WEFT__JINJA_BOOL: return dump_put(d, v.u.i ? "true" : "false");
    case WEFT__JINJA_INT:
    case WEFT__JINJA_FLOAT: return dump_number(d, v);
    case WEFT__JINJA_STRING: return dump_str(d, v.u.s);
    case WEFT__JINJA_LIST:
    case WEFT__JINJA_TUPLE:
    case WEFT__JINJA_DICT:
        WEFT__JINJA_TRY(weft__jinja_enter(d->c));
        status = v.type == WEFT__JINJA_DICT ? dump_dict(d, v.u.dict) : dump_list(d, v.u.list);
        weft__jinja_leave(d->c);
        return status;
    case WEFT__JINJA_UNDEFINED:
        if (v.u.s) {
            int n = v.u.s->len < 100 ? (int)v.u.s->len : 100;
            return weft__jinja_fail(d->c, WEFT_ARGUMENT, "tojson: '%.*s' is undefined", n, v.u.s->data);
        }
        /* fall through */
    default:
        return weft__jinja_fail(d->c, WEFT_ARGUMENT, "tojson: a value of type '%s' is not possible in JSON",
                                weft__jinja_type_name(v));
    }
}

weft_status weft__jinja_dump_json(weft__jinja_ctx *c, weft__jinja_val v, const weft__jinja_dump *how,
                                  weft__jinja_val *out)
{
    dumper d = {.c = c, .how = how};
    WEFT__JINJA_TRY(dump_value(&d, v));
    return weft__jinja_string(c, d.out.data, d.out.len, d.any_user, out);
}
