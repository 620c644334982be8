/* server_fields.c: every kind of request, without memory at each moment. */
#include "unit/fixture.h"

#include "server/fields.h"

static const struct {
    const weft__form *form;
    const char *body;
} REQUESTS[] = {
    {&weft__form_chat, "{\"messages\":[{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}],\"name\":\"b\"}],\"logit_bias\":{\"3\":1},\"stop\":[\"a\"]}"},
    {&weft__form_completions, "{\"prompt\":[[1,2],[3]],\"echo\":true}"},
    {&weft__form_completion, "{\"prompt\":\"x\",\"logit_bias\":[[1,2],[\"a\",false]],\"unknown\":{}}"},
    {&weft__form_embeddings, "{\"input\":\"x\",\"encoding_format\":\"base64\"}"},
    {&weft__form_slot, "{\"filename\":\"x\"}"},
};

static int body(void *arg)
{
    size_t i = *(size_t *)arg;
    weft__ask ask;
    weft__fault fault;
    int ok = weft__ask_parse(REQUESTS[i].form, 300, REQUESTS[i].body, strlen(REQUESTS[i].body), &ask, &fault);
    if (!ok) assert_int_equal(fault.status, 503);
    weft__ask_free(&ask);
    return ok;
}

static void without_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof REQUESTS / sizeof *REQUESTS; i++) assert_true(fail_each(body, &i) >= 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(without_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
