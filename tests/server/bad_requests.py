# SPDX-License-Identifier: Apache-2.0
"""Requests that must be refused, each with its own status and message."""
from servers import CHAT, LLAMA, TEXT, user

DEEP = b"[" * 100000 + b"]" * 100000
NESTED = b'{"prompt":"x","a":' + b"[" * 300 + b"]" * 300 + b"}"
BIG = "s" * 10_000_000


class Facts:
    """Of the model and the server that refuse: their numbers stand in messages."""

    def __init__(self, name, n_vocab, n_ctx, n_slots):
        self.name, self.n_vocab, self.n_ctx, self.n_slots = name, n_vocab, n_ctx, n_slots


def bad_requests(facts):
    """(path, body, status, words of the message, field or None)"""
    ids, beyond, holds = "from 0 to %d" % (facts.n_vocab - 1), facts.n_vocab, "context holds %d" % facts.n_ctx
    many, slots = "z " * facts.n_ctx, "'id_slot' must be from 0 to %d" % (facts.n_slots - 1)
    m = {"messages": user("x")}
    p = {"prompt": "x"}

    def each(path, base, *cases):
        return [(path, {**base, **body}, status, words, field) for body, status, words, field in cases]

    shared = [  # of both OpenAI forms
        ({"temperature": -0.1}, 400, "must be from 0 to 2, not -0.1", "temperature"),
        ({"temperature": 2.01}, 400, "from 0 to 2", "temperature"),
        ({"temperature": "hot"}, 400, "must be a number, not a string", "temperature"),
        ({"temperature": [1]}, 400, "not an array", "temperature"),
        ({"temperature": True}, 400, "not a boolean", "temperature"),
        ({"top_p": 1.5}, 400, "from 0 to 1", "top_p"),
        ({"top_p": -1}, 400, "from 0 to 1", "top_p"),
        ({"n": 0}, 400, "from 1 to 128", "n"),
        ({"n": -5}, 400, "from 1 to 128", "n"),
        ({"n": 1000000000}, 400, "from 1 to 128", "n"),
        ({"n": 2.5}, 400, "must be an integer, not a number", "n"),
        ({"n": "3"}, 400, "not a string", "n"),
        ({"n": 129}, 400, "128, not 129", "n"),
        ({"n_best": 0}, 400, "from 1 to 128", "n_best"),
        ({"n_best": 129}, 400, "128, not 129", "n_best"),
        ({"n_best": "2"}, 400, "not a string", "n_best"),
        ({"n_best": 2, "n": 2}, 400, "give one of them", "n_best"),
        ({"n_best": 2, "stream": True}, 400, "cannot be streamed", "n_best"),
        ({"presence_penalty": 3}, 400, "from -2 to 2", "presence_penalty"),
        ({"presence_penalty": {}}, 400, "not an object", "presence_penalty"),
        ({"frequency_penalty": -2.5}, 400, "from -2 to 2", "frequency_penalty"),
        ({"frequency_penalty": "0"}, 400, "a number", "frequency_penalty"),
        ({"seed": 1.5}, 400, "an integer", "seed"),
        ({"seed": "x"}, 400, "an integer", "seed"),
        ({"stream": 1}, 400, "must be a boolean, not an integer", "stream"),
        ({"stream": "true"}, 400, "a boolean", "stream"),
        ({"stream_options": {}}, 400, "only allowed when 'stream' is true", "stream_options"),
        ({"stream": True, "stream_options": []}, 400, "must be an object", "stream_options"),
        ({"stream": True, "stream_options": {"include_usage": 1}}, 400, "must be a boolean", "stream_options"),
        ({"stream": True, "stream_options": {"usage": True}}, 400, "stream_options.usage", "stream_options"),
        ({"stop": 5}, 400, "must be a string or an array", "stop"),
        ({"stop": [1]}, 400, "a string or an array", "stop"),
        ({"stop": ["a"] * 129}, 400, "at most 128 strings", "stop"),
        ({"stop": ["x" * 1000] * 17}, 400, "at most 16000 bytes in all", "stop"),
        ({"stop": "x" * 1001}, 400, "at most 1000 bytes, not 1001", "stop"),
        ({"stop": {"a": 1}}, 400, "a string or an array", "stop"),
        ({"logit_bias": {"10": 101}}, 400, "from -100 to 100, not 101 for token 10", "logit_bias"),
        ({"logit_bias": {"10": -1e9}}, 400, "-100 to 100", "logit_bias"),
        ({"logit_bias": {str(beyond): 1}}, 400, "%s as keys, not '%d'" % (ids, beyond), "logit_bias"),
        ({"logit_bias": {"-1": 1}}, 400, "as keys", "logit_bias"),
        ({"logit_bias": {"99999999999999999999": 1}}, 400, "as keys", "logit_bias"),
        ({"logit_bias": {"1": "x"}}, 400, "numbers as values", "logit_bias"),
        ({"logit_bias": {"1": False}}, 400, "numbers as values", "logit_bias"),
        ({"logit_bias": [[1, 2]]}, 400, "must be an object", "logit_bias"),
        ({"logit_bias": {"hello": 1}}, 400, "not 'hello'", "logit_bias"),
        ({"logit_bias": {str(i): 0 for i in range(2049)}}, 400, "at most 2048", "logit_bias"),
        ({"response_format": "json"}, 400, "'type': text, json_object or json_schema", "response_format"),
        ({"response_format": {"type": "xml"}}, 400, "not 'xml'", "response_format"),
        ({"response_format": {"type": "json_object\0x"}}, 400, "must be text, json_object or json_schema", "response_format"),
        ({"response_format": {"type": "json_schema"}}, 400, "must be an object with a 'schema'", "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {}}}, 400, "json_schema.schema' must be a JSON Schema", "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": []}}}, 400, "must be a JSON Schema", "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "strict": 1}}}, 400, "strict' must be a boolean", "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "name": 1}}}, 400, "name' must be a string", "response_format"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {}, "lenient": 1}}},
            400,
            "supplied: response_format.json_schema.lenient",
            "response_format.json_schema.lenient",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"refused": 1}}}},
            400,
            "'response_format': schema: #/refused: ",
            "response_format",
        ),
        ({"response_format": {"type": "json_schema", "schema": {}, "json_schema": {"schema": {}}}}, 400, "response_format.schema", "response_format.schema"),
        ({"response_format": {"type": "json_object", "schema": []}}, 400, "'response_format.schema' must be a JSON Schema", "response_format"),
        ({"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}, "grammar": "root ::= x"}, 400, "exclude each other", "grammar"),
        (
            {"response_format": {"type": "text", "foo": None, "strict": True}},
            400,
            "supplied: response_format.strict",
            "response_format.strict",
        ),
        ({"response_format": {}}, 400, "'type'", "response_format"),
        ({"response_format": {"type": "json_object"}, "grammar": "root ::= x"}, 400, "exclude each other", "grammar"),
        ({"grammar": "x ::= \"a\""}, 400, "root", "grammar"),
        ({"grammar": 1}, 400, "must be a string", "grammar"),
        ({"structured_outputs": []}, 400, "must be an object with json, regex, choice or grammar", "structured_outputs"),
        ({"structured_outputs": {"structural_tag": "x"}}, 400, "supplied: structured_outputs.structural_tag", "structured_outputs.structural_tag"),
        ({"structured_outputs": {"disable_fallback": True}}, 400, "supplied: structured_outputs.disable", "structured_outputs.disable_fallback"),
        ({"structured_outputs": {"json": 1}}, 400, "must be a JSON Schema: an object, or its text", "structured_outputs.json"),
        ({"structured_outputs": {"json": {"refused": 1}}}, 400, "'structured_outputs.json': schema: #/refused: ", "structured_outputs.json"),
        ({"structured_outputs": {"json": "{\"refused\": 1}"}}, 400, "'structured_outputs.json': schema: #/refused: ", "structured_outputs.json"),
        ({"structured_outputs": {"regex": 1}}, 400, "must be a string", "structured_outputs.regex"),
        ({"structured_outputs": {"regex": "(a)\\1"}}, 400, "'structured_outputs.regex': regex: near byte 5", "structured_outputs.regex"),
        ({"structured_outputs": {"choice": "a"}}, 400, "must be an array of strings", "structured_outputs.choice"),
        ({"structured_outputs": {"choice": ["a", 1]}}, 400, "'structured_outputs.choice': choices: #/1: must be a string", "structured_outputs.choice"),
        ({"structured_outputs": {"grammar": 1}}, 400, "must be a string", "structured_outputs.grammar"),
        ({"structured_outputs": {"grammar": "x ::= y"}}, 400, "rule 'root'", "structured_outputs.grammar"),
        ({"structured_outputs": {"json_object": 1}}, 400, "must be a boolean", "structured_outputs.json_object"),
        ({"structured_outputs": {"json": {}, "regex": "a+"}}, 400, "exclude each other", "structured_outputs.json"),
        ({"structured_outputs": {"regex": "a+"}, "grammar": "root ::= x"}, 400, "'grammar' and 'structured_outputs.regex' exclude", "grammar"),
        ({"guided_regex": "a+", "response_format": {"type": "json_object"}}, 400, "exclude each other", "guided_regex"),
        ({"guided_json": 1}, 400, "must be a JSON Schema", "guided_json"),
        ({"guided_json": {"refused": 1}}, 400, "'guided_json': schema: #/refused: ", "guided_json"),
        ({"guided_regex": "(a)\\1"}, 400, "'guided_regex': regex: near byte 5", "guided_regex"),
        ({"guided_choice": {}}, 400, "must be an array of strings", "guided_choice"),
        ({"guided_grammar": "x"}, 400, "'guided_grammar': grammar: line 1: a rule must begin", "guided_grammar"),
        ({"grammar": "r" * 300000}, 400, "at most 262144 bytes", "grammar"),
        ({"grammar": "root\0"}, 400, "NUL", "grammar"),
        ({"grammar_lazy": True, "grammar": "root ::= x"}, 400, "without 'grammar_triggers'", "grammar_lazy"),
        ({"grammar_lazy": True, "grammar_triggers": [{"type": 1, "value": "x"}]}, 400, "without a 'grammar'", "grammar_lazy"),
        ({"grammar_triggers": {}}, 400, "must be an array", "grammar_triggers"),
        ({"grammar_triggers": [{"type": 1, "value": "x"}] * 129}, 400, "at most 128", "grammar_triggers"),
        ({"grammar_triggers": [{"type": 1, "value": "x"}, 5]}, 400, "0 (token), 1 (word), 2 (pattern)", "grammar_triggers[1]"),
        ({"grammar_triggers": [{"type": 4}]}, 400, "'type'", "grammar_triggers[0]"),
        ({"grammar_triggers": [{"type": 3, "value": 5}]}, 400, "must have a 'value', the pattern", "grammar_triggers[0]"),
        ({"grammar_triggers": [{"type": 1, "value": ""}]}, 400, "must have a 'value'", "grammar_triggers[0]"),
        ({"grammar_triggers": [{"type": 0, "token": beyond}]}, 400, "an id from 0 to", "grammar_triggers[0]"),
        (
            {"grammar_lazy": True, "grammar": "root ::= \"x\"", "grammar_triggers": [{"type": 1, "value": "refused"}]},
            400,
            "'grammar_triggers': grammar: no text of it begins",
            "grammar_triggers",
        ),
        ({"top_k": -2}, 400, "from -1", "top_k"),
        ({"min_p": 1.1}, 400, "from 0 to 1", "min_p"),
        ({"repetition_penalty": 0}, 400, "from 0.01", "repetition_penalty"),
        ({"priority": 1}, 400, "from -8 to 0", "priority"),
        ({"timeout_ms": -1}, 400, "from 0", "timeout_ms"),
        ({"overflow": "no"}, 400, "stop or shift", "overflow"),
        ({"overflow": 1}, 400, "a string", "overflow"),
        ({"n_keep": -2}, 400, "from -1", "n_keep"),
        ({"n_keep": 1.5}, 400, "integer", "n_keep"),
        ({"user": 5}, 400, "must be a string", "user"),
        ({"user": "u" * 300}, 400, "at most 256 bytes", "user"),
        ({"model": "gpt-9"}, 404, "the model 'gpt-9' does not exist; this server has '%s'" % facts.name, "model"),
        ({"model": ["x"]}, 400, "must be a string", "model"),
        ({"tempature": 1}, 400, "Unrecognized request argument supplied: tempature", "tempature"),
        ({"x" * 500: 1}, 400, "Unrecognized request argument supplied: xxx", None),
        ({"ignore_eos": 0}, 400, "a boolean", "ignore_eos"),
    ]
    cases = each(CHAT, m, *shared) + each(TEXT, p, *shared)
    cases += each(
        CHAT,
        m,
        ({"max_tokens": 0}, 400, "from 1", "max_tokens"),
        ({"max_tokens": -5}, 400, "from 1", "max_tokens"),
        ({"max_tokens": 1e300}, 400, "must be an integer", "max_tokens"),
        ({"max_completion_tokens": "9"}, 400, "an integer", "max_completion_tokens"),
        ({"logprobs": 3}, 400, "must be a boolean", "logprobs"),
        ({"top_logprobs": 2}, 400, "only allowed when 'logprobs'", "top_logprobs"),
        ({"logprobs": True, "top_logprobs": 21}, 400, "from 0 to 20", "top_logprobs"),
        ({"tools": [{"type": "function"}]}, 400, "must be an object with a 'name'", "tools[0].function"),
        ({"functions": [{}]}, 400, "must be a string", "functions[0].name"),
        ({"tool_choice": "required"}, 400, "no tools are offered", "tool_choice"),
        (
            {"tool_choice": "required", "tools": [{"type": "function", "function": {"name": "f", "parameters": {"refused": 1}}}]},
            400,
            "'tools': tools[0].function.parameters: schema: #/refused",
            "tools",
        ),
        ({"parallel_tool_calls": 1}, 400, "must be a boolean", "parallel_tool_calls"),
        ({"reasoning_format": "raw"}, 400, "deepseek-legacy", "reasoning_format"),
        ({"modalities": ["audio"]}, 400, "[\"text\"]", "modalities"),
        ({"audio": {"voice": "x"}}, 400, "not supported", "audio"),
        (
            {"chat_template_kwargs": {"enable_thinking": False, "thinks": 1}},
            400,
            "'chat_template_kwargs.thinks': this model's chat template reads no",
            "chat_template_kwargs",
        ),
        ({"chat_template_kwargs": []}, 400, "must be an object", "chat_template_kwargs"),
        ({"verbosity": "low"}, 400, "'verbosity': this model's chat template knows none; leave it out", "verbosity"),
        ({"reasoning_effort": 3}, 400, "must be a string", "reasoning_effort"),
        (
            {"chat_template_kwargs": {"x": 1, "messages": []}},
            400,
            "'chat_template_kwargs' cannot set 'messages'",
            "chat_template_kwargs",
        ),
    )
    for messages, words, field in (
        ("hi", "must be an array of messages", "messages"),
        ([], "must not be empty", "messages"),
        ({}, "an array", "messages"),
        (None, "is missing", "messages"),
        (["hi"], "'messages[0]' must be an object", "messages[0]"),
        ([{}], "'messages[0].role' must be a string", "messages[0].role"),
        ([{"role": "root", "content": "x"}], "not 'root'", "messages[0].role"),
        ([{"role": "user\0x", "content": "x"}], "must be system, developer", "messages[0].role"),
        ([{"role": "user", "content": [{"type": "text\0", "text": "x"}]}], "it must be text", "messages[0].content[0]"),
        ([{"role": 1, "content": "x"}], "a string", "messages[0].role"),
        ([{"role": "user"}], "'messages[0].content' is missing", "messages[0].content"),
        ([{"role": "user", "content": None}], "is missing", "messages[0].content"),
        ([{"role": "user", "content": 5}], "a string or an array of parts", "messages[0].content"),
        (user("x") + [{"role": "user", "content": {"a": 1}}], "a string or an array", "messages[1].content"),
        ([{"role": "user", "content": ["x"]}], "'messages[0].content[0]' must be an object", "messages[0].content[0]"),
        (
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x"}}]}],
            "'image_url' is not supported",
            "messages[0].content[0]",
        ),
        ([{"role": "user", "content": [{"type": "text"}]}], ".text' must be a string", "messages[0].content[0]"),
        ([{"role": "function", "content": "x"}], "no role '", "messages"),
        (user("x") * 16385, "at most 16384", "messages"),
        (user("y" * 400000), holds, "messages"),
    ):
        cases.append((CHAT, {"messages": messages}, 400, words, field))
    cases.append((CHAT, {"messages": user(many)}, 400, holds, None))
    for prompt, words, field in (
            (None, "is missing", "prompt"), (5, "must be a string", "prompt"), ({}, "must be a string", "prompt"), ([], "must not be empty", "prompt"),
            ([beyond], "'prompt[0]' must be a token id " + ids, "prompt[0]"), ([1, -1], "prompt[1]", "prompt[1]"), ([1, 2.5], "prompt[1]", "prompt[1]"),
            ([1, "a"], "'prompt[1]' must be a token id", "prompt[1]"), ([True], "must be a string or an array of token ids", "prompt[0]"),
            ([[1], [beyond]], ids, "prompt[1][0]"), ([["a"]], "must be a token id", "prompt[0][0]"), (["x"] * 129, "at most 128 prompts", "prompt"),
            (["x"] * 65, "at most 128, not 130", "n"), ([[]], "the prompt has no tokens", "prompt"), ([9] * (2 * facts.n_ctx), holds, "prompt"),
            (many, holds, None)):
        cases.append((TEXT, {"prompt": prompt, "n": 2}, 400, words, field))
    cases += each(
        TEXT,
        p,
        ({"max_tokens": -1}, 400, "from 0", "max_tokens"),
        ({"logprobs": 6}, 400, "from 0 to 5", "logprobs"),
        ({"logprobs": True}, 400, "an integer", "logprobs"),
        ({"echo": "yes"}, 400, "a boolean", "echo"),
        ({"suffix": "abc"}, 400, "not supported", "suffix"),
        ({"best_of": 4}, 400, "other than 'n'", "best_of"),
        ({"best_of": "1"}, 400, "an integer", "best_of"),
    )
    cases += [
        ("/v1/embeddings", body, 400, words, field)
        for body, words, field in (
            ({}, "'input' is missing", "input"),
            ({"input": ""}, None, None),
            ({"input": 7}, "must be a string", "input"),
            ({"input": "x", "dimensions": 4}, "not supported", "dimensions"),
            ({"input": "x", "encoding_format": "hex"}, "'float' or 'base64'", "encoding_format"),
            ({"input": "x", "encoding_format": "float\0"}, "'float' or 'base64'", "encoding_format"),
            ({"input": "x", "encoding_format": 1}, "'float'", "encoding_format"),
            ({"input": "x", "n": 2}, "Unrecognized", "n"),
            ({"input": many}, holds, None),
        )
        if words
    ]
    llama = [
        ({"n_predict": -2}, "'n_predict' must be from -1"),
        ({"n_predict": "x"}, "'n_predict' must be an integer"),
        ({"temperature": 101}, "'temperature'"),
        ({"top_k": 1.5}, "'top_k'"),
        ({"top_p": 2}, "'top_p'"),
        ({"min_p": "a"}, "'min_p'"),
        ({"repeat_penalty": 0}, "'repeat_penalty'"),
        ({"repeat_last_n": -2}, "'repeat_last_n'"),
        ({"n_probs": 21}, "'n_probs'"),
        ({"logprobs": 21}, "'logprobs'"),
        ({"logprobs": "1"}, "'logprobs'"),
        ({"logprobs": -1}, "'logprobs'"),
        ({"seed": 0.5}, "'seed'"),
        ({"top_k": -2}, "'top_k'"),
        ({"samplers": ["top_p", "top_k"]}, "'samplers'"),
        ({"samplers": ["penalties", "top_k", "top_p", "min_p", "temperature\0"]}, "'samplers'"),
        ({"logit_bias": {"-1": 1}}, "not '-1'"),
        ({"logit_bias": {str(beyond): 1}}, "%s or texts as keys, not '%d'" % (ids, beyond)),
        ({"logit_bias": {"w" * 1001: 1}}, "at most 1000 bytes"),
        ({"response_format": {"schema": {}, "type": "text"}}, "supplied: response_format.schema"),
        ({"mirostat": 2}, "'mirostat' other than 0 is not supported"),
        ({"adaptive_target": 0.5}, "'adaptive_target' other than -1"),
        ({"n_cmpl": 129}, "'n_cmpl' must be from 1 to 128"),
        ({"t_max_predict_ms": 5}, "'t_max_predict_ms' above 0 is not supported"),
        ({"t_max_predict_ms": True}, "'t_max_predict_ms' must be an integer"),
        ({"typical_p": 0.5}, "'typical_p' other than 1"),
        ({"lora": [{"id": 0}]}, "'lora[0]' must be"),
        ({"json_schema": {"refused": 1}}, "'json_schema': schema: #/refused: "),
        ({"json_schema": {"type": "object"}, "response_format": {"type": "json_object"}}, "exclude each other"),
        ({"json_schema": False}, "'json_schema'"),
        ({"json_schema": []}, "'json_schema'"),
        ({"json_schema": {}, "grammar": "root ::= \"a\""}, "exclude each other"),
        ({"json_schema": {}, "response_format": {"type": "json_object"}}, "exclude each other"),
        ({"dry_multiplier": 0.8}, "'dry_multiplier'"),
        ({"xtc_probability": "x"}, "'xtc_probability' must be a number"),
        ({"logit_bias": 5}, "'logit_bias'"),
        ({"logit_bias": [[beyond, 1]]}, "'logit_bias' must have token ids " + ids),
        ({"logit_bias": [[1]]}, "[token, number]"),
        ({"logit_bias": [[1, 20000]]}, "from -10000 to 10000"),
        ({"logit_bias": [["w" * 1001, 1]]}, "at most 1000 bytes"),
        ({"logit_bias": [["w a b c d e f g " * 62, 1]] * 100}, "at most 2048 tokens"),
        ({"logit_bias": [[1, True]]}, "numbers as values"),
        ({"id_slot": 70000}, "'id_slot'"),
        ({"cache_prompt": 1}, "'cache_prompt'"),
        ({"post_sampling_probs": True}, "'post_sampling_probs'"),
        ({"prompt": [1, {}]}, "'prompt[1]'"),
    ]
    cases += [(LLAMA, {**p, **body}, 400, words, None) for body, words in llama]
    cases += [
        ("/tokenize", {"content": 5}, 400, "'content' must be a string", None),
        ("/tokenize", {"content": "a", "add_special": 2}, 400, "'add_special'", None),
        ("/detokenize", {}, 400, "'tokens' is missing", None),
        ("/detokenize", {"tokens": "a"}, 400, "'tokens' must be an array", None),
        ("/detokenize", {"tokens": [beyond]}, 400, "'tokens[0]'", None),
        ("/apply-template", {}, 400, "'messages' is missing", None),
        ("/embedding", {}, 400, "'content' is missing", None),
        ("/embedding", {"content": {}}, 400, "'content' must be", None),
        (
            "/embedding",
            {"content": "x", "embd_normalize": -1},
            400,
            "'embd_normalize' other than 2 is not supported",
            None,
        ),
    ]
    for name in ("../../etc/passwd", "..", ".", "", "a/b", "a\\b", "/etc/passwd", "x" * 129, "a b", "café", "a\n", "%2e%2e", "a:b", "nul\0l", 5, None):
        cases.append(("/slots/0?action=save", {"filename": name}, 400, "'filename'", None))
        cases.append(("/slots/0?action=restore", {"filename": name}, 400, "'filename'", None))
    for path in (
        "/slots/%d?action=erase" % facts.n_slots,
        "/slots/-1?action=erase",
        "/slots/x?action=erase",
        "/slots/999999999999?action=erase",
        "/slots/0x1?action=erase",
        "/slots/0/1?action=erase",
    ):
        cases.append((path, {}, 400, slots, None))
    cases += [
        ("/slots/0?action=", {}, 400, "'action' must be", None),
        ("/slots/0", {}, 400, "'action' must be", None),
        ("/slots/0?action=steal", {}, 400, "'action' must be", None),
    ]
    for path in (CHAT, LLAMA):
        for body, words in (
            (b"", "the body is empty"),
            (b"{", "not valid JSON"),
            (b"[]", "must be a JSON object, not an array"),
            (b"null", "not null"),
            (b'"x"', "not a string"),
            (b"{} {}", "not valid JSON"),
            (b'{"prompt":"x","prompt":"y"}', "not valid JSON"),
            (b'{"prompt":"\xff\xfe"}', "not valid JSON"),
            (b'{"a":1e999}', "not valid JSON"),
            (b'{"prompt":"\\ud800"}', "not valid JSON"),
            (b"{'prompt':'x'}", "not valid JSON"),
            (b'{"temperature":NaN}', "not valid JSON"),
            (b'{"n":99999999999999999999}', "not valid JSON"),
            (DEEP, "not valid JSON"),
            (NESTED, "not valid JSON"),
            (b'{"a\\u0000b":1}', "not valid JSON"),
            (b"\xef\xbb\xbf{}", "not valid JSON"),
            (b"\0\0\0\0", "not valid JSON"),
        ):
            cases.append((path, body, 400, words, None))
    return cases
