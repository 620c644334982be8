// SPDX-License-Identifier: Apache-2.0
/* kv_type.c: see kv_type.h. */
#include "kv_type.h"

#include <string.h>

#include "weft/engine.h"

enum { LONGEST = 64 }; /* of a name, with its end */

static int begins(const char *text, const char *with)
{
    return !strncmp(text, with, strlen(with));
}

/* Does the piece at `piece` go on with the name that began at `name`, the piece before it? */
static int goes_on(const char *name, const char *piece)
{
    const int is_pair = (begins(name, "k=") && begins(piece, "v=")) || (begins(name, "v=") && begins(piece, "k="));
    return is_pair || begins(piece, "edges=");
}

int kv_types_of(const char *text, uint32_t *out, int most, char *why, size_t room)
{
    int n = 0;
    for (const char *name = text, *end; name; name = *end ? end + 1 : NULL) {
        char one[LONGEST];
        weft_error err = {0};
        end = name + strcspn(name, ",");
        while (*end && goes_on(name, end + 1)) end += 1 + strcspn(end + 1, ",");
        if (n == most) return snprintf(why, room, "at most %d types", most), -1;
        snprintf(one, sizeof one, "%.*s", (int)(end - name < LONGEST ? end - name : LONGEST - 1), name);
        if (weft_kv_type_parse(one, &out[n], &err)) return snprintf(why, room, "%s", err.message), -1;
        n++;
    }
    return n;
}

int kv_types_check(const char *text, char *why, size_t room)
{
    uint32_t types[WEFT_KV_TYPES_MAX - 1];
    return kv_types_of(text, types, WEFT_KV_TYPES_MAX - 1, why, room) >= 0;
}
