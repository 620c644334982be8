// SPDX-License-Identifier: Apache-2.0
/* objects.c: what a server has and says of itself, in the JSON of each dialect (objects.h). Field names of llama.cpp:
 * its tools/server/README.md; of OpenAI: its API reference; of vLLM: its documentation of LoRA adapters. */
#include "api/objects.h"

#include <string.h>

#include "base/json.h"
#include "sample/defaults.h"

static void put_string(weft__strbuf *out, const char *text)
{
    weft__json_write_string(out, text, strlen(text));
}

/* A comma, where this object is not the first of a list. */
static void begin_object(weft__strbuf *out)
{
    weft__strbuf_puts(out, out->len && out->data[out->len - 1] == '}' ? ",{" : "{");
}

static const char *truth(int value)
{
    return value ? "true" : "false";
}

/* ---- OpenAI's ---- */

void weft__api_put_models_begin(weft__strbuf *out)
{
    weft__strbuf_puts(out, "{\"object\":\"list\",\"data\":[");
}

void weft__api_put_models_end(weft__strbuf *out)
{
    weft__strbuf_puts(out, "]}");
}

/* What all entries of models begin with; it stays open. */
static void begin_model(weft__strbuf *out, const char *id, int64_t created)
{
    begin_object(out);
    weft__strbuf_puts(out, "\"id\":");
    put_string(out, id);
    weft__strbuf_printf(out, ",\"object\":\"model\",\"created\":%lld,\"owned_by\":\"weft\"", (long long)created);
}

static void put_aliases(weft__strbuf *out, const char *id, const char *const *aliases)
{
    const char *before = ",\"aliases\":[";
    int n = 0;
    for (; aliases && *aliases; aliases++) {
        if (!strcmp(*aliases, "*") || !strcmp(*aliases, id)) continue;
        weft__strbuf_puts(out, n++ ? "," : before);
        put_string(out, *aliases);
    }
    if (n) weft__strbuf_putc(out, ']');
}

static void put_meta(weft__strbuf *out, int32_t n_vocab, int32_t n_ctx, const weft_model_info *info)
{
    weft__strbuf_printf(out,
                        ",\"meta\":{\"n_vocab\":%d,\"n_ctx\":%d,\"n_ctx_train\":%d,\"n_embd\":%d,"
                        "\"n_params\":%llu,\"size\":%llu}",
                        n_vocab, n_ctx, info->n_ctx_train, info->d_model, (unsigned long long)info->n_params,
                        (unsigned long long)info->n_bytes);
}

void weft__api_put_model(weft__strbuf *out, const char *id, const char *const *aliases, int64_t created,
                         int32_t n_vocab, int32_t n_ctx, const weft_model_info *info)
{
    begin_model(out, id, created);
    put_aliases(out, id, aliases);
    put_meta(out, n_vocab, n_ctx, info);
    weft__strbuf_putc(out, '}');
}

void weft__api_put_model_state(weft__strbuf *out, const char *id, const char *const *aliases, int64_t created,
                               int32_t n_vocab, int32_t n_ctx, const weft_model_info *info,
                               const weft__api_model_state *state)
{
    begin_model(out, id, created);
    put_aliases(out, id, aliases);
    weft__strbuf_puts(out, ",\"status\":{\"value\":");
    put_string(out, state->value);
    if (!strcmp(state->value, "loading")) weft__strbuf_printf(out, ",\"progress\":%.3f", state->progress);
    if (state->fault) {
        weft__strbuf_puts(out, ",\"failed\":true,\"message\":");
        put_string(out, state->fault);
    }
    weft__strbuf_puts(out, "}");
    if (state->path) {
        weft__strbuf_puts(out, ",\"path\":");
        put_string(out, state->path);
    }
    if (state->is_pinned) weft__strbuf_puts(out, ",\"pinned\":true");
    if (state->n_bytes) weft__strbuf_printf(out, ",\"memory\":%llu", (unsigned long long)state->n_bytes);
    if (info) put_meta(out, n_vocab, n_ctx, info);
    weft__strbuf_puts(out, "}");
}

/* What is asked for by a name of its own, and answered by another model. */
static void begin_child(weft__strbuf *out, const char *id, const char *parent, int64_t created)
{
    begin_model(out, id, created);
    weft__strbuf_puts(out, ",\"parent\":");
    put_string(out, parent);
}

void weft__api_put_adapter_model(weft__strbuf *out, const char *id, const char *parent, int64_t created,
                                 const weft_engine_adapter *a)
{
    begin_child(out, id, parent, created);
    weft__strbuf_printf(out, ",\"meta\":{\"adapter_id\":%d,\"version\":%d,\"scale\":%.9g}}", a->index, a->version,
                        (double)a->scale);
}

