// SPDX-License-Identifier: Apache-2.0
/* metrics.c: counters and histograms, and /metrics in Prometheus' text format (version 0.0.4), with llama.cpp's names
 * beside ours where both mean the same. Counters are added to by any thread. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "server/learn.h"
#include "server/memories.h"
#include "server/models.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/rules.h"

static const double token_bounds[] = {0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.5, 1, 2.5, 5};
static const double wait_bounds[] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160};

static const double stage_bounds[] = {1e-5, 1e-4, 1e-3, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};

/* Those that answers have (http/answer.c). The last stands for all others. */
static const int statuses[] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 408, 409, 411, 413,
                               414, 415, 422, 429, 431, 499, 500, 501, 502, 503, 504, 505, 507, 0};
enum { N_STATUSES = sizeof statuses / sizeof *statuses };

static void metrics_begin(weft__server_histogram *h, const double *bounds, int n)
{
    h->bounds = bounds;
    h->n = n;
}

void weft__server_metrics_begin(weft__server_metrics *m)
{
    metrics_begin(&m->first_token, wait_bounds, sizeof wait_bounds / sizeof *wait_bounds);
    metrics_begin(&m->queue, wait_bounds, sizeof wait_bounds / sizeof *wait_bounds);
    metrics_begin(&m->duration, wait_bounds, sizeof wait_bounds / sizeof *wait_bounds);
    metrics_begin(&m->between_tokens, token_bounds, sizeof token_bounds / sizeof *token_bounds);
    for (int i = 0; i < WEFT__SERVER_STAGES; i++)
        metrics_begin(&m->stages[i], stage_bounds, sizeof stage_bounds / sizeof *stage_bounds);
}

void weft__server_metrics_stages(weft__server_metrics *m, const weft__server_stages *stages)
{
    for (int i = 0; i < WEFT__SERVER_STAGES; i++)
        weft__server_histogram_add(&m->stages[i], (double)stages->ns[i] / 1e9);
}

void weft__server_histogram_add(weft__server_histogram *h, double seconds)
{
    int i = 0;
    while (i < h->n && seconds > h->bounds[i]) i++;
    h->counts[i]++;
    h->sum_ns += (uint64_t)(seconds * 1e9);
}

void weft__server_metrics_response(weft__server_answered *a, const char *path, int status)
{
    int i = 0;
    while (i + 1 < N_STATUSES && statuses[i] != status) i++;
    a->responses[weft__server_route_index(path)][i]++;
}

