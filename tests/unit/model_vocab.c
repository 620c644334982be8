// SPDX-License-Identifier: Apache-2.0
/* model_vocab.c: whatever a tokenizer.json says, the tokenizer of the GGUF file that is made of it is the same, a copy
 * of that file's too (model_vocab_keys.c has what is refused). */
#include "unit/vocab_files.h"

static const file_case cases[] = {
    /* Which piece gets a mark before it. */
    {SPM, INST, PRE(METASPACE("first", "")), FALLBACK, NULL, NULL, "[INST] Hi[/INST]", {271, 264, 272, -1}, 0},
    {SPM, INST, PRE(METASPACE("first", "")), FALLBACK, NULL, NULL, "Hi[INST]Hi", {264, 271, 265, -1}, 0},
    {SPM, INST, PRE(METASPACE("always", "")), FALLBACK, NULL, NULL, "Hi[INST]Hi", {264, 271, 264, -1}, 0},
    {SPM,
     INST,
     PRE(METASPACE("never", ",\"split\":false")),
     FALLBACK,
     NULL,
     NULL,
     "Hi[INST] Hi",
     {265, 271, 264, -1},
     0},
    {SPM, INST, ESCAPED("") STRIP, FALLBACK, NULL, NULL, "[INST] Hi[/INST]", {271, 257, 264, 272, -1}, 0},
    /* Normalizers. */
    {SPM,
     INST,
     NORM("{\"type\":\"NFC\"}") PRE(METASPACE("first", "")),
     FALLBACK,
     NULL,
     NULL,
     "e\xCC\x81",
     {257, 266, -1},
     0},
    {SPM, INST, ESCAPED("{\"type\":\"NFD\"},"), FALLBACK, NULL, NULL, "é", {257, 267, 270, -1}, 0},
    {SPM,
     "",
     ESCAPED("{\"type\":\"Strip\",\"strip_left\":true,\"strip_right\":false},"),
     FALLBACK,
     NULL,
     NULL,
     "  a ",
     {263, 257, -1},
     0},
    {SPM,
     TOKEN("271", "<TOOL>", ",\"normalized\":true"),
     NORM("{\"type\":\"Lowercase\"}") PRE(METASPACE("never", "")),
     FALLBACK,
     NULL,
     NULL,
     "A<Tool>b<TOOL>",
     {260, 271, 261, 271, -1},
     0},
    {SPM,
     "",
     NORM("{\"type\":\"Replace\",\"pattern\":{\"Regex\":\"[xy]+\"},\"content\":\"a\"}") PRE(METASPACE("never", "")),
     FALLBACK,
     NULL,
     NULL,
     "xyxb",
     {262, -1},
     0},
    {BYTE_LEVEL, "", NORM("{\"type\":\"NFC\"}") LIKE_QWEN, "[\"a\",\"b\"]", NULL, NULL, "e\xCC\x81", {195, 169, -1}, 0},
    {BYTE_LEVEL, "", LIKE_QWEN, "[\"a\",\"b\"]", NULL, NULL, "abab", {256, 256, -1}, 1},
    /* Added tokens: alone, in words, spelled with the mark, and those that the model makes otherwise. */
    {BYTE_LEVEL,
     TOKEN("258", "to", ",\"single_word\":true"),
     LIKE_QWEN,
     "[\"a\",\"b\"]",
     NULL,
     NULL,
     "to ato",
     {258, 32, 97, 116, 111, -1},
     1},
    {BYTE_LEVEL,
     TOKEN("260", "<s>", ",\"special\":true"),
     LIKE_QWEN,
     "[\"a\",\"b\"]",
     NULL,
     NULL,
     "a<s>",
     {97, 260, -1},
     1},
    {SPM,
     TOKEN("268", MARK MARK, ""),
     PRE(METASPACE("never", ",\"split\":false")),
     FALLBACK,
     NULL,
     NULL,
     "a  \xE2\x96\x81\xE2\x96\x81",
     {260, 268, 268, -1},
     0},
    {SPM,
     TOKEN("271", "x", ",\"single_word\":true"),
     PRE(METASPACE("never", "")),
     FALLBACK,
     NULL,
     NULL,
     "ax x",
     {0},
     0},
    /* How pieces that are tokens, bytes and unknown characters go. */
    {BYTE_LEVEL, "", LIKE_QWEN, "", NULL, NULL, "ab", {97, 98, -1}, 0},
    {SPM, "", PRE(METASPACE("never", "")), "", NULL, NULL, "xx", {256, 256, -1}, 0},
    {SPM, "", PRE(METASPACE("never", "")), FALLBACK "\"ignore_merges\":true,", NULL, NULL, "ab", {262, -1}, 0},
    /* What goes around a text, and roles. */
    {SPM,
     TOKEN("271", "<a>", ",\"special\":true") "," TOKEN("272", "<z>", ",\"special\":true"),
     PRE(METASPACE("never",
                   "")) ",\"post_processor\":{\"type\":\"BertProcessing\",\"cls\":[\"<a>\",271],\"sep\":[\"<z>\",272]}",
     FALLBACK,
     NULL,
     NULL,
     "a",
     {0},
     0},
    {SPM,
     INST,
     PRE(METASPACE("never", "")),
     FALLBACK,
     "{\"bos_token\":\"[INST]\",\"pad_token\":\"<p>\",\"chat_template\":[{\"name\":\"tool "
     "use\",\"template\":\"T\"},{\"name\":\"default\","
     "\"template\":\"D\"}]}",
     NULL,
     "<p>",
     {273, -1},
     0},
    /* A pre-tokenizer without a name in GGUF, and what may be given for it. */
    {BYTE_LEVEL, "", PRE(BYTES("true", "true")), "[\"a\",\"b\"]", NULL, "gpt-2", "ab", {32, 256, -1}, 0},
    {BYTE_LEVEL,
     "",
     PRE("{\"type\":\"Sequence\",\"pretokenizers\":[" BYTES("false", "true") ",{\"type\":\"Digits\"}]}"),
     "[\"a\",\"b\"]",
     NULL,
     "qwen2",
     "ab12",
     {256, 49, 50, -1},
     0},
    /* Unigram and WordPiece. */
    {WHOLE,
     "",
     "{\"normalizer\":{\"type\":\"NFKC\"},\"pre_tokenizer\":" METASPACE(
         "first", "") ",\"model\":{\"type\":\"Unigram\",\"unk_id\":0,"
                      "\"vocab\":[[\"<unk>\",0],[\"" MARK "\",-2],[\"a\",-3],[\"" MARK
                      "a\",-2.5],[\"f\",-4],[\"i\",-4]]}}",
     NULL,
     NULL,
     NULL,
     "a \xEF\xAC\x81",
     {3, 1, 4, 5, -1},
     0},
    {WHOLE,
     "",
     "{\"normalizer\":{\"type\":\"BertNormalizer\",\"lowercase\":false},\"pre_tokenizer\":{\"type\":"
     "\"BertPreTokenizer\"},\"model\":{"
     "\"type\":\"WordPiece\",\"max_input_chars_per_word\":4,\"vocab\":{\"[UNK]\":0,\"a\":1,\"##b\":2,\"A\":3,\"!\":4}}"
     "}",
     NULL,
     NULL,
     NULL,
     "abb A! abbbbb",
     {1, 2, 2, 3, 4, 0, -1},
     0},
};