void weft__api_put_learned_model(weft__strbuf *out, const char *id, const char *parent, int64_t created,
                                 int64_t version, const char *content)
{
    begin_child(out, id, parent, created);
    weft__strbuf_printf(out, ",\"learned\":true,\"version\":%lld,\"content\":", (long long)version);
    put_string(out, content);
    weft__strbuf_putc(out, '}');
}

void weft__api_put_preset_model(weft__strbuf *out, const char *id, const char *parent, int64_t created)
{
    begin_child(out, id, parent, created);
    weft__strbuf_puts(out, ",\"meta\":{\"preset\":true}}");
}

/* ---- llama.cpp's ---- */

static void put_piece(weft__strbuf *out, const char *bytes, size_t n)
{
    if (weft__utf8_valid(bytes, n)) {
        weft__json_write_string(out, bytes, n);
        return;
    }
    weft__strbuf_putc(out, '[');
    for (size_t i = 0; i < n; i++) weft__strbuf_printf(out, "%s%d", i ? "," : "", (unsigned char)bytes[i]);
    weft__strbuf_putc(out, ']');
}

void weft__api_put_tokens(weft__strbuf *out, const weft_tokenizer *tokenizer, const weft__api_prompts *prompts,
                          int with_pieces)
{
    const char *comma = "";
    begin_object(out);
    weft__strbuf_puts(out, "\"tokens\":[");
    for (size_t i = 0; i < prompts->n; i++)
        for (int32_t k = 0; k < prompts->items[i].n; k++, comma = ",") {
            int32_t id = prompts->items[i].ids[k];
            size_t n;
            const char *bytes = weft_token_bytes(tokenizer, id, &n);
            weft__strbuf_printf(out, with_pieces ? "%s{\"id\":%d,\"piece\":" : "%s%d", comma, id);
            if (!with_pieces) continue;
            put_piece(out, bytes ? bytes : "", bytes ? n : 0);
            weft__strbuf_putc(out, '}');
        }
    weft__strbuf_puts(out, "]}");
}

void weft__api_put_detokenized(weft__strbuf *out, const char *text, size_t n)
{
    begin_object(out);
    weft__strbuf_puts(out, "\"content\":");
    weft__json_write_string(out, text, n);
    weft__strbuf_puts(out, ",\"prompt\":");
    weft__json_write_string(out, text, n);
    weft__strbuf_putc(out, '}');
}

static void put_string_or_null(weft__strbuf *out, const char *key, const char *s)
{
    weft__strbuf_printf(out, ",\"%s\":", key);
    if (*s) weft__json_write_string(out, s, strlen(s));
    else weft__strbuf_puts(out, "null");
}

void weft__api_put_tokenizer_info(weft__strbuf *out, const char *bos, const char *eos, const char *chat_template)
{
    begin_object(out);
    weft__strbuf_puts(out, "\"tokenizer_class\":\"weft\"");
    put_string_or_null(out, "bos_token", bos);
    put_string_or_null(out, "eos_token", eos);
    put_string_or_null(out, "chat_template", chat_template);
    weft__strbuf_putc(out, '}');
}

void weft__api_put_text(weft__strbuf *out, const char *key, const char *text, size_t n)
{
    begin_object(out);
    weft__strbuf_printf(out, "\"%s\":", key);
    weft__json_write_string(out, text, n);
    weft__strbuf_putc(out, '}');
}

void weft__api_put_ok(weft__strbuf *out)
{
    begin_object(out);
    weft__strbuf_puts(out, "\"status\":\"ok\"}");
}

void weft__api_put_success(weft__strbuf *out)
{
    begin_object(out);
    weft__strbuf_puts(out, "\"success\":true}");
}

#define SAYS(field, name) ",\"" field "\":" WEFT__SAMPLE_TEXT(name)

void weft__api_put_props(weft__strbuf *out, const weft__api_props *props)
{
    static const char sampling[] = SAYS("temperature", TEMPERATURE) SAYS("top_k", TOP_K) SAYS("top_p", TOP_P)
        SAYS("min_p", MIN_P) SAYS("repeat_last_n", PENALTY_LAST_N) SAYS("repeat_penalty", REPEAT_PENALTY)
            SAYS("presence_penalty", PRESENCE_PENALTY) SAYS("frequency_penalty", FREQUENCY_PENALTY);
    begin_object(out);
    weft__strbuf_printf(out,
                        "\"default_generation_settings\":{\"id\":0,\"n_ctx\":%d,\"params\":{\"n_predict\":-1%s,"
                        "\"stream\":true,\"n_probs\":0}},\"total_slots\":%d,\"model_alias\":",
                        props->n_ctx, sampling, props->n_slots);
    put_string(out, props->alias);
    weft__strbuf_puts(out, ",\"model_path\":");
    put_string(out, props->path);
    weft__strbuf_puts(out, ",\"modalities\":{\"vision\":false,\"audio\":false},\"chat_template\":");
    put_string(out, props->chat_template);
    weft__strbuf_puts(out, ",\"bos_token\":");
    put_string(out, props->bos);
    weft__strbuf_puts(out, ",\"eos_token\":");
    put_string(out, props->eos);
    weft__strbuf_printf(out, ",\"learns\":{\"feedback\":%s,\"memories\":%s},\"build_info\":\"weft-%s\"}",
                        truth(props->takes_feedback), truth(props->has_memories), weft_version());
}

