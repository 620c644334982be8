// SPDX-License-Identifier: Apache-2.0
/* chat.c: a conversation with the model's own template: a line from stdin, an answer to stdout.  Usage: chat MODEL
 *
 * The whole conversation is rendered each time; of what the session holds, as much is kept as the new text begins
 * with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { MAX_TOKENS = 4096, MAX_JSON = 1 << 16, MAX_LINE = 1024, ANSWER = 200 };

static char answer[MAX_JSON / 4];
static int32_t held[MAX_TOKENS]; /* what the session was given */
static size_t n_answer, n_held;

static void check(weft_status status, const weft_error *err)
{
    if (!status) return;
    fprintf(stderr, "chat: %s\n", err->message);
    exit(1);
}

/* Appends {"role": role, "content": text} to the array of messages in json. */
static void add_message(char *json, const char *role, const char *text)
{
    size_t n = strlen(json) - 1; /* over the closing bracket */
    n += (size_t)snprintf(json + n, MAX_JSON - n, "%s{\"role\":\"%s\",\"content\":\"", n > 1 ? "," : "", role);
    for (const unsigned char *s = (const unsigned char *)text; *s && n < MAX_JSON - 16; s++)
        n += (size_t)snprintf(json + n, MAX_JSON - n, *s < 0x20 || *s == '"' || *s == '\\' ? "\\u%04x" : "%c", *s);
    snprintf(json + n, MAX_JSON - n, "\"}]");
}

/* A token of the answer, and the text that became certain with it. */
static int on_piece(void *arg, const weft_generated *piece)
{
    (void)arg;
    if (n_answer + piece->length >= sizeof answer || n_held == MAX_TOKENS) return 1; /* enough */
    memcpy(answer + n_answer, piece->text, piece->length);
    n_answer += piece->length;
    if (piece->token >= 0) held[n_held++] = piece->token;
    fwrite(piece->text, 1, piece->length, stdout);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    static char json[MAX_JSON] = "[]", line[MAX_LINE];
    static int32_t tokens[MAX_TOKENS];
    if (argc != 2) return fprintf(stderr, "usage: chat MODEL\n"), 2;
    weft_error err = {0};
    weft_model *model = NULL;
    weft_chat *chat = NULL;
    weft_session *session = NULL;
    weft_sampler *sampler = NULL;
    weft_sampler_params how;
    weft_generate_params p;
    weft_sampler_params_default(&how);
    weft_generate_params_default(&p);
    how.temperature = 0;
    p.max_tokens = ANSWER, p.callback = on_piece;
    check(weft_model_open(argv[1], NULL, &model, &err), &err);
    check(weft_chat_open(model, NULL, 0, &chat, &err), &err);
    check(weft_session_new(model, NULL, &session, &err), &err);
    while (fgets(line, sizeof line, stdin)) {
        weft_chat_prompt *prompt = NULL;
        size_t n, same = 0;
        line[strcspn(line, "\n")] = 0;
        add_message(json, "user", line);
        check(weft_chat_render(chat, json, NULL, NULL, 1, &prompt, &err), &err);
        check(weft_chat_prompt_tokenize(prompt, 0, tokens, MAX_TOKENS, &n, &err), &err);
        weft_chat_prompt_free(&prompt);
        while (same + 1 < n && same < (size_t)weft_session_n_tokens(session) && tokens[same] == held[same]) same++;
        same = (size_t)weft_session_trim(session, (int32_t)same);
        memcpy(held, tokens, n * sizeof *held);
        n_held = n, n_answer = 0;
        p.tokens = tokens + same, p.n_tokens = (int32_t)(n - same);
        check(weft_sampler_for(model, &how, &sampler, &err), &err);
        check(weft_generate(session, sampler, &p, NULL, &err), &err);
        weft_sampler_free(&sampler);
        answer[n_answer] = 0;
        putchar('\n');
        add_message(json, "assistant", answer);
    }
    weft_session_free(&session);
    weft_chat_close(&chat);
    weft_model_close(&model);
    return 0;
}
