// SPDX-License-Identifier: Apache-2.0
// answer.js: a request for one answer, made of a conversation's settings, and the stream of it poured into its message.
import {ApiError, stream} from "./api.js";
import {messagesOf} from "./tree.js";

export const DEFAULTS = {
    system: "", model: "", adapter: "", scale: 1, compare: false, model2: "", adapter2: "", scale2: 1,
    temperature: "", top_p: "", top_k: "", min_p: "", repetition_penalty: "", presence_penalty: "", frequency_penalty: "",
    max_tokens: "", seed: "", stop: "", thinking: true, thinking_budget: "", probabilities: true,
    form: "text", form_text: "", tools: "", memory: false,
};
export const NUMBERS = ["temperature", "top_p", "top_k", "min_p", "repetition_penalty", "presence_penalty", "frequency_penalty",
    "max_tokens", "seed"];
const TOGETHER = 0.01; // seconds: tokens that come within so few came in one piece, and tell no rate
const FORMS = {regex: "regex", choice: "choice", grammar: "grammar"};

function parsed(text, what) {
    try {
        return JSON.parse(text);
    } catch (e) {
        throw new Error(`${what}: ${e.message}`);
    }
}

// What the answer is held to. Throws where the box holds nothing that can be sent.
function addForm(body, s) {
    const text = s.form_text.trim();
    if (s.form === "text" || !text) return;
    if (s.form === "schema")
        body.response_format = {type: "json_schema", json_schema: {name: "answer", strict: true, schema: parsed(text, "JSON Schema")}};
    else if (s.form === "choice") body.structured_outputs = {choice: text.split("\n").map((l) => l.trim()).filter(Boolean)};
    else body.structured_outputs = {[FORMS[s.form]]: text};
}

export function toolsOf(s) {
    if (!s.tools.trim()) return null;
    const tools = parsed(s.tools, "Tools");
    if (!Array.isArray(tools)) throw new Error("Tools: a list is wanted, as [{\"name\": ..., \"parameters\": ...}]");
    return tools.map((t) => (t && t.type === "function" ? t : {type: "function", function: t}));
}

// NAME@7: version 7 of what the caller has taught the model.
export const isVersion = (name) => /@\d+$/.test(name);

// What can be asked by itself: models, and presets over one that this key does not see.
export function basesOf(models) {
    const ids = new Set(models.map((m) => m.id));
    return models.filter((m) => !m.parent || !ids.has(m.parent));
}

// What a side asks: {base, adapter, scale}. Of several models, or presets alone, one must be named: the first, where none was chosen.
export function sideOf(s, side, models) {
    const bases = basesOf(models), first = bases[0] ? bases[0].id : "";
    const base = (side && s.model2) || s.model || (bases.length > 1 || (first && bases[0].parent) ? first : "");
    return {base, adapter: side ? s.adapter2 : s.adapter, scale: side ? s.scale2 : s.scale, several: bases.length > 1, first};
}

// side: 0, or 1 for the second of two. models: as /v1/models lists them.
export function requestOf(c, parent, side, models) {
    const s = c.settings, body = {messages: messagesOf(c, parent), stream: true, stream_options: {include_usage: true}};
    const {base, adapter, scale, several} = sideOf(s, side, models), named = models.filter((m) => m.id === adapter && m.parent);
    const found = adapter && (named.find((m) => m.parent === base) || named[0]), lora = found && found.meta && Number.isInteger(found.meta.adapter_id);
    if (lora && scale !== 1) {
        if (base) body.model = several ? found.parent : base;
        body.lora = [{id: found.meta.adapter_id, scale}];
    } else if (lora && several) body.model = `${found.parent}:${adapter}`; // another's may have that name, too
    else if (adapter || base) body.model = adapter || base;
    for (const name of NUMBERS) if (s[name] !== "" && Number.isFinite(Number(s[name]))) body[name] = Number(s[name]);
    const stops = s.stop.split("\n").filter(Boolean);
    if (stops.length) body.stop = stops;
    if (s.probabilities) Object.assign(body, {logprobs: true, top_logprobs: 5});
    if (s.memory) body.memory = true;
    if (!s.thinking) body.chat_template_kwargs = {enable_thinking: false};
    if (s.thinking_budget !== "") body.thinking_budget_tokens = Number(s.thinking_budget);
    const tools = toolsOf(s);
    if (tools && tools.length) body.tools = tools;
    else addForm(body, s);
    return body;
}

function addCalls(node, calls) {
    node.calls ||= [];
    for (const call of calls) {
        const at = call.index ?? node.calls.length;
        const own = (node.calls[at] ||= {id: "", name: "", arguments: ""});
        if (call.id) own.id = call.id;
        if (call.function && call.function.name) own.name += call.function.name;
        if (call.function && call.function.arguments) own.arguments += call.function.arguments;
    }
}

function addTokens(node, entries) {
    node.tokens ||= [];
    for (const e of entries)
        if (Number.isFinite(e.logprob)) node.tokens.push([e.token, e.logprob, (e.top_logprobs || []).map((t) => [t.token, t.logprob])]);
}

function take(node, event, times) {
    const choice = event.choices && event.choices[0];
    if (event.usage)
        Object.assign(node.stats, {tokens: event.usage.completion_tokens, prompt: event.usage.prompt_tokens,
            cached: event.usage.prompt_tokens_details ? event.usage.prompt_tokens_details.cached_tokens : 0});
    if (!choice) return;
    if (typeof event.id === "string" && !node.request) node.request = {id: event.id, index: choice.index || 0, ...(times.goesOn && {part: true})};
    const {content, reasoning_content: reasoning, tool_calls: calls} = choice.delta || {};
    if (content) node.content += content;
    if (reasoning) node.reasoning = (node.reasoning || "") + reasoning;
    if (calls) addCalls(node, calls);
    if (choice.logprobs && choice.logprobs.content) addTokens(node, choice.logprobs.content);
    if (content || reasoning || calls) {
        const now = performance.now();
        times.first ||= now;
        times.last = now;
        times.events++;
    }
    if (choice.finish_reason) node.finish = choice.finish_reason;
    if (event.model && (!node.model || isVersion(event.model))) node.model = event.model;
}

function measure(node, times) {
    const s = node.stats;
    if (times.first) s.first = (times.first - times.began) / 1000;
    s.total = ((times.last || performance.now()) - times.began) / 1000;
    const n = s.tokens || times.events, took = (times.last - times.first) / 1000;
    if (n > 1 && took > TOGETHER) s.rate = (n - 1) / took;
}

// Fills the message until its answer ends, is stopped by the signal, or fails; `changed` is called as it grows.
export async function run(node, body, signal, changed) {
    const times = {began: performance.now(), first: 0, last: 0, events: 0, goesOn: !!node.content};
    node.stats = {};
    node.request = node.said = undefined; // what was said was of another answer
    node.error = undefined;
    node.finish = "running";
    try {
        for await (const event of stream("v1/chat/completions", body, signal)) {
            take(node, event, times);
            measure(node, times);
            changed();
        }
        if (node.finish === "running") node.finish = "stop";
    } catch (e) {
        node.finish = e.name === "AbortError" ? "stopped" : "failed";
        if (node.finish === "failed") node.error = e instanceof ApiError || e instanceof Error ? e.message : String(e);
    }
    measure(node, times);
    changed();
}
