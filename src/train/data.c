// SPDX-License-Identifier: Apache-2.0
/* data.c: see data.h: segments, their order, batches and positions. Reading files is in data_read.c. */
#include "train/data_parts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "base/random.h"

static weft_status data_no_memory(weft_error *err)
{
    return weft_fail(err, WEFT_NO_MEMORY, "no memory for training data");
}

static weft_status check_rows(const weft__dataset_options *o, weft_error *err)
{
    if (o->n_ctx >= 1 && o->max_rows >= (int64_t)o->n_ctx * (o->pairs ? 2 : 1)) return WEFT_OK;
    return weft_fail(err, WEFT_ARGUMENT,
                     "batches of %d tokens (-b) do not hold %s of %d (-c); give larger ones, or shorter texts",
                     o->max_rows, o->pairs ? "the two texts of a pair" : "a text", o->n_ctx);
}

weft_status weft__dataset_create(const weft__train_renderer *r, const weft__dataset_options *o, weft__dataset **out,
                                 weft_error *err)
{
    *out = NULL;
    weft_status st = check_rows(o, err);
    if (st) return st;
    weft__dataset *d = weft__alloc_zero(1, sizeof *d);
    if (!d) return data_no_memory(err);
    d->renderer = r;
    d->options = *o;
    d->record_weight = 1;
    if ((st = weft__dataset_set_rows(d, o->max_rows, err))) weft__dataset_destroy(&d);
    *out = d;
    return st;
}

weft_status weft__dataset_set_rows(weft__dataset *d, int32_t max_rows, weft_error *err)
{
    weft__dataset_options o = d->options;
    o.max_rows = max_rows;
    weft_status st = check_rows(&o, err);
    if (!st && d->counts.n_largest > max_rows)
        st =
            weft_fail(err, WEFT_ARGUMENT,
                      "batches of %d tokens (-b) do not hold the %lld of the largest record's texts; give larger ones, "
                      "or shorter texts",
                      max_rows, (long long)d->counts.n_largest);
    if (st) return st;
    int32_t *token = weft__alloc_array((size_t)max_rows, sizeof *token);
    int32_t *segment = weft__alloc_array((size_t)max_rows, sizeof *segment);
    int32_t *target = weft__alloc_array((size_t)max_rows, sizeof *target);
    int32_t *number = weft__alloc_array((size_t)max_rows, sizeof *number);
    float *weight = weft__alloc_array((size_t)max_rows, sizeof *weight);
    if (!token || !segment || !target || !number || !weight) {
        weft__free(weight);
        weft__free(number);
        weft__free(target);
        weft__free(segment);
        weft__free(token);
        return data_no_memory(err);
    }
    weft__free(d->weight);
    weft__free(d->group);
    weft__free(d->target);
    weft__free(d->segment);
    weft__free(d->token);
    d->group = number;
    d->token = token;
    d->segment = segment;
    d->target = target;
    d->weight = weight;
    d->options = o;
    d->position = (weft__dataset_cursor){0, 0};
    return WEFT_OK;
}

void weft__dataset_destroy(weft__dataset **p)
{
    weft__dataset *d = p ? *p : NULL;
    if (!d) return;
    weft__free(d->order);
    weft__free(d->turns);
    weft__free(d->groups);
    weft__free(d->weight);
    weft__free(d->group);
    weft__free(d->target);
    weft__free(d->segment);
    weft__free(d->token);
    weft__free(d->segments);
    weft__train_rendered_free(&d->all);
    weft__free(d);
    *p = NULL;
}

/* ---- segments ---- */

/* The last token of [at, at + n) that is learned, counted from at; 0: none, since nothing predicts the first. */
static size_t last_learned(const weft__dataset *d, size_t at, size_t n)
{
    for (size_t i = n; i-- > 1;)
        if (d->all.learn[at + i]) return i;
    return 0;
}

weft_status weft__dataset_put_segment(weft__dataset *d, size_t at, size_t n, weft_error *err)
{
    size_t last = d->options.contrasts ? n : last_learned(d, at, n); /* of embeddings each token is a row */
    if ((!last || (d->record_weight == 0 && !d->options.keep_weightless)) && !d->options.pairs) {
        d->counts.n_dropped++;
        return WEFT_OK;
    }
    if (d->n_segments >= UINT32_MAX) return weft_fail(err, WEFT_LIMIT, "more than %u texts to learn from", UINT32_MAX);
    if (!weft__grow(&d->segments, &d->segments_capacity, d->n_segments + 1, sizeof *d->segments))
        return data_no_memory(err);
    /* What follows the last learned token teaches nothing. A row predicts the token behind it, so n tokens are n - 1
     * rows. */
    d->segments[d->n_segments++] = (weft__dataset_segment){at, (uint32_t)last, d->record_weight, d->record_reward};
    d->weighted |= d->record_weight != 1;
    d->counts.n_segments++;
    d->counts.n_tokens += (int64_t)last;
    for (size_t i = 1; i <= last && i < n; i++) d->counts.n_learned += d->all.learn[at + i];
    return WEFT_OK;
}

