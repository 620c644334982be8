// SPDX-License-Identifier: Apache-2.0
/* name.c: names of models and paths inside repositories, checked before anything is done with them. No state. */
#include <string.h>

#include "base/text.h"
#include "hub/hub.h"

static int is_alnum(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

const char *weft__hub_show(char out[WEFT__HUB_SHOW], const char *text, size_t n)
{
    size_t shown = n < WEFT__HUB_SHOW - 4 ? n : WEFT__HUB_SHOW - 4;
    for (size_t i = 0; i < shown; i++) out[i] = text[i] >= 0x20 && text[i] < 0x7f ? text[i] : '?';
    memcpy(out + shown, shown < n ? "..." : "", shown < n ? 4 : 1);
    return out;
}

/* OWNER or NAME: letters, digits, '-', '_', '.'; begins with a letter, a digit or '_'; no "..". */
static const char *part_fault(const char *s, size_t n)
{
    if (n == 0) return "is empty";
    if (n > WEFT__HUB_PART_MAX) return "is longer than 96 characters";
    if (!is_alnum(s[0]) && s[0] != '_') return "must begin with a letter or a digit";
    for (size_t i = 0; i < n; i++) {
        if (!is_alnum(s[i]) && !strchr("-_.", s[i])) return "may hold letters, digits, '-', '_' and '.' only";
        if (s[i] == '.' && i + 1 < n && s[i + 1] == '.') return "may not hold '..'";
    }
    return NULL;
}

weft_status weft__hub_name_parse(const char *text, weft__hub_name *out, weft_error *err)
{
    char shown[WEFT__HUB_SHOW];
    const char *why, *slash = strchr(text, '/'), *colon = strchr(text, ':');
    weft__hub_show(shown, text, strlen(text));
    *out = (weft__hub_name){0};
    if (!slash || (colon && colon < slash))
        return weft_fail(err, WEFT_ARGUMENT,
                         "%s: a model's name is OWNER/NAME or OWNER/NAME:WHAT ('weft pull --known' lists short ones)",
                         shown);
    size_t n_owner = (size_t)(slash - text), n_repo = colon ? (size_t)(colon - slash - 1) : strlen(slash + 1);
    if ((why = part_fault(text, n_owner)))
        return weft_fail(err, WEFT_ARGUMENT, "%s: the owner (before '/') %s", shown, why);
    if ((why = part_fault(slash + 1, n_repo)))
        return weft_fail(err, WEFT_ARGUMENT, "%s: the name (after '/') %s", shown, why);
    if (colon && (why = weft__hub_path_fault(colon + 1, strlen(colon + 1))))
        return weft_fail(err, WEFT_ARGUMENT, "%s: the file or quantization (after ':') %s", shown, why);
    memcpy(out->owner, text, n_owner);
    memcpy(out->repo, slash + 1, n_repo);
    if (colon) strcpy(out->what, colon + 1); /* its length was checked */
    return WEFT_OK;
}

/* Characters that would drive a terminal or make a name look like another. */
static int is_control(uint32_t cp)
{
    return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || (cp >= 0x200b && cp <= 0x200f) || (cp >= 0x2028 && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069) || cp == 0xfeff;
}

static const char *segment_fault(const char *s, size_t n)
{
    if (n == 0) return "has an empty segment";
    if (n > WEFT__HUB_SEGMENT_MAX) return "has a segment that is too long";
    if (n == 1 && s[0] == '.') return "has a '.' segment";
    if (n == 2 && s[0] == '.' && s[1] == '.') return "climbs out of its folder";
    return NULL;
}

const char *weft__hub_path_fault(const char *path, size_t n)
{
    const char *why;
    size_t start = 0;
    if (n == 0) return "is empty";
    if (n > WEFT__HUB_PATH_MAX) return "is too long";
    if (path[0] == '/') return "is absolute";
    for (size_t i = 0; i < n;) {
        uint32_t cp;
        int bad = 0;
        if (path[i] == '/') {
            if ((why = segment_fault(path + start, i - start))) return why;
            start = i + 1;
        }
        if (path[i] == '\\') return "has a backslash";
        i += weft__utf8_decode(path + i, n - i, &cp, &bad);
        if (bad) return "is not UTF-8";
        if (is_control(cp)) return "has control characters";
    }
    return segment_fault(path + start, n - start);
}