static void head(weft__strbuf *out, const char *name, const char *type, const char *help)
{
    weft__strbuf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void counter(weft__strbuf *out, const char *name, const char *help, uint64_t value)
{
    head(out, name, "counter", help);
    weft__strbuf_printf(out, "%s %llu\n", name, (unsigned long long)value);
}

static void gauge(weft__strbuf *out, const char *name, const char *help, double value)
{
    head(out, name, "gauge", help);
    weft__strbuf_printf(out, "%s %.12g\n", name, value);
}

static void buckets(weft__strbuf *out, const char *name, const double *bounds, const uint64_t *counts, int n,
                    double sum)
{
    uint64_t total = 0;
    for (int i = 0; i < n; i++) {
        total += counts[i];
        weft__strbuf_printf(out, "%s_bucket{le=\"%.12g\"} %llu\n", name, bounds[i], (unsigned long long)total);
    }
    total += counts[n];
    weft__strbuf_printf(out, "%s_bucket{le=\"+Inf\"} %llu\n%s_sum %.12g\n%s_count %llu\n", name,
                        (unsigned long long)total, name, sum, name, (unsigned long long)total);
}

static void histogram(weft__strbuf *out, const char *name, const char *help, const weft__server_histogram *h)
{
    uint64_t counts[WEFT__SERVER_BOUNDS + 1];
    for (int i = 0; i <= h->n; i++) counts[i] = h->counts[i];
    head(out, name, "histogram", help);
    buckets(out, name, h->bounds, counts, h->n, (double)h->sum_ns / 1e9);
}

static void put_stages(weft__server_model *m, weft__strbuf *out)
{
    static const char name[] = "weft_stage_seconds";
    head(out, name, "histogram",
         "Of requests that ended, from the first byte to the answer's last: what each stage took.");
    for (int i = 0; i < WEFT__SERVER_STAGES; i++) {
        const weft__server_histogram *h = &m->metrics.stages[i];
        const char *stage = weft__server_stage_name(i);
        uint64_t total = 0;
        for (int k = 0; k <= h->n; k++) {
            char bound[32] = "+Inf";
            if (k < h->n) snprintf(bound, sizeof bound, "%.12g", h->bounds[k]);
            total += h->counts[k];
            weft__strbuf_printf(out, "%s_bucket{stage=\"%s\",le=\"%s\"} %llu\n", name, stage, bound,
                                (unsigned long long)total);
        }
        weft__strbuf_printf(out, "%s_sum{stage=\"%s\"} %.12g\n%s_count{stage=\"%s\"} %llu\n", name, stage,
                            (double)h->sum_ns / 1e9, name, stage, (unsigned long long)total);
    }
}

static void put_responses(const weft__server_answered *a, weft__strbuf *out)
{
    head(out, "weft_http_responses_total", "counter", "Answers by path and status; status 0: none was sent.");
    for (int r = 0; weft__server_route_at(r); r++)
        for (int i = 0; i < N_STATUSES; i++)
            if (a->responses[r][i])
                weft__strbuf_printf(out, "weft_http_responses_total{path=\"%s\",status=\"%d\"} %llu\n",
                                    weft__server_route_at(r), statuses[i], (unsigned long long)a->responses[r][i]);
}

static void put_requests(const weft__server_metrics *m, weft__strbuf *out)
{
    static const char *const names[] = {"end", "length", "stop", "cancelled", "failed"};
    counter(out, "weft_prompt_tokens_total", "Tokens of prompts, as they are read.", m->prompt_tokens);
    counter(out, "weft_cached_tokens_total", "Tokens of prompts whose keys and values were there already.",
            m->cached_tokens);
    counter(out, "weft_generated_tokens_total", "Tokens generated.", m->generated_tokens);
    counter(out, "weft_embeddings_total", "Embeddings computed for requests for them.", m->embedded);
    head(out, "weft_requests_total", "counter", "Requests that ended, by reason.");
    for (int i = 0; i < 5; i++)
        weft__strbuf_printf(out, "weft_requests_total{finish=\"%s\"} %llu\n", names[i],
                            (unsigned long long)m->finished[i]);
    histogram(out, "weft_time_to_first_token_seconds", "From the request to its first token.", &m->first_token);
    histogram(out, "weft_time_between_tokens_seconds", "Between tokens of one request.", &m->between_tokens);
    histogram(out, "weft_queue_seconds", "Waiting before the first step.", &m->queue);
    histogram(out, "weft_request_seconds", "From the request to its last token.", &m->duration);
}

static void put_engine_histogram(weft__strbuf *out, const char *name, const char *help, const weft_histogram *h,
                                 double scale)
{
    double bounds[WEFT_HISTOGRAM_MAX];
    for (int i = 0; i < h->n; i++) bounds[i] = h->bounds[i] * scale;
    head(out, name, "histogram", help);
    buckets(out, name, bounds, h->counts, h->n, h->sum * scale);
}

static void seconds(weft__strbuf *out, const char *name, const char *help, double value)
{
    head(out, name, "counter", help);
    weft__strbuf_printf(out, "%s %.9g\n", name, value);
}

static void put_tiers(const weft_engine_stats *e, weft__strbuf *out)
{
    head(out, "weft_adapter_hits_total", "counter",
         "Adapters that requests wanted, by where they were: packed, as read in the page cache, or on the disk.");
    weft__strbuf_printf(out, "weft_adapter_hits_total{tier=\"packed\"} %llu\n", (unsigned long long)e->adapter_hits);
    weft__strbuf_printf(out, "weft_adapter_hits_total{tier=\"read\"} %llu\n",
                        (unsigned long long)(e->adapter_loads - e->adapter_disk_loads));
    weft__strbuf_printf(out, "weft_adapter_hits_total{tier=\"disk\"} %llu\n",
                        (unsigned long long)e->adapter_disk_loads);
    counter(out, "weft_adapter_asked_ahead_total", "Adapters whose files were asked for before their requests' turn.",
            e->adapter_asked_ahead);
    counter(out, "weft_adapter_ahead_hits_total", "Those of them that were in the page cache at their turn.",
            e->adapter_ahead_hits);
}

/* Pages of requests that gave way. */
static void put_swap(const weft_swap_stats *s, weft__strbuf *out)
{
    gauge(out, "weft_swap_limit_bytes", "What swapped pages may take of the store.", (double)s->limit_bytes);
    gauge(out, "weft_swap_bytes", "Of swapped pages, on the disk.", (double)s->used_bytes);
    gauge(out, "weft_swap_file_bytes", "Of the file that has them.", (double)s->file_bytes);
    gauge(out, "weft_swap_staged_bytes", "Of pages in memory, on their way there.", (double)s->staged_bytes);
    counter(out, "weft_swaps_total", "Requests that gave way, and whose pages were kept.", s->n_swapped);
    counter(out, "weft_swap_restored_total", "Of them, those that went on from what was kept.", s->n_restored);
    counter(out, "weft_swap_tokens_total", "Tokens that were not computed again.", s->tokens);
    head(out, "weft_swap_pages_total", "counter", "Pages written, come back, and lost (computed again).");
    weft__strbuf_printf(out, "weft_swap_pages_total{what=\"out\"} %llu\n", (unsigned long long)s->pages_out);
    weft__strbuf_printf(out, "weft_swap_pages_total{what=\"in\"} %llu\n", (unsigned long long)s->pages_in);
    weft__strbuf_printf(out, "weft_swap_pages_total{what=\"lost\"} %llu\n", (unsigned long long)s->pages_lost);
    head(out, "weft_swap_bytes_total", "counter", "Bytes of those written, and of those that came back.");
    weft__strbuf_printf(out, "weft_swap_bytes_total{what=\"out\"} %llu\n", (unsigned long long)s->bytes_out);
    weft__strbuf_printf(out, "weft_swap_bytes_total{what=\"in\"} %llu\n", (unsigned long long)s->bytes_in);
    head(out, "weft_swap_seconds_total", "counter", "That writing took, and that requests waited for their pages.");
    weft__strbuf_printf(out, "weft_swap_seconds_total{what=\"out\"} %.6f\n", (double)s->out_ns / 1e9);
    weft__strbuf_printf(out, "weft_swap_seconds_total{what=\"in\"} %.6f\n", (double)s->in_ns / 1e9);
    gauge(out, "weft_swap_bytes_per_second", "That pages come back with, as measured; 0: not known yet.",
          s->bytes_per_second);
    gauge(out, "weft_prompt_tokens_per_second", "Of steps that read prompts, of late; 0: not known yet.",
          s->prompt_tokens_per_second);
}

static void put_engine(const weft_engine_stats *e, weft__strbuf *out)
{
    counter(out, "weft_steps_total", "Steps of the model.", e->n_steps);
    seconds(out, "weft_model_seconds_total",
            "Time in which the model computed; what a step takes beyond it is sampling and telling.",
            (double)e->model_ns / 1e9);
    head(out, "weft_rows_total", "counter", "Rows of steps; tokens that were guessed are among those that decode.");
    weft__strbuf_printf(out, "weft_rows_total{kind=\"decode\"} %llu\nweft_rows_total{kind=\"prompt\"} %llu\n",
                        (unsigned long long)e->n_rows_decode, (unsigned long long)e->n_rows_prompt);
    counter(out, "weft_refused_total", "Requests refused because the queue was full.", e->n_refused);
    counter(out, "weft_preempted_total", "Times that a running request gave its pages to another.", e->n_preempted);
    counter(out, "weft_put_off_total",
            "Rows computed again because grammars of others had taken the step's time for masks.", e->n_put_off);
    counter(out, "weft_prefix_asked_tokens_total", "Tokens looked up in the prefix tree.", e->prompt_tokens);
    counter(out, "weft_prefix_hit_tokens_total", "Tokens found there.", e->cached_tokens);
    gauge(out, "weft_prefix_tokens", "Tokens that it knows.", (double)e->prefix_tokens);
    counter(out, "weft_prefix_evicted_pages_total", "Pages that it gave up for others.", e->prefix_evicted_pages);
    gauge(out, "weft_running", "Requests that run.", e->n_running);
    gauge(out, "weft_waiting", "Requests that wait.", e->n_waiting);
    gauge(out, "weft_slots", "Requests that may run at once.", e->n_slots);
    gauge(out, "weft_kv_pages", "Pages of keys and values.", e->kv_pages);
    gauge(out, "weft_kv_pages_used", "Pages held by requests.", e->kv_pages_used);
    gauge(out, "weft_kv_pages_cached", "Pages held by the prefix tree alone.", e->kv_pages_cached);
    gauge(out, "weft_adapters", "Adapters known by name.", e->n_adapters);
    gauge(out, "weft_adapters_ready", "Adapters, alone and in stacks, ready to be used.", e->n_adapters_ready);
    gauge(out, "weft_adapter_bytes", "Bytes of those that are ready.", (double)e->adapter_bytes);
    counter(out, "weft_adapter_loads_total", "Adapters read.", e->adapter_loads);
    counter(out, "weft_adapter_evictions_total", "Adapters let go for others.", e->adapter_evictions);
    put_tiers(e, out);
    gauge(out, "weft_store_prefixes", "Prefixes on the disk.", (double)e->store_prefixes);
    gauge(out, "weft_store_slots", "Saved slots on the disk.", (double)e->store_slots);
    gauge(out, "weft_store_bytes", "Bytes of both.", (double)e->store_bytes);
    gauge(out, "weft_store_cap_bytes", "What they may take together.", (double)e->store_cap_bytes);
    gauge(out, "weft_store_waiting", "Prefixes and slots that are yet to be written.", (double)e->store_waiting);
    counter(out, "weft_store_written_total", "Files written.", e->store_written);
    counter(out, "weft_store_write_failures_total", "Files that could not be written.", e->store_write_failed);
    counter(out, "weft_store_hits_total", "Files that were read for a request.", e->store_read);
    counter(out, "weft_store_hit_tokens_total", "Tokens in them.", e->store_read_tokens);
    counter(out, "weft_store_damaged_total", "Files dropped because they were not what they must be.",
            e->store_damaged);
    counter(out, "weft_store_removed_total", "Prefixes that made room or became part of longer ones.",
            e->store_removed);
    put_swap(&e->swap, out);
    put_engine_histogram(out, "weft_step_rows", "Rows of a step.", &e->batch_rows, 1);
    put_engine_histogram(out, "weft_step_seconds", "Time of a step.", &e->step_ms, 1e-3);
}

/* Tokens that were guessed ahead of a step, and how many were right. */
static void put_drafts(const weft_engine_stats *e, weft__strbuf *out)
{
    static const char *const what[] = {"weft_drafts_total", "weft_draft_tokens_total",
                                       "weft_draft_accepted_tokens_total"};
    static const char *const help[] = {"Drafts that were tried, by drafter.", "Tokens of drafts that were tried.",
                                       "Those of them that answers went on with."};
    for (int i = 0; i < 3; i++) {
        head(out, what[i], "counter", help[i]);
        for (int d = 0; d < WEFT_DRAFTERS; d++) {
            const weft_draft_stats *s = &e->drafts[d];
            weft__strbuf_printf(out, "%s{drafter=\"%s\"} %llu\n", what[i], weft_drafter_name(d),
                                (unsigned long long)(i == 0   ? s->n_drafts
                                                     : i == 1 ? s->n_tokens
                                                              : s->n_accepted));
        }
    }
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "weft_draft_accepted_tokens_at_total" : "weft_draft_tokens_at_total";
        head(out, name, "counter", i ? "Those of them that were accepted." : "Tokens tried, by place in their draft.");
        for (int d = 0; d < WEFT_DRAFTERS; d++)
            for (int k = 0; k < WEFT_DRAFT_MAX; k++)
                weft__strbuf_printf(out, "%s{drafter=\"%s\",position=\"%d\"} %llu\n", name, weft_drafter_name(d), k,
                                    (unsigned long long)(i ? e->drafts[d].accepted_at[k] : e->drafts[d].tokens_at[k]));
    }
}

