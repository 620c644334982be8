// SPDX-License-Identifier: Apache-2.0
/* teach.c: see teach.h. */
#include "learn/teach.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "base/random.h"
#include "learn/instant.h"
#include "learn/teach_inner.h"
#include "learn/teach_near.h"

enum { HALVINGS = 5 };
/* Of kept texts: those that have turns of their own, and the others. */
enum { FAR = 0, NEAR = 1 /* weft__teach_nearest */, REPLAYED = 2 };

void weft__teach_options_default(weft__teach_options *o)
{
    *o = (weft__teach_options){.rank = 8,
                               .alpha = 8,
                               .targets = "ffn_down",
                               .lr = 5e-3f,
                               .most_steps = 80,
                               .per_step = 6,
                               .far_per_step = 6,
                               .replay_per_step = 6,
                               .nearest = 30,
                               .more_draws = 96,
                               .public_per_step = 2,
                               .differs = 1,
                               .same = 0.2f,
                               .neighbour = 0.5f,
                               .replay = 0.5f,
                               .anchor = 0.5f,
                               .stop_at = -0.1f,
                               .hold_at = -0.2f,
                               .norm_cap = 0.25f,
                               .ewc = 3,
                               .attempts = 3,
                               .styles = 1,
                               .style = {.rank = 8,
                                         .lr = 2e-3f,
                                         .draws = 768,
                                         .questions = 384,
                                         .others = 320,
                                         .held = 64,
                                         .sure_at = -0.693f, /* likelier than all else together */
                                         .temperature = 0.7f,
                                         .first_steps = 80,
                                         .steps = 200,
                                         .per_step = 16,
                                         .stop_at = -0.3f,
                                         .said_at = -1},
                               .seed = 1};
}

/* ---- what is learned, and what is kept ---- */

/* Of a wrong answer that is not known, all differs. */
static int add_taught(weft__teach_inner *s, const weft__teach_event *e, const weft__teach_text *prompt,
                      const weft__teach_text *answer)
{
    const int32_t *ids = answer->ids + answer->n_prompt, n = answer->n - answer->n_prompt;
    uint8_t *differs = weft__alloc_zero((size_t)n + 1, 1);
    if (!differs) return 0;
    s->differs[s->taught.n] = differs;
    return weft__teach_texts_add(&s->taught, prompt->ids, prompt->n_prompt, ids, n, -1) &&
           weft__teach_mark(ids, n - 1, e->wrong, e->n_wrong, differs);
}

static weft_status gather_taught(weft__teach_inner *s, weft_error *err)
{
    const weft__teach_task *k = s->task;
    size_t n = 0;
    for (int32_t i = 0; i < k->n_events; i++) {
        const weft__teach_event *e = &k->events[i];
        if (e->correction.n - e->correction.n_prompt < 2)
            return weft_fail(err, WEFT_ARGUMENT, "correction %d says nothing", i);
        n += 1 + (size_t)e->n_taught;
    }
    s->differs = weft__alloc_zero(n, sizeof *s->differs);
    if (!s->differs) return weft__teach_no_memory(err);
    for (int32_t i = 0; i < k->n_events; i++) {
        const weft__teach_event *e = &k->events[i];
        if (!add_taught(s, e, &e->correction, &e->correction)) return weft__teach_no_memory(err);
        for (int32_t j = 0; j < e->n_taught; j++) {
            const weft__teach_text *p = &e->paraphrases[j];
            if (!add_taught(s, e, p, p->n > p->n_prompt ? p : &e->correction)) return weft__teach_no_memory(err);
        }
    }
    return WEFT_OK;
}

/* Neighbours without an answer have what the model says before the first step: they alone are asked. */
static weft_status answer_neighbours(weft__teach_inner *s, weft__teach_texts *said, weft_error *err)
{
    const weft__teach_task *k = s->task;
    weft__teach_text *asked = weft__alloc_array((size_t)k->n_neighbours + 1, sizeof *asked);
    size_t n = 0;
    if (!asked) return weft__teach_no_memory(err);
    for (int32_t i = 0; i < k->n_neighbours; i++)
        if (k->neighbours[i].n == k->neighbours[i].n_prompt) asked[n++] = k->neighbours[i];
    const weft_status st = n ? weft__teach_answer(s->t, k->tok, asked, n, WEFT__TEACH_ANSWER, said, err) : WEFT_OK;
    weft__free(asked);
    return st;
}