static void expect(const weft__tok *tok, const char *whose, const char *text, const int32_t *want)
{
    weft__tok_ids ids = {0};
    assert_int_equal(weft__tok_encode(tok, text, strlen(text), WEFT__TOK_ENCODE_PARSE, &ids, NULL), WEFT_OK);
    for (size_t i = 0; want[i] >= 0 || i < ids.n; i++) {
        int32_t got = i < ids.n ? ids.data[i] : -1;
        if (got != want[i]) fail_msg("the %s, '%s': id %zu is %d, expected %d", whose, text, i, got, want[i]);
    }
    weft__tok_ids_free(&ids);
}

static void expect_same(const weft__tok *folder, const weft__tok *file)
{
    char what[160] = "";
    if (weft__vocab_same(folder, file, what, sizeof what) != 1) fail_msg("%s differs", what);
    for (int r = 0; r < WEFT__TOK_ROLE_COUNT; r++)
        assert_int_equal(weft__tok_id_of_role(folder, r), weft__tok_id_of_role(file, r));
    assert_int_equal(weft__tok_adds_bos(folder), weft__tok_adds_bos(file));
    for (int32_t i = 0; i < weft__tok_n(folder); i++) {
        weft__tok_slice a = weft__tok_piece_of(folder, i), b = weft__tok_piece_of(file, i);
        assert_int_equal(a.len, b.len);
        if (a.len) assert_memory_equal(a.data, b.data, a.len);
        assert_int_equal(weft__tok_type_of(folder, i), weft__tok_type_of(file, i));
    }
}