static void put_draft_time(const weft_engine_stats *e, weft__strbuf *out)
{
    head(out, "weft_draft_seconds_total", "counter", "In which a draft model guessed.");
    weft__strbuf_printf(out, "weft_draft_seconds_total %.6f\n", (double)e->draft_ns / 1e9);
}

static void put_memory(const weft_memory *m, weft__strbuf *out)
{
    const struct {
        const char *owner;
        const weft_held *held;
    } owners[] = {{"weights", &m->weights}, {"pages", &m->pages}, {"adapters", &m->adapters}, {"scratch", &m->scratch}};
    enum { N = sizeof owners / sizeof *owners };
    head(out, "weft_memory_bytes", "gauge", "Bytes held, by owner.");
    for (int i = 0; i < N; i++)
        weft__strbuf_printf(out, "weft_memory_bytes{owner=\"%s\"} %llu\n", owners[i].owner,
                            (unsigned long long)owners[i].held->bytes);
    head(out, "weft_memory_peak_bytes", "gauge", "The most that was held at a time, by owner.");
    for (int i = 0; i < N; i++)
        weft__strbuf_printf(out, "weft_memory_peak_bytes{owner=\"%s\"} %llu\n", owners[i].owner,
                            (unsigned long long)owners[i].held->peak);
}