static weft_status gather_kept(weft__teach_inner *s, weft_error *err)
{
    const weft__teach_task *k = s->task;
    weft__teach_texts said = {0};
    for (int32_t i = 0; i < k->n_replay; i++) {
        const weft__teach_text *x = &k->replay[i];
        if (!weft__teach_texts_add(&s->kept, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1))
            return weft__teach_no_memory(err);
    }
    weft_status st = answer_neighbours(s, &said, err);
    for (int32_t i = 0, asked = 0; !st && i < k->n_neighbours; i++) {
        const weft__teach_text *x = &k->neighbours[i];
        if (x->n == x->n_prompt) x = &said.text[asked++];
        if (!weft__teach_texts_add(&s->kept, x->ids, x->n_prompt, x->ids + x->n_prompt, x->n - x->n_prompt, -1))
            st = weft__teach_no_memory(err);
    }
    weft__teach_texts_free(&said);
    return st;
}

weft_status weft__teach_inner_gather(weft__teach_inner *s, weft_error *err)
{
    weft_status st = gather_taught(s, err);
    s->judge = *s->task->judge;
    if (!st) st = gather_kept(s, err);
    if (!st && (s->style.n || s->o->draws > 0)) st = weft__teach_keep_more(s, err);
    return st;
}

void weft__teach_inner_drop(weft__teach_inner *s)
{
    for (size_t i = 0; s->differs && i < s->taught.n; i++) weft__free(s->differs[i]);
    weft__free(s->differs);
    weft__teach_texts_free(&s->taught);
    weft__teach_texts_free(&s->kept);
    weft__teach_texts_free(&s->held);
    weft__free(s->asked);
}

/* Puts the nearest neighbours first, then what is replayed in turns of its own, and leaves the order otherwise. */
static weft_status nearest_first(weft__teach_inner *s, weft_error *err)
{
    const size_t n = s->kept.n, n_replay = (size_t)s->task->n_replay;
    uint8_t *near = weft__alloc_zero(n + 1, 1);
    int32_t *order = weft__alloc_array(n + 1, sizeof *order);
    weft_status st = near && order ? WEFT_OK : weft__teach_no_memory(err);
    if (!st)
        st = weft__teach_nearest(s->taught.text, s->taught.n, s->kept.text + n_replay, n - n_replay,
                                 (size_t)s->o->nearest, near + n_replay, err);
    if (!st && s->o->replay_per_step > 0) memset(near, REPLAYED, n_replay);
    static const uint8_t groups[] = {NEAR, REPLAYED, FAR};
    size_t ends[sizeof groups] = {0}, at = 0;
    for (size_t g = 0; !st && g < sizeof groups; g++) {
        for (size_t i = 0; i < n; i++)
            if (near[s->order[i]] == groups[g]) order[at++] = s->order[i];
        ends[g] = at;
    }
    s->n_near = ends[0];
    s->n_replayed = ends[1] - ends[0];
    if (!st) memcpy(s->order, order, n * sizeof *order);
    weft__free(near);
    weft__free(order);
    return st;
}

/* An order by the seed, in which kept texts have their turns: the nearest neighbours, then the others. */
static weft_status shuffle(weft__teach_inner *s, weft_error *err)
{
    weft__rng rng;
    const size_t n = s->kept.n;
    weft_status st = WEFT_OK;
    s->order = weft__alloc_array(n + !n, sizeof *s->order);
    if (!s->order) return weft__teach_no_memory(err);
    weft__rng_seed(&rng, s->o->seed);
    for (size_t i = 0; i < n; i++) {
        const size_t j = (size_t)weft__rng_below(&rng, i + 1);
        s->order[i] = s->order[j];
        s->order[j] = (int32_t)i;
    }
    s->n_near = n;
    if ((int64_t)n > s->o->nearest || (s->o->replay_per_step > 0 && s->task->n_replay > 0)) st = nearest_first(s, err);
    return st;
}

/* ---- steps ---- */

float *weft__teach_inner_weights(weft__teach_inner *s, int32_t n)
{
    return weft__grow(&s->weights, &s->weights_room, (size_t)n + !n, sizeof *s->weights) ? s->weights : NULL;
}

static int put_taught(weft__teach_inner *s, size_t i)
{
    const weft__teach_text *x = &s->taught.text[i];
    const int32_t n = x->n - x->n_prompt;
    float *w = weft__teach_inner_weights(s, n);
    if (!w) return 0;
    for (int32_t k = 0; k < n; k++) w[k] = s->differs[i][k] ? s->o->differs : s->o->same;
    return weft__teach_rows_put(&s->rows, x, w);
}

