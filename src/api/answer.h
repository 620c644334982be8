// SPDX-License-Identifier: Apache-2.0
/* answer.h: what an answer is made of, and the writers that make the dialects' JSON of it.
 *
 * The server fills answer and choices and owns all that they point to; writers only read, and neither wait, lock nor
 * call the engine. One thread per answer at a time. Where memory runs out, a writer sets out->failed. */
#ifndef WEFT_API_ANSWER_H
#define WEFT_API_ANSWER_H

#include "api/fields.h"
#include "api/message.h"
#include "api/prompts.h"

/* A token of the answer (or of an echoed prompt), kept for log-probabilities and ids. */
typedef struct weft__api_entry {
    int32_t token;
    float logprob; /* NAN: none */
    int32_t n_top;
    size_t first_top;  /* in the choice's tops */
    size_t begin, end; /* bytes of the answer's text before and with it */
} weft__api_entry;

/* One of the answers to a request. */
typedef struct weft__api_choice {
    const struct weft__api_answer *answer;
    int32_t index, slot; /* slot -1: none */
    const weft__api_prompt *prompt;
    struct weft__stop *stop;
    weft__strbuf text;         /* all that is certain, as the model wrote it */
    size_t shown;              /* bytes of text that a stream's writer was given */
    weft__api_message *parsed; /* of a chat whose answers are parsed: what text is made of; NULL: it is the content */
    weft__api_entry *entries, *prompt_entries;
    size_t n_entries, n_shown, n_prompt_entries; /* n_shown: entries that a stream's writer was given */
    weft_token_prob *tops;
    float *embedding; /* [n_embedding] */
    int32_t n_embedding;
    weft_finish finish;
    weft_status status; /* WEFT_OK, or why it failed; `message` says more */
    char message[256];
    int32_t n_cached, n_generated; /* tokens: of the prompt; of the answer */
    int32_t n_dropped;             /* tokens that were left out as the context was full */
    /* Guessed ahead and tried, known when it has ended, and those of them that the answer went on with; the same of
     * what its request predicted. */
    int32_t n_drafted, n_accepted, n_predicted, n_predicted_accepted;
    double prompt_ms, generate_ms;
    uint64_t seed;
    /* of several that were made the best is told: is_left_out, the others; of that one how many there were, how many
     * said the same, and log-probabilities (src/quality) */
    int is_left_out, n_candidates, n_votes;
    double mean_logprob, lowest_logprob;
    int verified, n_attempts; /* 1: it passed; -1: it failed; 0: nobody looked */
    int64_t n_spent;          /* tokens of attempts before */
} weft__api_choice;

/* All of a request's. */
typedef struct weft__api_answer {
    const weft_tokenizer *tokenizer;
    const weft__api_params *params;
    weft__api_choice *choices; /* [n_choices]: for each prompt params->n */
    int n_choices;
    char id[48], model[160];
    int64_t created;         /* seconds since 1970 */
    int several;             /* prompts were given as an array */
    const int64_t *memories; /* [n_memories], ids of those in its prompt */
    int32_t n_memories;
} weft__api_answer;

/* How a dialect answers. */
typedef struct weft__api_writer {
    /* New text and entries of a stream: choice->text from choice->shown on, or where there is a message its pieces;
     * entries from n_shown up to n_entries. */
    void (*delta)(const weft__api_choice *c, size_t n_text, size_t n_entries, weft__strbuf *out);
    void (*choice_end)(const weft__api_choice *c, weft__strbuf *out);   /* of a stream */
    void (*stream_begin)(const weft__api_choice *c, weft__strbuf *out); /* before a choice's first delta; or NULL */
    void (*stream_end)(const weft__api_answer *a, weft__strbuf *out);
    void (*whole)(const weft__api_answer *a, weft__strbuf *out);
} weft__api_writer;

/* Those of embeddings have only `whole`. openai_chat.c: */
extern const weft__api_writer weft__api_write_chat;
/* openai.c: */
extern const weft__api_writer weft__api_write_completions, weft__api_write_openai_embeddings;
/* llama.c: */
extern const weft__api_writer weft__api_write_completion, weft__api_write_embedding;

/* A choice's entries that the answer shows: without those of the stop string. */
size_t weft__api_entries_shown(const weft__api_choice *c);
/* A JSON array of v[0..n); null where one is not finite. */
void weft__api_put_floats(weft__strbuf *out, const float *v, int32_t n);

#endif