static void files_say_what_folders_say(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const file_case *c = &cases[i];
        weft__tok_json_vocab *v = read_case(c);
        weft__tok *folder, *file;
        memory_file f, again;
        weft__gguf_writer *w = new_keys();
        assert_int_equal(weft__tok_create(weft__tok_json_vocab_spec(v), &folder, NULL), WEFT_OK);
        make_file(&f, weft__tok_json_vocab_spec(v), c->pre);
        assert_int_equal(weft__gguf_put_all(w, f.g, NULL), WEFT_OK); /* as quantize copies them */
        open_file(&again, w);
        file = tokenizer_of(&again);
        if (c->ids[0]) expect(folder, "folder", c->text, c->ids);
        if (c->ids[0]) expect(file, "file", c->text, c->ids);
        expect_same(folder, file);
        if (c->usual) assert_false(has(&f, "tokenizer.weft.token_ids") || has(&f, "tokenizer.weft.ends"));
        if (has(&f, "tokenizer.weft.model") == c->usual)
            fail_msg("case %zu: the usual keys %s", i, c->usual ? "say all" : "do not");
        weft__tok_destroy(&file);
        weft__tok_destroy(&folder);
        close_file(&again);
        close_file(&f);
        weft__tok_json_vocab_free(&v);
        assert_int_equal(weft__alloc_live(), 0);
    }
}

/* GGUF has words for three. */
static void all_ends_are_kept(void **state)
{
    (void)state;
    static const int32_t ends[] = {260, 271, 272, 273, 274, 275};
    static const file_case c = {
        SPM,
        INST "," TOKEN("273", "<1>", ",\"special\":true") "," TOKEN("274", "<2>", ",\"special\":true") "," TOKEN(
            "275", "<3>", ",\"special\":true") "," TOKEN("276", "<4>", ",\"special\":true"),
        PRE(METASPACE("never", "")),
        FALLBACK,
        "{\"eos_token\":\"<1>\"}",
        NULL,
        NULL,
        {0},
        0};
    weft__tok_json_vocab *v = read_case(&c);
    weft__tok_spec spec = *weft__tok_json_vocab_spec(v);
    for (size_t n = 0; n <= sizeof ends / sizeof *ends; n++) {
        memory_file f;
        spec.ends = ends;
        spec.n_ends = n;
        make_file(&f, &spec, NULL);
        weft__tok *tok = tokenizer_of(&f);
        for (int32_t id = 0; id < weft__tok_n(tok); id++) {
            int end = id == 273;
            for (size_t i = 0; i < n; i++) end |= ends[i] == id;
            assert_int_equal(weft__tok_is_end(tok, id), end);
        }
        assert_int_equal(weft__tok_id_of_role(tok, WEFT__TOK_ROLE_EOT), -1); /* as in the folder */
        weft__tok_destroy(&tok);
        close_file(&f);
    }
    weft__tok_json_vocab_free(&v);
}

static void all_templates_are_kept(void **state)
{
    (void)state;
    static const file_case c = {
        SPM,
        "",
        PRE(METASPACE("never", "")),
        FALLBACK,
        "{\"chat_template\":[{\"name\":\"tool use\",\"template\":\"T\"},{\"name\":\"rag\",\"template\":\"R\"},"
        "{\"name\":\"default\",\"template\":\"D\"}]}",
        NULL,
        NULL,
        {0},
        0};
    weft__tok_json_vocab *v = read_case(&c);
    memory_file f;
    weft__gguf_str s;
    const weft__gguf_list *names;
    make_file(&f, weft__tok_json_vocab_spec(v), NULL);
    static const char *const kept[][2] = {{"tokenizer.chat_template", "D"},
                                          {"tokenizer.chat_template.tool_use", "T"},
                                          {"tokenizer.chat_template.rag", "R"}};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(weft__gguf_string(f.g, kept[i][0], &s, NULL), WEFT_OK);
        assert_int_equal(s.len, 1);
        assert_int_equal(*s.data, *kept[i][1]);
    }
    assert_int_equal(weft__gguf_array(f.g, "tokenizer.chat_templates", &names, NULL), WEFT_OK);
    assert_int_equal(names->n, 2);
    close_file(&f);
    weft__tok_json_vocab_free(&v);
}

/* ---- what differs is seen ---- */

static weft__tok *changed(const weft__tok_spec *spec)
{
    weft__tok *tok;
    weft_error err = {0};
    if (weft__tok_create(spec, &tok, &err)) fail_msg("%s", err.message);
    return tok;
}