/* The wrong answer's own tokens become less likely, where it differs. */
static int put_wrong(weft__teach_inner *s, const weft__teach_event *e)
{
    weft__teach_texts text = {0};
    const weft__teach_text *c = &e->correction;
    if (!e->wrong || !(s->o->wrong < 0)) return 1;
    const weft__teach_span span =
        weft__teach_differ(e->wrong, e->n_wrong, c->ids + c->n_prompt, c->n - c->n_prompt - 1);
    float *w = weft__teach_inner_weights(s, e->n_wrong);
    int ok = w && weft__teach_texts_add(&text, c->ids, c->n_prompt, e->wrong, e->n_wrong, -1);
    for (int32_t k = 0; ok && k < e->n_wrong; k++) w[k] = k == span.from ? s->o->wrong : 0;
    ok = ok && weft__teach_rows_put(&s->rows, &text.text[0], w);
    weft__teach_texts_free(&text);
    return ok;
}

/* Of those in order[0 .. n), from `turn` on. 0: no memory. */
static int put_turns(weft__teach_inner *s, const int32_t *order, size_t n, size_t turn, int32_t per_step,
                     int32_t rows_most)
{
    for (int32_t i = 0; i < per_step && i < (int32_t)n; i++) {
        const int32_t at = order[(turn + (size_t)i) % n];
        const weft__teach_text *x = &s->kept.text[at];
        const int32_t n_answer = x->n - x->n_prompt;
        if (s->rows.n + x->n - 1 > rows_most) break;
        float *w = weft__teach_inner_weights(s, n_answer);
        if (!w) return 0;
        for (int32_t k = 0; k < n_answer; k++) w[k] = at < s->task->n_replay ? s->o->replay : s->o->neighbour;
        if (!weft__teach_rows_put(&s->rows, x, w)) return 0;
    }
    return 1;
}

int weft__teach_inner_put_publics(weft__teach_inner *s, int32_t rows_most)
{
    for (int32_t i = 0; s->o->anchor > 0 && i < s->o->public_per_step && i < s->task->n_publics; i++) {
        const size_t at = (s->public_turn + (size_t)i) % (size_t)s->task->n_publics;
        const weft__teach_text *x = &s->task->publics[at];
        const int32_t n = x->n - x->n_prompt;
        if (s->rows.n + x->n - 1 > rows_most) break;
        float *w = weft__teach_inner_weights(s, n);
        if (!w) return 0;
        memset(w, 0, (size_t)n * sizeof *w);
        if (!weft__teach_rows_put(&s->rows, x, w)) return 0;
    }
    s->public_turn += (size_t)s->o->public_per_step;
    return 1;
}

static int put_kept(weft__teach_inner *s, int32_t rows_most)
{
    const int32_t per_step = s->o->per_step, far = s->o->far_per_step, again = s->o->replay_per_step;
    const size_t n_near = s->n_near, n_own = n_near + s->n_replayed;
    weft__teach_rows_clear(&s->rows);
    if (!put_turns(s, s->order, n_near, s->turn, per_step, rows_most) ||
        !put_turns(s, s->order + n_near, s->n_replayed, s->replay_turn, again, rows_most) ||
        !put_turns(s, s->order + n_own, s->kept.n - n_own, s->far_turn, far, rows_most))
        return 0;
    s->turn += (size_t)per_step;
    s->replay_turn += (size_t)again;
    s->far_turn += (size_t)far;
    return weft__teach_inner_put_publics(s, rows_most);
}

/* Did the first n texts of the batch that was just passed come out at this log p? */
int weft__teach_inner_came_out(weft__teach_inner *s, int32_t n, float at)
{
    weft__trainer_likeliest(s->t, s->likeliest);
    weft__trainer_logp(s->t, s->logp);
    for (int32_t r = 0; r < s->rows.n && s->rows.segment[r] < n; r++)
        if (s->rows.target[r] >= 0 && (s->rows.target[r] != s->likeliest[r] || s->logp[r] < at)) return 0;
    return 1;
}

weft_status weft__teach_inner_add(weft__teach_inner *s, int kept, weft_error *err)
{
    const weft__train_objective objective = {.kind = WEFT__LOSS_LIKELIHOOD, .anchor = kept ? s->o->anchor : 0};
    weft__train_batch b = weft__teach_rows_batch(&s->rows);
    const weft_status st = kept && b.n_rows && s->o->soften ? s->o->soften(s->o->soften_arg, &b, err) : WEFT_OK;
    return !st && b.n_rows ? weft__trainer_learn(s->t, &objective, &b, NULL, err) : st;
}