static void put_http(weft_server *s, weft__strbuf *out)
{
    weft__http_counts c;
    weft__http_count(s->http, &c);
    counter(out, "weft_http_requests_total", "Requests whose first line was read.", c.n_requests_total);
    counter(out, "weft_http_connections_total", "Connections accepted.", c.n_connections_total);
    counter(out, "weft_http_refused_connections_total", "Connections beyond the limits.", c.n_refused_full);
    counter(out, "weft_http_cut_slow_total", "Answers cut off because their clients did not read them.", c.n_cut_slow);
    counter(out, "weft_http_gone_total", "Answers that their clients did not wait for.", c.n_gone);
    gauge(out, "weft_http_connections", "Connections open.", c.n_connections);
    gauge(out, "weft_http_requests", "Requests in progress.", c.n_requests);
    gauge(out, "weft_http_body_bytes", "Bytes of requests' bodies that are held.", (double)c.n_body_bytes);
    gauge(out, "weft_http_answer_bytes", "Bytes of whole answers that wait to be read.", (double)c.n_answer_bytes);
    uint64_t resident[WEFT__SERVER_RESIDENT_OWNERS];
    if (!weft__server_resident_look(&s->resident, c.n_body_bytes + c.n_answer_bytes, resident)) return;
    head(out, "weft_resident_bytes", "gauge", "Resident memory of the process, by owner; together all of it.");
    for (int i = 0; i < WEFT__SERVER_RESIDENT_OWNERS; i++)
        weft__strbuf_printf(out, "weft_resident_bytes{owner=\"%s\"} %llu\n", weft__server_resident_name(i),
                            (unsigned long long)resident[i]);
}

