/* chat.c: a conversation with the model's own template: a line from stdin, an answer to stdout.  Usage: chat MODEL
 *
 * The whole conversation is rendered each time; of what the session holds, as much is kept as the new text begins with. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weft/weft.h>

enum { MAX_TOKENS = 4096, MAX_JSON = 1 << 16, MAX_LINE = 1024, ANSWER = 200 };

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

int main(int argc, char **argv)
{
    static char json[MAX_JSON] = "[]", line[MAX_LINE], answer[MAX_JSON / 4];
    static int32_t tokens[MAX_TOKENS], held[MAX_TOKENS];
    if (argc != 2) return fprintf(stderr, "usage: chat MODEL\n"), 2;
    weft_error err = {0};
    weft_model *model = NULL;
    weft_chat *chat = NULL;
    weft_session *session = NULL;
    weft_model_info info = {.size = sizeof info};
    weft_model_params mp;
    weft_session_params sp;
    weft_model_params_default(&mp);
    weft_session_params_default(&sp);
    check(weft_model_open(argv[1], &mp, &model, &err), &err);
    check(weft_model_describe(model, &info, &err), &err);
    check(weft_chat_open(model, NULL, 0, &chat, &err), &err);
    check(weft_session_new(model, &sp, &session, &err), &err);
    float *logits = malloc((size_t)info.n_vocab * sizeof *logits);
    const weft_tokenizer *tokenizer = weft_model_tokenizer(model);
    while (logits && fgets(line, sizeof line, stdin)) {
        weft_chat_prompt *prompt = NULL;
        weft_detok *detok = NULL;
        weft_sampler *sampler = NULL;
        weft_sampler_params how;
        size_t n, same = 0, length, n_answer = 0;
        const char *text;
        line[strcspn(line, "\n")] = 0;
        add_message(json, "user", line);
        check(weft_chat_render(chat, json, NULL, NULL, 1, &prompt, &err), &err);
        check(weft_chat_prompt_tokenize(prompt, 0, tokens, MAX_TOKENS, &n, &err), &err);
        while (same + 1 < n && same < (size_t)weft_session_n_tokens(session) && tokens[same] == held[same]) same++;
        same = (size_t)weft_session_trim(session, (int32_t)same);
        check(weft_session_eval(session, tokens + same, (int32_t)(n - same), 0, logits, &err), &err);
        memcpy(held, tokens, n * sizeof *held);
        weft_sampler_params_default(&how);
        how.temperature = 0;
        check(weft_sampler_for(model, &how, &sampler, &err), &err);
        check(weft_detok_new(tokenizer, WEFT_DETOK_CONTINUE, &detok, &err), &err);
        for (int i = 0; i < ANSWER && n < MAX_TOKENS; i++) {
            int32_t token;
            check(weft_sampler_pick(sampler, logits, &token, &err), &err);
            if (weft_token_is_end(tokenizer, token)) break;
            check(weft_detok_push(detok, token, &text, &length, &err), &err);
            if (n_answer + length >= sizeof answer) break;
            memcpy(answer + n_answer, text, length);
            n_answer += length;
            fwrite(text, 1, length, stdout);
            fflush(stdout);
            check(weft_session_eval(session, &token, 1, 0, logits, &err), &err);
            held[n++] = token;
        }
        answer[n_answer] = 0;
        putchar('\n');
        add_message(json, "assistant", answer);
        weft_detok_free(&detok);
        weft_sampler_free(&sampler);
        weft_chat_prompt_free(&prompt);
    }
    free(logits);
    weft_session_free(&session);
    weft_chat_close(&chat);
    weft_model_close(&model);
    return 0;
}