/* What is taught, in as many batches as it takes; *holds: all of it comes out. */
weft_status weft__teach_inner_add_taught(weft__teach_inner *s, int32_t rows_most, int *holds, weft_error *err)
{
    weft_status st = WEFT_OK;
    *holds = 1;
    for (size_t i = 0; !st && i < s->taught.n;) {
        weft__teach_rows_clear(&s->rows);
        for (; i < s->taught.n && s->rows.n + s->taught.text[i].n - 1 <= rows_most; i++)
            if (!put_taught(s, i)) return weft__teach_no_memory(err);
        if (!s->rows.n)
            return weft_fail(err, WEFT_LIMIT, "a correction of %d tokens; learning takes %d at most",
                             s->taught.text[i].n, rows_most);
        if (!weft__grow(&s->likeliest, &s->likeliest_room, (size_t)s->rows.n, sizeof *s->likeliest) ||
            !weft__grow(&s->logp, &s->logp_room, (size_t)s->rows.n, sizeof *s->logp))
            return weft__teach_no_memory(err);
        st = weft__teach_inner_add(s, 0, err);
        if (!st && *holds) *holds = weft__teach_inner_came_out(s, s->rows.n_texts, s->o->stop_at);
    }
    return st;
}

/* The wrong answers, where they are learned from. */
static weft_status add_wrong_rows(weft__teach_inner *s, int32_t rows_most, weft_error *err)
{
    weft_status st = WEFT_OK;
    for (int32_t i = 0; !st && s->o->wrong < 0 && i < s->task->n_events; i++) {
        const weft__teach_event *e = &s->task->events[i];
        weft__teach_rows_clear(&s->rows);
        if (e->correction.n_prompt + e->n_wrong > rows_most) continue;
        if (!put_wrong(s, e)) return weft__teach_no_memory(err);
        st = weft__teach_inner_add(s, 0, err);
    }
    return st;
}

/* What the version before says of what is replayed is to stay (elastic weight consolidation). It is told anew for each
 * version, so that no file has it: what is replayed is all that was learned. */
static weft_status show_replayed(weft__teach_inner *s, weft_error *err)
{
    weft__trainer_info info;
    const size_t n = s->o->ewc > 0 && s->task->parent && !s->style.n ? (size_t)s->task->n_replay : 0;
    weft_status st = WEFT_OK;
    weft__trainer_describe(s->t, &info);
    for (size_t i = 0; !st && i < n;) {
        weft__teach_rows_clear(&s->rows);
        for (; i < n && s->rows.n + s->kept.text[i].n - 1 <= info.max_rows; i++)
            if (!weft__teach_rows_put(&s->rows, &s->kept.text[i], NULL)) return weft__teach_no_memory(err);
        if (!s->rows.n)
            return weft_fail(err, WEFT_LIMIT, "a correction of %d tokens; learning takes %d at most", s->kept.text[i].n,
                             info.max_rows);
        const weft__train_batch b = weft__teach_rows_batch(&s->rows);
        st = weft__trainer_show(s->t, &b, err);
    }
    return st;
}

static weft_status make_steps(weft__teach_inner *s, weft__teach_report *out, weft_error *err)
{
    weft__trainer_info info;
    weft__trainer_describe(s->t, &info);
    for (int32_t step = 0;; step++) {
        weft_status st = weft__teach_inner_add_taught(s, info.max_rows, &out->came_out, err);
        if (st || out->came_out || step == s->o->most_steps) return st;
        if ((st = add_wrong_rows(s, info.max_rows, err))) return st;
        if (!put_kept(s, info.max_rows)) return weft__teach_no_memory(err);
        if ((st = weft__teach_inner_add(s, 1, err)) || (st = weft__trainer_step(s->t, NULL, err))) return st;
        out->n_steps++;
    }
}

/* ---- the scale ---- */

static float *copy_params(const weft__trainer *t)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < weft__trainer_n_params(t); i++) {
        const weft__train_param p = weft__trainer_param(t, i);
        n += (size_t)(p.d[0] * p.d[1]);
    }
    float *out = weft__alloc_array(n, sizeof *out);
    for (size_t i = 0; out && i < weft__trainer_n_params(t); i++) {
        const weft__train_param p = weft__trainer_param(t, i);
        memcpy(out + at, p.data, (size_t)(p.d[0] * p.d[1]) * sizeof *out);
        at += (size_t)(p.d[0] * p.d[1]);
    }
    return out;
}

