// SPDX-License-Identifier: Apache-2.0
/* near.c: see near.h. Names of other programs are facts of their manuals, as of November 2026. */
#include "near.h"

#include <string.h>

/* ---- other programs ---- */

typedef struct foreign {
    const char *names; /* separated by blanks */
    const char *answer;
} foreign;

static const foreign OPTIONS[] = {
    {"-m --model -mu --model-url", "the model is an argument by itself: weft run MODEL"},
    {"-hf -hfr --hf-repo -hff --hf-file --hf-repo-file",
     "'weft pull OWNER/NAME:QUANTIZATION' fetches a model, whose name is then the MODEL"},
    {"-p --prompt", "the prompt is an argument by itself: weft run MODEL \"PROMPT\""},
    {"-f --file", "a prompt comes from a file as standard input: weft run MODEL < FILE"},
    {"-ngl --gpu-layers --n-gpu-layers -ngld --gpu-layers-draft --n-gpu-layers-draft -ot --override-tensor -cmoe "
     "--cpu-moe -ncmoe --n-cpu-moe "
     "--gpu-memory-utilization --cpu-offload-gb",
     "Weft computes on the CPU, where all layers are; leave it out"},
    {"-dev --device -mg --main-gpu -sm --split-mode -ts --tensor-split -tp --tensor-parallel-size -pp "
     "--pipeline-parallel-size --num-gpu",
     "Weft computes on the CPU; --provider NAME takes a plugin for other devices"},
    {"-fa --flash-attn --flash-attention --attention-backend",
     "attention never writes its matrix anyway; leave it out"},
    {"-ctk --cache-type-k -ctv --cache-type-v --kv-cache-dtype",
     "types of keys and values: --kv-type f16, f32, bf16, f8, q8 or q4, or both apart as k=q8,v=q4"},
    {"-c --ctx-size --n-ctx --num-ctx --max-model-len --context-length", "the context is set with -c N or --ctx N"},
    {"--context-shift --no-context-shift --n-keep --ctx-shift",
     "what becomes of a full context: --overflow stop or shift, --keep N"},
    {"-n --predict --n-predict --num-predict --max-tokens --max-new-tokens",
     "the tokens of an answer are limited with -n N or --n-predict N"},
    {"-np --parallel --max-num-seqs", "requests that run at once: weft serve MODEL --slots N"},
    {"-b --batch-size -ub --ubatch-size --max-num-batched-tokens",
     "batches are made as the requests come; weft serve has --chunk ROWS"},
    {"-cb --cont-batching --no-cont-batching --enable-chunked-prefill",
     "requests always share their steps; leave it out"},
    {"--enable-prefix-caching --cache-prompt --cache-reuse --prompt-cache",
     "what prompts have in common is always kept; weft serve MODEL --store DIR keeps it on disk"},
    {"--mlock --no-mmap --mmap --use-mmap --no-kv-offload -nkvo --numa --swap-space",
     "model files are mapped, or packed into memory of our own; leave it out"},
    {"-tb --threads-batch --num-thread --cpu-mask",
     "threads are set with -t N or --threads N, for prompts and answers"},
    {"--lora --lora-scaled --lora-modules --enable-lora --max-loras --max-lora-rank",
     "adapters are given with --adapter NAME=PATH[:SCALE]"},
    {"--temperature", "the temperature is set with --temp T"},
    {"-s --random-seed", "the seed is set with --seed S"},
    {"--repetition-penalty --repeat-last-n-penalty", "it is called --repeat-penalty here"},
    {"-sys --system-prompt --system-prompt-file -cnv --conversation -i --interactive -st --single-turn",
     "conversations: weft chat MODEL --system \"TEXT\""},
    {"-jf --json-schema-file", "answers are held to a JSON Schema with --schema FILE: weft run, weft chat"},
    {"--reasoning-format --reasoning-budget --reasoning-parser --enable-reasoning --think",
     "thinking is told apart as the model's template has it: weft chat MODEL --show-thinking shows it, "
     "--template-kwargs JSON sets the template's variables"},
    {"--tool-call-parser --enable-auto-tool-choice --tool-parser-plugin",
     "weft serve reads calls as the model's template writes them; leave it out"},
    {"-j --json-schema --grammar-file --format --guided-json --guided-regex --guided-choice --guided-grammar",
     "answers are held to a form with --schema FILE (JSON Schema), --grammar FILE (GBNF, Lark), --regex, --choices or "
     "--json-object"},
    {"--jinja --no-jinja --chat-template-file --chat-template-content-format",
     "templates are always Jinja; --chat-template FILE gives another one than the model's"},
    {"--slot-save-path", "slots are saved in the folder of weft serve MODEL --store DIR"},
    {"--metrics --slots-endpoint --props --embedding --embeddings --reranking --no-warmup --warmup --log-disable",
     "weft serve needs no option for that; leave it out"},
    {"--webui --no-webui", "weft serve has a web page; --no-page leaves it out"},
    {"-a --served-model-name", "further names of the model: weft serve MODEL --alias NAME"},
    {"-v --verbose -lv --verbosity --uvicorn-log-level --disable-log-requests",
     "WEFT_LOG=debug says more on stderr; weft serve has --log-file FILE"},
    {"-md --model-draft --spec-draft-model --draft --speculative-config --spec-type",
     "a small model guesses tokens with --draft MODEL; without one, --spec auto guesses from the texts at hand"},
    {"--draft-max --draft-min --draft-n --draft-n-min --draft-p-min --spec-draft-n-max --spec-draft-n-min "
     "--spec-draft-p-min "
     "--spec-ngram-mod-n-max --spec-ngram-mod-n-min --spec-ngram-mod-n-match",
     "how far is guessed follows what was right so far; a request may bound it: speculative.n_max, speculative.n_min, "
     "speculative.p_min"},
    {"--dtype --quantization --quantize", "a model keeps the types of its file; 'weft quantize' makes a smaller one"},
    {"-q --quiet", "weft run has it, which shows statistics otherwise; 'weft quantize' makes a smaller model"},
    {"--keepalive --nowordwrap --insecure --trust-remote-code --enforce-eager --color -e --escape",
     "there is nothing of that kind here; leave it out"},
    {"--download-dir --cache-dir", "pulled models lie in the folder of WEFT_CACHE"},
    {"--tokenizer --tokenizer-mode", "the tokenizer is the model's own"},
    {"--mmproj -mm --image", "Weft reads text only"},
};