static void put_grammars(weft__server_model *m, weft__strbuf *out)
{
    weft__server_grammar_counts c;
    weft__server_grammar_cache_count(&m->grammar_cache, &c);
    counter(out, "weft_grammars_compiled_total", "Grammars and schemas compiled.", c.n_compiled);
    counter(out, "weft_grammars_found_total", "Requests whose grammar had been compiled before.", c.n_found);
    counter(out, "weft_grammars_dropped_total", "Compiled grammars let go for others.", c.n_dropped);
    gauge(out, "weft_grammars", "Compiled grammars that are kept.", (double)c.n);
    gauge(out, "weft_grammar_bytes", "Bytes of these, as of their latest use.", (double)c.n_bytes);
}

/* Names that dashboards for llama.cpp's server look for. */
static void put_llama(const weft__server_metrics *m, const weft_engine_stats *e, weft__strbuf *out)
{
    double prompt_s = (double)m->prompt_us / 1e6, generate_s = (double)m->generate_us / 1e6;
    uint64_t fresh = m->fresh_tokens, guesses = 0;
    for (int d = 0; d < WEFT_DRAFTERS; d++) guesses += e->drafts[d].n_tokens;
    counter(out, "llamacpp:prompt_tokens_total", "Number of prompt tokens processed.", fresh);
    seconds(out, "llamacpp:prompt_seconds_total", "Prompt process time.", prompt_s);
    counter(out, "llamacpp:tokens_predicted_total", "Number of generation tokens processed.", m->generated_tokens);
    seconds(out, "llamacpp:tokens_predicted_seconds_total", "Predict process time.", generate_s);
    counter(out, "llamacpp:n_decode_total", "Number of steps.", e->n_steps);
    counter(out, "llamacpp:n_tokens_max", "Largest number of tokens of a request.", m->most_tokens);
    gauge(out, "llamacpp:n_busy_slots_per_decode", "Average number of requests that generate in a step.",
          e->n_steps ? (double)(e->n_rows_decode - guesses) / (double)e->n_steps : 0);
    gauge(out, "llamacpp:prompt_tokens_seconds", "Average prompt throughput in tokens/s.",
          prompt_s > 0 ? (double)fresh / prompt_s : 0);
    gauge(out, "llamacpp:predicted_tokens_seconds", "Average generation throughput in tokens/s.",
          generate_s > 0 ? (double)m->generated_tokens / generate_s : 0);
    gauge(out, "llamacpp:requests_processing", "Number of requests processing.", e->n_running);
    gauge(out, "llamacpp:requests_deferred", "Number of requests deferred.", e->n_waiting);
}

