// SPDX-License-Identifier: Apache-2.0
/* learn_whose.c: whom a request about what is kept means (learn.h). What such a request does cannot be taken back, so a
 * word of it that is not known is refused: it might have been the one that says whose. Pure. */
#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "server/learn.h"

enum { NAMES = 3 };

static const char *near_name(const void *arg, size_t i)
{
    const char *const *names = arg;
    return names[i];
}

static int refuse_name(const char *name, const char *const names[NAMES + 1], weft__api_error *error)
{
    const char *meant = weft__near_match(name, near_name, names);
    return weft__api_error_set(error, 400, name, "'%.60s' is not known here%s%s%s", name,
                               meant ? "; did you mean '" : "", meant ? meant : "", meant ? "'?" : "");
}

static int is_one_of(const char *name, const char *const names[NAMES + 1])
{
    size_t i = 0;
    while (names[i] && strcmp(names[i], name)) i++;
    return names[i] != NULL;
}

int weft__server_learn_arguments(const weft__http_request *r, const char *first, const char *second,
                                 weft__api_error *error)
{
    const char *const names[NAMES + 1] = {first, second, NULL};
    const char *name;
    for (size_t i = 0; (name = weft__http_query_name(r, i)); i++) {
        if (!is_one_of(name, names)) return refuse_name(name, names, error);
        for (size_t k = 0; k < i; k++)
            if (!strcmp(weft__http_query_name(r, k), name))
                return weft__api_error_set(error, 400, name, "'%s' is given twice", name);
    }
    return 1;
}

static int check_members(const weft__json *root, const char *more, weft__api_error *error)
{
    const char *const names[NAMES + 1] = {"user", "tenant", more, NULL};
    weft__json_member m = {0};
    if (!root) return 1;
    if (weft__json_kind_of(root) != WEFT__JSON_OBJECT)
        return weft__api_error_set(error, 400, NULL, "the body must be an object");
    while (weft__json_next(root, &m))
        if (!is_one_of(m.key, names)) return refuse_name(m.key, names, error);
    return 1;
}

/* A member that is a text, or NULL where there is none. 0: it is something else. */
static int read_name(const weft__json *root, const char *name, const char **out, weft__api_error *error)
{
    const weft__json *v = weft__json_get(root, name);
    size_t n;
    *out = NULL;
    return !v || weft__json_kind_of(v) == WEFT__JSON_NULL || (weft__json_string(v, out, &n) && strlen(*out) == n) ||
           weft__api_error_set(error, 400, name, "'%s' must be a string", name);
}

int weft__server_learn_one_name(const weft__http_request *r, const char *name, const char **said,
                                weft__api_error *error)
{
    const char *asked = weft__http_query(r, name);
    if (*said && asked && strcmp(*said, asked))
        return weft__api_error_set(error, 400, name, "'%s' is one in the body and another in the query", name);
    if (!*said) *said = asked;
    return 1;
}

int weft__server_learn_tenant(const weft_server *s, const weft__server_caller *who, const char *user, char tenant[64],
                              weft__api_error *error)
{
    weft_error err = {0};
    snprintf(tenant, 64, "%s", who->tenant);
    if (s->wants_keys || !user || !*user) return 1;
    weft_status st = weft__server_tenant_of_user(user, tenant, &err);
    if (st) weft__api_error_of(error, st, err.message);
    return !st;
}

int weft__server_learn_whose(const weft_server *s, const weft__http_request *r, const weft__server_caller *who,
                             const weft__json *root, const char *more, char tenant[64], weft__api_error *error)
{
    const char *user, *named;
    if (!weft__server_learn_arguments(r, "user", "tenant", error) || !check_members(root, more, error) ||
        !read_name(root, "user", &user, error) || !read_name(root, "tenant", &named, error) ||
        !weft__server_learn_one_name(r, "user", &user, error) ||
        !weft__server_learn_one_name(r, "tenant", &named, error))
        return 0;
    if (!named) return weft__server_learn_tenant(s, who, user, tenant, error);
    if (!who->is_admin)
        return weft__api_error_set(error, 403, "tenant", "only an admin means others; leave 'tenant' out");
    if (!strcmp(named, WEFT__SERVER_LEARN_NO_KEY)) named = "";
    if (strlen(named) >= 64) return weft__api_error_set(error, 404, "tenant", "nothing is kept of that tenant");
    snprintf(tenant, 64, "%s", named);
    return 1;
}