/* Of weft serve, before those. */
static const foreign SERVED[] = {
    {"-j --json-schema -jf --json-schema-file --schema --grammar --grammar-file --regex --choices --json-object "
     "--format --guided-json --guided-regex --guided-choice --guided-grammar --guided-decoding-backend",
     "what answers are held to is a field of each request: response_format or structured_outputs"},
    {"--reasoning-format --reasoning-parser --enable-reasoning --think",
     "thinking is told apart as the model's template has it; a request may say reasoning_format"},
    {"--keep --n-keep", "how many first tokens stay is a field of each request: n_keep"},
    {"--reasoning-budget", "the budget of thinking is a field of each request: reasoning_budget_tokens"},
    {"--mlock", "weights and pages stay in memory with --lock"},
    {"--models-dir", "a folder of models is served with --models DIR"},
    {"--models-max", "how many models are loaded at once is a matter of memory: --memory BYTES"},
    {"--models-preset --modelfile", "models and presets stand in one file: --config FILE"},
    {"--models-autoload", "models are loaded when they are asked for; --pin NAME loads one at the start"},
    {"--sleep-idle-seconds --keep-alive --keepalive", "a model that is not used goes with --idle-unload S"},
    {"--ssl-cert-file --ssl-certfile", "the certificate is given with --tls-cert FILE"},
    {"--ssl-key-file --ssl-keyfile", "the certificate's key is given with --tls-key FILE"},
    {"--allowed-origins", "pages that may call are named with --cors-origin ORIGIN"},
};

static const foreign COMMANDS[] = {
    {"ps stats status", "weft top shows what a server does"},
    {"show inspect gguf", "weft info MODEL"},
    {"create modelfile",
     "what a Modelfile holds is a preset of weft.yaml (weft serve --config FILE); weft convert, weft quantize and weft "
     "adapter merge make models"},
    {"login signin", "weft pull and weft push send the token in the variable HF_TOKEN"},
    {"cp", "models are files; further names of one: weft serve MODEL --alias NAME, or presets of weft.yaml"},
    {"stop", "a server ends with Ctrl-C or SIGTERM"},
    {"server llama-server api-server", "weft serve MODEL"},
    {"cli llama-cli main generate complete completion llama-simple", "weft run MODEL \"PROMPT\""},
    {"perplexity ppl llama-perplexity evaluate", "weft eval perplexity MODEL -f TEXT"},
    {"llama-bench benchmark llama-batched-bench", "weft bench MODEL"},
    {"llama-quantize", "weft quantize MODEL OUT TYPE"},
    {"llama-imatrix", "weft imatrix MODEL -f TEXT -o F"},
    {"llama-tokenize encode", "weft tokenize MODEL TEXT"},
    {"finetune fine-tune lora sft dpo", "weft adapter train MODEL --data F.jsonl --out DIR"},
    {"merge", "weft adapter merge MODEL OUT --adapter NAME=PATH"},
    {"compress svd", "weft adapter merge MODEL OUT --adapter NAME=PATH --method cat --rank R"},
    {"logits documents", "weft eval logits and weft eval documents"},
    {"download get fetch", "weft pull OWNER/NAME"},
    {"ls models", "weft list"},
    {"remove delete del uninstall", "weft rm NAME"},
    {"version", "weft --version"},
};

/* Is the word s[0..n) among these names? Others write '_' for '-'. */
static int is_among(const char *names, const char *s, size_t n)
{
    for (const char *at = names; *at;) {
        const size_t len = strcspn(at, " ");
        size_t i = 0;
        while (i < len && i < n && (at[i] == s[i] || (at[i] == '-' && s[i] == '_' && i > 1))) i++;
        if (i == len && i == n) return 1;
        at += len + (at[len] == ' ');
    }
    return 0;
}

static const char *answer_of(const foreign *all, size_t n_all, const char *s, size_t n)
{
    for (size_t i = 0; i < n_all; i++)
        if (is_among(all[i].names, s, n)) return all[i].answer;
    return NULL;
}

const char *near_foreign_option(const char *command, const char *argument)
{
    const size_t n = strcspn(argument, "=");
    const char *answer =
        strcmp(command, "serve") ? NULL : answer_of(SERVED, sizeof SERVED / sizeof *SERVED, argument, n);
    return answer ? answer : answer_of(OPTIONS, sizeof OPTIONS / sizeof *OPTIONS, argument, n);
}

const char *near_foreign_command(const char *word)
{
    return answer_of(COMMANDS, sizeof COMMANDS / sizeof *COMMANDS, word, strlen(word));
}