/* ---- of several models ---- */

static void put_model(weft__server_model *m, weft__strbuf *out)
{
    weft_engine_stats e;
    weft__server_models_stats(m, &e);
    put_requests(&m->metrics, out);
    put_engine(&e, out);
    put_drafts(&e, out);
    put_draft_time(&e, out);
    gauge(out, "weft_chunk_rows", "Rows of prompts that a step may have beside requests that generate.", e.chunk);
    put_memory(&e.memory, out);
}

static void put_model_llama(weft__server_model *m, weft__strbuf *out)
{
    weft_engine_stats e;
    weft__server_models_stats(m, &e);
    put_llama(&m->metrics, &e, out);
}

/* The text of a label's value. */
static void put_label(weft__strbuf *out, const char *value)
{
    for (const char *c = value; *c; c++) {
        if (*c == '\\' || *c == '"') weft__strbuf_putc(out, '\\');
        weft__strbuf_putc(out, *c == '\n' ? ' ' : *c);
    }
}

/* One line of a metric, up to its end, with the label `model` before all others. */
static void put_labelled(weft__strbuf *out, const char *line, size_t n, const char *model)
{
    const size_t name = strcspn(line, "{ ");
    weft__strbuf_put(out, line, name);
    weft__strbuf_puts(out, "{model=\"");
    put_label(out, model);
    weft__strbuf_puts(out, line[name] == '{' ? "\"," : "\"}");
    weft__strbuf_put(out, line + name + (line[name] == '{'), n - name - (line[name] == '{'));
}

/* What each has said, metric by metric: all have the same ones, in the same order, each with its two lines of heads. */
static void interleave(weft__server_model *const *models, const weft__strbuf *said, const char **at, int n,
                       weft__strbuf *out)
{
    for (int i = 0; i < n; i++) {
        out->failed |= said[i].failed;
        at[i] = said[i].data;
    }
    if (out->failed || !at[0]) return;
    while (*at[0]) {
        for (int i = 0; i < n; i++) {
            for (int heads = 0; *at[i]; heads++) {
                const char *end = strchr(at[i], '\n');
                if (*at[i] == '#' && heads >= 2) break;
                if (*at[i] != '#') put_labelled(out, at[i], (size_t)(end + 1 - at[i]), models[i]->name);
                else if (!i) weft__strbuf_put(out, at[i], (size_t)(end + 1 - at[i]));
                at[i] = end + 1;
            }
        }
    }
}

