// SPDX-License-Identifier: Apache-2.0
/* preset.c: what a preset adds to a request before it is read by its form's table (fields.h). Any thread. */
#include <string.h>

#include "api/fields.h"

static int preset_no_memory(weft__api_error *error)
{
    return weft__api_error_set(error, 503, NULL, "no memory for the request");
}

/* A chat's name for it, as this form has it; NULL: it has none. */
static const weft__api_field *field_of(const weft__api_table *form, const char *name)
{
    static const char *const also[][2] = {{"repetition_penalty", "repeat_penalty"}};
    const weft__api_field *f = form->fields;
    while (f->name && strcmp(f->name, name)) f++;
    if (f->name) return f;
    for (size_t i = 0; i < sizeof also / sizeof *also; i++)
        if (!strcmp(also[i][0], name)) return field_of(form, also[i][1]);
    return NULL;
}

/* Does the request say it, under this or another of its names? */
static int is_said(const weft__api_table *form, const weft__api_field *field, const weft__json *root)
{
    const int one_name = field->kind > WEFT__FIELD_STRING;
    for (const weft__api_field *f = form->fields; f->name; f++) {
        const int same = one_name ? f == field : f->kind == field->kind && f->offset == field->offset;
        const weft__json *v = same ? weft__json_get(root, f->name) : NULL;
        if (v && !weft__json_is_null(v)) return 1;
    }
    return 0;
}

int weft__api_preset_fields(const weft__api_table *form, const weft__json *fields, weft__json *root,
                            weft__api_error *error)
{
    weft__json_member m = {0};
    while (weft__json_next(fields, &m)) {
        const weft__api_field *f = field_of(form, m.key);
        if (f && !is_said(form, f, root) && !weft__json_set(root, f->name, weft__json_copy(m.value)))
            return preset_no_memory(error);
    }
    return 1;
}

static weft__json *system_message(const char *text)
{
    weft__json *m = weft__json_new_object();
    if (weft__json_set(m, "role", weft__json_new_string("system", 6)) &&
        weft__json_set(m, "content", weft__json_new_string(text, strlen(text))))
        return m;
    weft__json_free(&m);
    return NULL;
}

int weft__api_preset_system(const char *text, weft__json *root, weft__api_error *error)
{
    const weft__json *messages = weft__json_get(root, "messages");
    const size_t n = weft__json_size(messages);
    if (weft__json_kind_of(messages) != WEFT__JSON_ARRAY) return 1; /* the form's table says what is wrong with it */
    for (size_t i = 0; i < n; i++) {
        const weft__json *role = weft__json_get(weft__json_at(messages, i), "role");
        if (weft__json_is(role, "system") || weft__json_is(role, "developer")) return 1;
    }
    weft__json *all = weft__json_new_array();
    int ok = weft__json_append(all, system_message(text));
    for (size_t i = 0; ok && i < n; i++) ok = weft__json_append(all, weft__json_copy(weft__json_at(messages, i)));
    if (ok) ok = weft__json_set(root, "messages", all);
    else weft__json_free(&all);
    return ok || preset_no_memory(error);
}