/* Each change of a vocabulary shows as its kind, and those that texts show, in the texts that are tried. */
static void differences_are_seen(void **state)
{
    (void)state;
    static const file_case c = {SPM,
                                INST "," TOKEN("273", "<s>", ",\"special\":true"),
                                ESCAPED("") PRE(METASPACE("first", ",\"split\":false")),
                                FALLBACK,
                                "{\"eos_token\":\"<s>\",\"bos_token\":\"<s>\"}",
                                NULL,
                                NULL,
                                {0},
                                0};
    weft__tok_json_vocab *v = read_case(&c);
    const weft__tok_spec *spec = weft__tok_json_vocab_spec(v);
    const size_t n = spec->n_tokens;
    weft__tok *own = changed(spec);
    weft__tok_slice texts[300];
    int32_t types[300];
    uint8_t strips[300];
    const int32_t end = 260;
    memcpy(texts, spec->tokens, n * sizeof *texts);
    memcpy(types, spec->types, n * sizeof *types);
    memcpy(strips, spec->strips, n);
    texts[269] = WEFT__TOK_SLICE("u"); /* "t" */
    types[271] = WEFT__TOK_CONTROL;
    strips[272] |= WEFT__TOK_STRIP_RIGHT;
    for (int i = 0; i < 11; i++) {
        weft__tok_spec s = *spec;
        unsigned kind = 0;
        int shows = 1;
        char what[160] = "";
        if (i == 0) s.n_merges = 1, kind = WEFT__TOK_DIFFERS_MODEL;
        if (i == 1) s.n_norms = 0, kind = WEFT__TOK_DIFFERS_STEPS;
        if (i == 2) s.n_splits = 0, kind = WEFT__TOK_DIFFERS_STEPS, shows = 0; /* the normalizer did it before */
        if (i == 3) s.strip_leading = 1, kind = WEFT__TOK_DIFFERS_OPTIONS;
        if (i == 4) s.tokens = texts, kind = WEFT__TOK_DIFFERS_TEXTS;
        if (i == 5) s.types = types, kind = WEFT__TOK_DIFFERS_TYPES;
        if (i == 6) s.strips = strips, kind = WEFT__TOK_DIFFERS_ADDED;
        if (i == 7) s.pad = 260, kind = WEFT__TOK_DIFFERS_ROLES, shows = 0;
        if (i == 8) s.add_bos = 1, kind = WEFT__TOK_DIFFERS_AROUND;
        if (i == 9) s.ends = &end, s.n_ends = 1, kind = WEFT__TOK_DIFFERS_ENDS;
        if (i == 10) s.chat_template = WEFT__TOK_SLICE("x"), kind = WEFT__TOK_DIFFERS_TEMPLATE, shows = 0;
        weft__tok *other = changed(&s);
        if (!(weft__tok_compare(own, other) & kind)) fail_msg("change %d is not seen", i);
        if (weft__vocab_same(own, other, what, sizeof what) == shows)
            fail_msg("change %d: the texts say '%s'", i, what);
        if (shows && !*what) fail_msg("change %d has no words", i);
        weft__tok_destroy(&other);
    }
    assert_int_equal(weft__tok_compare(own, own), 0);
    weft__tok_destroy(&own);
    weft__tok_json_vocab_free(&v);
}

/* ---- memory ---- */

static int put_body(void *arg)
{
    weft__gguf_writer *w;
    weft_error err = {0};
    if (weft__gguf_writer_memory("keys", &w, &err)) return 0;
    weft_status status = weft__vocab_put(arg, ((const weft__tok_spec *)arg)->n_tokens, NULL, w, &err);
    weft__gguf_writer_destroy(&w);
    if (status && status != WEFT_NO_MEMORY) fail_msg("%d: %s", (int)status, err.message);
    return !status;
}

static void memory_may_run_out(void **state)
{
    (void)state;
    static const file_case c = {
        WHOLE,
        "",
        "{\"added_tokens\":[" TOKEN(
            "4", "X",
            ",\"normalized\":true") "],\"normalizer\":{\"type\":\"NFC\"},"
                                    "\"pre_tokenizer\":" METASPACE(
                                        "first",
                                        "") ",\"model\":{\"type\":\"BPE\",\"unk_token\":\"a\","
                                            "\"merges\":[[\"a\",\"b\"]],\"vocab\":{\"a\":0,\"b\":1,\"ab\":2,\"" MARK
                                            "\":3}}}",
        NULL,
        "{\"chat_template\":[{\"name\":\"n\",\"template\":\"T\"}]}",
        NULL,
        NULL,
        {0},
        0};
    weft__tok_json_vocab *v = read_case(&c);
    assert_true(fail_some(put_body, (void *)weft__tok_json_vocab_spec(v), CLAIMS_REPEATED(3, 1, 11)) > 200);
    weft__tok_json_vocab_free(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(files_say_what_folders_say), cmocka_unit_test(all_ends_are_kept),
        cmocka_unit_test(all_templates_are_kept),     cmocka_unit_test(differences_are_seen),
        cmocka_unit_test(memory_may_run_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