/* What `put` says of each model that ever was there; names as they are where the server has one model. */
static void put_models(weft_server *s, weft__strbuf *out, void (*put)(weft__server_model *m, weft__strbuf *out))
{
    weft__server_models *all = &s->models;
    weft__server_model **models = weft__alloc_array(all->n, sizeof *models);
    weft__strbuf *said = weft__alloc_zero(all->n, sizeof *said);
    const char **at = weft__alloc_array(all->n, sizeof *at);
    int n = 0;
    if (!models || !said || !at) out->failed = 1;
    pthread_mutex_lock(&all->lock);
    for (size_t i = 0; i < all->n && !out->failed; i++) {
        weft__server_model *m = all->items[i];
        if (!m->n_loads && all->n > 1) continue;
        put(m, all->n > 1 ? &said[n] : out);
        if (all->n > 1) models[n++] = m;
    }
    pthread_mutex_unlock(&all->lock);
    if (n) interleave(models, said, at, n, out);
    for (int i = 0; i < n; i++) weft__strbuf_free(&said[i]);
    weft__free(at);
    weft__free(said);
    weft__free(models);
}

static void put_of_model(weft__strbuf *out, const char *name, const weft__server_model *m, double value)
{
    weft__strbuf_printf(out, "%s{model=\"", name);
    put_label(out, m->name);
    weft__strbuf_printf(out, "\"} %.12g\n", value);
}

static void put_states(weft_server *s, weft__strbuf *out)
{
    weft__server_models *all = &s->models;
    pthread_mutex_lock(&all->lock);
    gauge(out, "weft_memory_limit_bytes", "What models, pages and adapters may take together; 0: no limit.",
          (double)all->memory);
    gauge(out, "weft_memory_reserved_bytes", "What those that are there may take of it.",
          (double)weft__server_room_used(s, NULL));
    gauge(out, "weft_models_waiting", "Requests that wait for their model to be loaded.", all->n_waiting);
    head(out, "weft_model_loaded", "gauge", "1: the model is there.");
    for (size_t i = 0; i < all->n; i++)
        put_of_model(out, "weft_model_loaded", all->items[i], all->items[i]->state == WEFT__SERVER_LOADED);
    head(out, "weft_model_loads_total", "counter", "Times that it was loaded.");
    for (size_t i = 0; i < all->n; i++)
        put_of_model(out, "weft_model_loads_total", all->items[i], (double)all->items[i]->n_loads);
    head(out, "weft_model_unloads_total", "counter", "Times that it was unloaded.");
    for (size_t i = 0; i < all->n; i++)
        put_of_model(out, "weft_model_unloads_total", all->items[i], (double)all->items[i]->n_unloads);
    head(out, "weft_model_load_seconds", "gauge", "How long its last loading took, from its turn on.");
    for (size_t i = 0; i < all->n; i++)
        put_of_model(out, "weft_model_load_seconds", all->items[i], (double)all->items[i]->load_ms / 1000);
    pthread_mutex_unlock(&all->lock);
}

void weft__server_metrics_write(weft_server *s, const weft__server_caller *who, weft__strbuf *out)
{
    if (s->models.are_several) put_states(s, out);
    put_models(s, out, put_model);
    put_http(s, out);
    put_models(s, out, put_grammars);
    put_responses(&s->answered, out);
    put_models(s, out, put_stages);
    uint64_t n_sent, n_dropped;
    weft__server_traces_count(s->traces, &n_sent, &n_dropped);
    counter(out, "weft_traces_sent_total", "Requests whose spans a collector took.", n_sent);
    counter(out, "weft_traces_dropped_total", "Requests whose spans were dropped: it did not, or not in time.",
            n_dropped);
    weft__server_learn_metrics(s, out);
    counter(out, "weft_log_lines_lost_total", "Lines of the request log that could not be written.",
            weft__server_log_lost(s));
    gauge(out, "weft_memory_blocks",
          "Blocks of memory in use; at rest, after more and more requests, as many as before.",
          (double)weft__alloc_live());
    weft__server_router_put_metrics(s, out);
    weft__server_memories_put_metrics(s, out);
    weft__server_usage_write(&s->usage, who->is_admin ? "" : who->label, out);
    if (who->is_admin && who->rules)
        weft__server_accounts_write(&s->limits, who->rules->accounts, who->rules->n_accounts, out);
    put_models(s, out, put_model_llama);
}