void weft__dataset_weigh(weft__dataset *d, double beta)
{
    double most = -INFINITY, sum = 0;
    for (size_t i = 0; i < d->n_segments; i++) /* fmax() here ends GCC 12 for AArch64 */
        if ((double)d->segments[i].reward > most) most = (double)d->segments[i].reward;
    for (size_t i = 0; i < d->n_segments; i++) sum += exp(((double)d->segments[i].reward - most) / beta);
    for (size_t i = 0; i < d->n_segments; i++)
        d->segments[i].weight *=
            (float)(exp(((double)d->segments[i].reward - most) / beta) * (double)d->n_segments / sum);
    d->weighted = d->counts_rows = 1;
}

/* Segments that are handed out together, but of contrasts. */
static size_t group(const weft__dataset *d)
{
    return d->options.pairs ? 2 : 1;
}

/* Groups that are no neighbours, and those that stand beside them in an epoch. */
static size_t n_own_groups(const weft__dataset *d)
{
    return d->options.contrasts ? d->n_groups : (d->mixes ? d->n_own : d->n_segments) / group(d);
}

static size_t n_mixed_groups(const weft__dataset *d)
{
    if (!d->mixes || d->n_own == d->n_segments) return 0;
    const double n = floor(d->ratio * (double)n_own_groups(d) + 0.5);
    return n < 1 ? 1 : n < UINT32_MAX ? (size_t)n : UINT32_MAX;
}

static size_t n_groups(const weft__dataset *d)
{
    return n_own_groups(d) + n_mixed_groups(d);
}

size_t weft__dataset_n_groups(const weft__dataset *d)
{
    return n_groups(d);
}

void weft__dataset_counts(const weft__dataset *d, weft__dataset_totals *out)
{
    *out = d->counts;
    out->stood_in = d->all.stood_in;
    out->n_epoch_tokens = out->n_tokens;
    out->n_epoch_segments = out->n_segments;
    if (!n_mixed_groups(d)) return;
    const double of_each = (double)(out->n_tokens - d->own.n_tokens) / (double)(out->n_segments - d->own.n_segments);
    const int64_t n_mixed = (int64_t)(n_mixed_groups(d) * group(d));
    out->n_epoch_segments = d->own.n_segments + n_mixed;
    out->n_epoch_tokens = d->own.n_tokens + (int64_t)(of_each * (double)n_mixed);
}

weft_status weft__dataset_begin_neighbors(weft__dataset *d, double ratio, weft_error *err)
{
    if (!(ratio > 0 && ratio <= 1000))
        return weft_fail(err, WEFT_ARGUMENT, "%g neighbours for each text; it must be above 0, and 1000 at most",
                         ratio);
    d->mixes = 1;
    d->n_own = d->n_segments;
    d->ratio = ratio;
    d->own = d->counts;
    return WEFT_OK;
}

size_t weft__dataset_n_texts(const weft__dataset *d)
{
    return d->n_segments;
}

weft__dataset_text weft__dataset_text_at(const weft__dataset *d, size_t i)
{
    const weft__dataset_segment *s = &d->segments[i];
    return (weft__dataset_text){d->all.ids.data + s->at, d->all.learn + s->at,
                                (size_t)s->n_rows + !d->options.contrasts, s->weight};
}

uint64_t weft__dataset_hash(const weft__dataset *d)
{
    weft__hash_state h;
    weft__hash_begin(&h);
    const weft__dataset_options *o = &d->options;
    const uint64_t options[] = {(uint64_t)o->n_ctx, (uint64_t)o->max_rows, (uint64_t)o->in_order, (uint64_t)o->pairs,
                                o->seed};
    /* What came later is added where it says something, so that checkpoints of releases go on (upgrade_check). */
    weft__hash_add(&h, options, sizeof options);
    if (o->most) weft__hash_add(&h, &o->most, sizeof o->most);
    if (d->all.ids.n) weft__hash_add(&h, d->all.ids.data, d->all.ids.n * sizeof *d->all.ids.data);
    if (d->all.ids.n) weft__hash_add(&h, d->all.learn, d->all.ids.n);
    if (d->n_groups) weft__hash_add(&h, d->groups, d->n_groups * sizeof *d->groups);
    if (d->mixes) {
        weft__hash_add(&h, &d->n_own, sizeof d->n_own);
        weft__hash_add(&h, &d->ratio, sizeof d->ratio);
    }
    for (size_t i = 0; i < d->n_segments; i++) {
        weft__hash_add(&h, &d->segments[i].at, sizeof d->segments[i].at);
        weft__hash_add(&h, &d->segments[i].n_rows, sizeof d->segments[i].n_rows);
        if (d->weighted) weft__hash_add(&h, &d->segments[i].weight, sizeof d->segments[i].weight);
    }
    return weft__hash_end(&h);
}

/* ---- order ---- */

/* Fisher and Yates's shuffle, from the seed alone. */
static void shuffle(uint32_t *order, size_t n, uint64_t seed)
{
    weft__rng rng;
    weft__rng_seed(&rng, seed);
    for (size_t i = n; i > 1; i--) {
        size_t k = (size_t)weft__rng_below(&rng, i);
        uint32_t t = order[i - 1];
        order[i - 1] = order[k];
        order[k] = t;
    }
}