void weft__api_put_slot(weft__strbuf *out, const weft__api_slot *slot)
{
    begin_object(out);
    weft__strbuf_printf(out, "\"id\":%d,", slot->id);
    if (!slot->hidden) weft__strbuf_printf(out, "\"id_task\":%llu,", (unsigned long long)slot->task);
    weft__strbuf_printf(out, "\"n_ctx\":%d,\"speculative\":%s,\"is_processing\":%s", slot->n_ctx, truth(slot->guesses),
                        truth(slot->busy));
    if (!slot->hidden)
        weft__strbuf_printf(out,
                            ",\"n_prompt_tokens\":%d,\"n_tokens\":%d,"
                            "\"next_token\":[{\"has_next_token\":%s,\"n_remain\":%d,\"n_decoded\":%d}],"
                            "\"swaps\":{\"n\":%d,\"bytes\":%llu,\"ms\":%.3f}",
                            slot->n_prompt, slot->n_tokens, truth(slot->busy), slot->n_remain, slot->n_decoded,
                            slot->n_swaps, (unsigned long long)slot->swap_bytes, slot->swap_ms);
    if (!slot->hidden && slot->kv_type) weft__strbuf_printf(out, ",\"kv_type\":\"%s\"", slot->kv_type);
    weft__strbuf_putc(out, '}');
}

static void put_slot_and_file(weft__strbuf *out, int32_t id, const char *filename)
{
    begin_object(out);
    weft__strbuf_printf(out, "\"id_slot\":%d,", id);
    if (!filename) return;
    weft__strbuf_puts(out, "\"filename\":");
    put_string(out, filename);
    weft__strbuf_putc(out, ',');
}

void weft__api_put_slot_saved(weft__strbuf *out, int32_t id, const char *filename, int32_t n, uint64_t n_bytes,
                              double ms)
{
    put_slot_and_file(out, id, filename);
    weft__strbuf_printf(out, "\"n_saved\":%d,\"n_written\":%llu,\"timings\":{\"save_ms\":%.3f}}", n,
                        (unsigned long long)n_bytes, ms);
}

void weft__api_put_slot_restored(weft__strbuf *out, int32_t id, const char *filename, int32_t n, uint64_t n_bytes,
                                 double ms)
{
    put_slot_and_file(out, id, filename);
    weft__strbuf_printf(out, "\"n_restored\":%d,\"n_read\":%llu,\"timings\":{\"restore_ms\":%.3f}}", n,
                        (unsigned long long)n_bytes, ms);
}

void weft__api_put_slot_erased(weft__strbuf *out, int32_t id, const char *filename, int32_t n)
{
    put_slot_and_file(out, id, filename);
    weft__strbuf_printf(out, "\"n_erased\":%d}", n);
}

void weft__api_put_adapter(weft__strbuf *out, const weft__api_adapter *a)
{
    begin_object(out);
    weft__strbuf_printf(out, "\"id\":%d,\"name\":", a->adapter->index);
    put_string(out, a->name);
    weft__strbuf_puts(out, ",\"path\":");
    put_string(out, a->path);
    weft__strbuf_printf(out, ",\"scale\":%.9g,\"version\":%d,", (double)a->scale, a->adapter->version);
    if (!a->hides_requests) weft__strbuf_printf(out, "\"requests\":%d,", a->adapter->n_requests);
    weft__strbuf_printf(out, "\"published\":%s,\"bytes\":%llu}", truth(a->published),
                        (unsigned long long)a->adapter->n_bytes);
}

/* ---- vLLM's ---- */

void weft__api_put_adapter_loaded(weft__strbuf *out, const char *name, const weft_engine_adapter *a)
{
    begin_object(out);
    weft__strbuf_puts(out, "\"status\":\"ok\"");
    if (a) {
        weft__strbuf_printf(out, ",\"id\":%d,\"name\":", a->index);
        put_string(out, name);
        weft__strbuf_printf(out, ",\"version\":%d", a->version);
    }
    weft__strbuf_putc(out, '}');
}