/* The parameters become those at `share` of the way. scratch: room for the largest. */
static weft_status go_back(weft__teach_inner *s, float share, weft_error *err)
{
    float *mixed = NULL;
    size_t room = 0, at = 0;
    for (size_t i = 0; i < weft__trainer_n_params(s->t); i++) {
        const weft__train_param p = weft__trainer_param(s->t, i);
        const size_t n = (size_t)(p.d[0] * p.d[1]);
        if (!weft__grow(&mixed, &room, n, sizeof *mixed)) break;
        for (size_t k = 0; k < n; k++) mixed[k] = s->began[at + k] + share * (s->came[at + k] - s->began[at + k]);
        weft__trainer_set_param(s->t, i, mixed);
        at += n;
    }
    weft__free(mixed);
    return mixed ? WEFT_OK : weft__teach_no_memory(err);
}

static weft_status try_share(weft__teach_inner *s, float share, int *holds, weft_error *err)
{
    weft_status st = go_back(s, share, err);
    uint8_t *right = weft__alloc_zero(s->taught.n, 1);
    float *least = weft__alloc_array(s->taught.n, sizeof *least);
    if (!st && (!right || !least)) st = weft__teach_no_memory(err);
    if (!st) st = weft__teach_check(s->t, s->taught.text, s->taught.n, right, least, err);
    *holds = 1;
    for (size_t i = 0; !st && i < s->taught.n; i++) *holds &= right[i] && least[i] >= s->o->hold_at;
    weft__free(right);
    weft__free(least);
    return st;
}

/* By halves: the least share, to 1/32, at which all that is taught still comes out. */
static weft_status take_back(weft__teach_inner *s, weft__teach_report *out, weft_error *err)
{
    float low = 0, high = 1;
    weft_status st = WEFT_OK;
    int holds;
    s->came = copy_params(s->t);
    if (!s->came) return weft__teach_no_memory(err);
    for (int i = 0; !st && out->came_out && i < HALVINGS; i++) {
        const float share = (low + high) / 2;
        st = try_share(s, share, &holds, err);
        if (holds) high = share;
        else low = share;
    }
    out->scale = high;
    return st ? st : go_back(s, high, err);
}

/* ---- all of it ---- */

/* Rows that hold a step, and the longest text with an answer. */
static int32_t rows_of(const weft__teach_task *k, const weft__teach_options *o, int is_style)
{
    const int32_t per_step = is_style ? o->style.per_step : o->per_step, long_one = weft__teach_longest(k);
    int64_t rows = 0, n_kept = (int64_t)k->n_replay + k->n_neighbours;
    for (int32_t i = 0; i < k->n_events; i++) {
        const weft__teach_event *e = &k->events[i];
        int32_t n = e->correction.n;
        for (int32_t j = 0; j < e->n_paraphrases; j++) n = e->paraphrases[j].n > n ? e->paraphrases[j].n : n;
        rows += (int64_t)(n + WEFT__TEACH_ANSWER) * (1 + e->n_taught + (o->wrong < 0));
    }
    const int64_t n_far = n_kept > o->nearest ? n_kept - o->nearest : 0;
    rows += (n_kept < per_step ? n_kept : per_step) * (int64_t)long_one;
    rows += ((n_far < o->far_per_step ? n_far : o->far_per_step) + o->public_per_step) * (int64_t)long_one;
    rows += (k->n_replay < o->replay_per_step ? k->n_replay : o->replay_per_step) * (int64_t)long_one;
    return (int32_t)(rows < long_one ? long_one : rows > WEFT__TEACH_ROWS ? WEFT__TEACH_ROWS : rows);
}

weft_status weft__teach_inner_open(weft__teach_inner *s, weft_error *err)
{
    const weft__teach_options *o = s->o;
    weft__teach_lora lora = {.like = s->task->parent,
                             .rank = o->rank,
                             .alpha = o->alpha,
                             .targets = o->targets,
                             .lr = o->lr,
                             .l2_sp = s->task->parent ? o->l2_sp : 0,
                             .max_rows = rows_of(s->task, o, s->style.n > 0)};
    if (s->style.n) {
        lora.rank = o->style.rank;
        lora.alpha = (float)o->style.rank;
        lora.targets = o->style.targets;
        lora.lr = o->style.lr;
        lora.decay = o->style.steps;
    }
    weft_status st = weft__teach_trainer_open(s->task->base, o, &lora, &s->t, err);
    return !st && s->task->parent ? weft__trainer_start_adapter(s->t, s->task->parent, err) : st;
}