#define EPOCHS_APART 0x9E3779B97F4A7C15u
#define TURNS_APART 0xD1B54A32D192ED03u

/* The neighbours of the epoch: the next ones of a row that begins anew, in another order, whenever all had a turn. */
static weft_status take_turns(weft__dataset *d, uint32_t *out, weft_error *err)
{
    const size_t n_own = n_own_groups(d), n = d->n_segments / group(d) - n_own, n_mixed = n_mixed_groups(d);
    if (!d->turns && !(d->turns = weft__alloc_array(n, sizeof *d->turns))) return data_no_memory(err);
    for (size_t i = 0; i < n_mixed; i++) {
        const uint64_t turn = d->position.epoch * n_mixed + i;
        if (i == 0 || turn % n == 0) {
            for (size_t k = 0; k < n; k++) d->turns[k] = (uint32_t)(n_own + k);
            if (!d->options.in_order) shuffle(d->turns, n, d->options.seed + TURNS_APART * (turn / n + 1));
        }
        out[i] = d->turns[turn % n];
    }
    return WEFT_OK;
}

/* From the seed and the epoch alone. */
static weft_status make_order(weft__dataset *d, weft_error *err)
{
    const size_t n = n_groups(d), n_own = n_own_groups(d);
    if (d->order && d->ordered == n && d->ordered_epoch == d->position.epoch) return WEFT_OK;
    if (!d->order || d->ordered != n) {
        weft__free(d->order);
        d->order = weft__alloc_array(n, sizeof *d->order);
        if (!d->order) return data_no_memory(err);
    }
    d->ordered = 0;
    for (size_t i = 0; i < n_own; i++) d->order[i] = (uint32_t)i;
    weft_status st = n > n_own ? take_turns(d, d->order + n_own, err) : WEFT_OK;
    if (st) return st;
    if (!d->options.in_order) shuffle(d->order, n, d->options.seed + EPOCHS_APART * (d->position.epoch + 1));
    d->ordered = n;
    d->ordered_epoch = d->position.epoch;
    return WEFT_OK;
}

/* ---- batches ---- */

static void put_rows(weft__dataset *d, const weft__dataset_segment *s, int32_t *n_rows, int32_t number)
{
    for (uint32_t i = 0; i < s->n_rows; i++, ++*n_rows) {
        d->token[*n_rows] = d->all.ids.data[s->at + i];
        d->segment[*n_rows] = number;
        d->weight[*n_rows] = s->weight;
        const int learned = !d->options.contrasts && d->all.learn[s->at + i + 1];
        d->target[*n_rows] = learned ? d->all.ids.data[s->at + i + 1] : -1;
    }
}

/* The segments of group i, in the order of the files: n of them, of so many rows. */
static const weft__dataset_segment *group_at(const weft__dataset *d, size_t i, size_t *n, size_t *rows)
{
    const size_t first = d->options.contrasts ? d->groups[i] : i * group(d);
    *n = !d->options.contrasts ? group(d) : (i + 1 < d->n_groups ? d->groups[i + 1] : d->n_segments) - first;
    *rows = 0;
    for (size_t k = 0; k < *n; k++) *rows += d->segments[first + k].n_rows;
    return d->segments + first;
}

weft_status weft__dataset_next(weft__dataset *d, weft__train_batch *out, weft_error *err)
{
    size_t n = n_groups(d), per, rows;
    int32_t n_rows = 0, number = 0, record = 0;
    if (!n_own_groups(d)) return weft_fail(err, WEFT_ARGUMENT, "the data hold nothing to learn");
    weft_status st = make_order(d, err);
    if (st) return st;
    for (; d->position.at < n; d->position.at++, record++) {
        const weft__dataset_segment *s = group_at(d, d->order[d->position.at], &per, &rows);
        if (rows > (size_t)(d->options.max_rows - n_rows) || (d->options.most && number >= d->options.most)) break;
        for (size_t k = 0; k < per; k++) {
            d->group[number] = record;
            put_rows(d, &s[k], &n_rows, number++);
        }
    }
    if (d->position.at == n) d->position = (weft__dataset_cursor){d->position.epoch + 1, 0};
    *out = (weft__train_batch){.n_rows = n_rows,
                               .token = d->token,
                               .segment = d->segment,
                               .target = d->target,
                               .weight = d->weighted ? d->weight : NULL,
                               .group = d->options.contrasts ? d->group : NULL};
    for (int32_t i = 0; d->counts_rows && i < n_rows; i++) out->count += d->target[i] >= 0;
    return WEFT_OK;
}

weft__dataset_cursor weft__dataset_position(const weft__dataset *d)
{
    return d->position;
}

weft_status weft__dataset_seek(weft__dataset *d, weft__dataset_cursor position, weft_error *err)
{
    if (position.at && position.at >= n_groups(d))
        return weft_fail(err, WEFT_ARGUMENT, "the data end before text %llu", (unsigned long long)position.at);
    d->position = position;
    return WEFT_OK;
}