weft_status weft__teach_inner_write(const weft__teach_task *task, weft__trainer *t, weft__teach_report *out,
                                    weft_error *err)
{
    weft__adapt *a = NULL;
    weft_status st = weft__trainer_write_adapter(t, task->path, task->name, err);
    if (!st) st = weft__adapt_open(task->path, NULL, UINT64_MAX, &a, err);
    if (!st) out->id = a->id;
    weft__adapt_close(&a);
    return st;
}

static weft_status attempt(const weft__teach_task *task, const weft__teach_options *o, weft__teach_report *out,
                           weft_error *err)
{
    weft__teach_inner s = {.task = task, .o = o};
    weft__gate *gate = NULL;
    uint64_t ns = weft__clock_ns();
    out->n_steps = 0;
    out->scale = 1;
    weft__teach_options by_style = *o;
    weft_status st = WEFT_OK;
    by_style.stop_at = o->style.stop_at;
    by_style.same = o->differs; /* what else is said counts as much: it is what a style must not change */
    if (o->styles && !task->parent && task->n_neighbours >= WEFT__GATE_STYLE_LEAST)
        st = weft__teach_style_find(task->tok, task->events, task->n_events, o->stop, o->stop_arg, &s.style, err);
    if (s.style.n) s.o = &by_style;
    out->n_style = s.style.n;
    if (!st) st = weft__teach_inner_open(&s, err);
    if (!st) st = weft__teach_inner_gather(&s, err);
    if (!st) st = shuffle(&s, err);
    if (!st)
        st = weft__gate_open(s.t, task->tok, &s.judge, task->events, task->n_events, WEFT__TEACH_ANSWER, &gate, err);
    if (!st && !(s.began = copy_params(s.t))) st = weft__teach_no_memory(err);
    if (!st) st = show_replayed(&s, err);
    out->judge_s += weft__teach_since(&ns);
    if (!st) st = s.style.n ? weft__teach_speak(&s, out, err) : make_steps(&s, out, err);
    out->learn_s += weft__teach_since(&ns);
    if (!st && !s.style.n) st = take_back(&s, out, err);
    out->scale_s += weft__teach_since(&ns);
    if (!st) {
        weft__trainer_hold_to_base(s.t);
        st = weft__gate_measure(gate, s.t, s.style.n ? &s.style : NULL, &out->gate, err);
    }
    out->judge_s += weft__teach_since(&ns);
    if (!st && out->gate.passed && task->path) st = weft__teach_inner_write(task, s.t, out, err);
    weft__gate_close(&gate);
    weft__trainer_destroy(&s.t);
    weft__teach_inner_drop(&s);
    weft__teach_texts_free(&s.said);
    weft__teach_style_free(&s.style);
    weft__teach_rows_free(&s.rows);
    weft__free(s.weights);
    weft__free(s.order);
    weft__free(s.likeliest);
    weft__free(s.logp);
    weft__free(s.began);
    weft__free(s.came);
    return st;
}

/* A recipe that answers the reason for which the gate refused. */
static void change_recipe(weft__teach_options *o, weft__gate_reason reason)
{
    const int too_little = reason == WEFT__GATE_NOT_LEARNED || reason == WEFT__GATE_PARAPHRASES;
    o->seed++;
    if (too_little) {
        o->most_steps *= 2;
        o->stop_at /= 2;
        o->hold_at /= 2;
        return;
    }
    o->per_step *= 2;
    o->far_per_step *= 2;
    o->replay_per_step *= 2;
    o->draws += o->more_draws;
    o->anchor *= 2;
    o->stop_at *= 2;
    o->hold_at *= 2;
}

weft_status weft__teach(const weft__teach_task *task, const weft__teach_options *options, weft__teach_report *out,
                        weft_error *err)
{
    weft__teach_options o = *options;
    weft_status st = WEFT_OK;
    if (o.instant > 0) return weft__teach_instant(task, options, out, err);
    *out = (weft__teach_report){0};
    if (task->n_events < 1) return weft_fail(err, WEFT_ARGUMENT, "there is nothing to learn");
    for (;;) {
        st = attempt(task, &o, out, err);
        out->n_attempts++;
        if (st || out->gate.passed || out->n_attempts >= options->attempts) return st;
        if (out->n_style) o.styles = 0; /* what is no style after all is learned as facts */
        else change_recipe(&o, out->gate.reason);
    }
}
