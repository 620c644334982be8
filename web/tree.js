// SPDX-License-Identifier: Apache-2.0
// tree.js: a conversation is a tree of messages. Each edit and each new answer is a branch; the path to `head` is what is
// shown and sent. Nothing here knows of the page.
//
// conversation: {id, title, created, updated, settings, nodes: {id: message}, head: id or null}
// message: {id, parent: id or null, role, content, created} and, of an assistant, {model, reasoning, calls, finish, error,
//          stats, tokens, group, form, request, said}, of a tool {call}. group: answers that stand side by side have the same.
// request: {id, index, part}: by which the server knows the answer; part: it is the end of one that went on.
// said: {thumb, edit, correction: {value, state: "sending" | "kept" | "repeated" | "refused", prompts, words, key}}: of the answer, to the server.
//       key: of what was refused, where nobody knows whether it arrived.

export function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(12));
    return Array.from(bytes, (b) => b.toString(16).padStart(2, "0")).join("");
}

export function newConversation(settings) {
    const now = Date.now();
    return {id: newId(), title: "", created: now, updated: now, settings: structuredClone(settings), nodes: {}, head: null};
}

export function childrenOf(c, parent) {
    return Object.values(c.nodes).filter((n) => n.parent === parent).sort((a, b) => a.created - b.created || (a.id < b.id ? -1 : 1));
}

// From the first message to `id`.
export function pathTo(c, id) {
    const path = [];
    for (let n = c.nodes[id]; n && path.length < 100000; n = c.nodes[n.parent]) path.push(n);
    return path.reverse();
}

let last = 0;
export function add(c, message) {
    last = Math.max(Date.now(), last + 1); // in their order, also within a millisecond
    const node = {id: newId(), parent: c.head, content: "", created: last, ...message};
    c.nodes[node.id] = node;
    c.head = node.id;
    if (!c.title && node.role === "user") c.title = titleOf(node.content);
    return node;
}

export function titleOf(text) {
    const line = text.trim().split("\n")[0].replace(/\s+/g, " ");
    return line.length > 60 ? `${line.slice(0, 57).trimEnd()}…` : line;
}

// Shows the branch of a message: from there, the latest below it.
export function show(c, id) {
    let at = id;
    for (let below = childrenOf(c, at); below.length; below = childrenOf(c, at))
        at = (below.find((n) => n.chosen) || below[below.length - 1]).id;
    c.head = at;
}

// Takes a message away, and all below it.
export function remove(c, id) {
    const parent = c.nodes[id].parent, doomed = [id];
    while (doomed.length) {
        const one = doomed.pop();
        doomed.push(...childrenOf(c, one).map((n) => n.id));
        delete c.nodes[one];
    }
    if (c.nodes[c.head]) return;
    c.head = parent;
    const left = childrenOf(c, parent);
    if (left.length) show(c, left[left.length - 1].id);
}

// What the API takes for the path to `id`.
export function messagesOf(c, id) {
    const out = [];
    if (c.settings.system.trim()) out.push({role: "system", content: c.settings.system});
    for (const n of pathTo(c, id)) {
        if (n.role === "tool") out.push({role: "tool", tool_call_id: n.call, content: n.content});
        else if (n.role === "user") out.push({role: "user", content: n.content});
        else {
            const one = {role: "assistant", content: n.content};
            if (n.reasoning) one.reasoning_content = n.reasoning;
            if (n.calls && n.calls.length)
                one.tool_calls = n.calls.map((t) => ({id: t.id, type: "function", function: {name: t.name, arguments: t.arguments}}));
            out.push(one);
        }
    }
    return out;
}

export function asMarkdown(c) {
    const names = {user: "You", assistant: "Answer", tool: "Tool"};
    const parts = pathTo(c, c.head).map((n) => `## ${names[n.role]}\n\n${n.content}`);
    return `# ${c.title || "Conversation"}\n\n${parts.join("\n\n")}\n`;
}

/* ---- what comes from files ---- */

const text = (v) => (typeof v === "string" ? v : "");
const number = (v, fallback) => (Number.isFinite(v) ? v : fallback);

function tokensOf(list) {
    if (!Array.isArray(list)) return undefined;
    return list.filter((t) => Array.isArray(t) && typeof t[0] === "string" && Number.isFinite(t[1])).map((t) => [t[0], t[1],
        (Array.isArray(t[2]) ? t[2] : []).filter((p) => Array.isArray(p) && typeof p[0] === "string" && Number.isFinite(p[1]))]);
}

export const KINDS = ["thumb", "edit", "correction"];

// What was said, as files and the database bring it.
export function saidOf(given) {
    const out = {};
    for (const kind of KINDS) {
        const s = given && typeof given === "object" ? given[kind] : null;
        if (!s || typeof s.value !== "string" || !["kept", "repeated", "refused", "sending"].includes(s.state)) continue;
        out[kind] = {value: s.value, state: s.state, prompts: s.prompts === true, words: typeof s.words === "string" ? s.words : ""};
        if (s.state === "refused" && typeof s.key === "string" && /^[0-9a-f]{24}$/.test(s.key)) out[kind].key = s.key;
        if (s.state === "sending") Object.assign(out[kind], {state: "refused", words: "the page was left before the server had answered"});
    }
    return out;
}

function nodeOf(given, ids) {
    const role = ["user", "assistant", "tool"].includes(given.role) ? given.role : null;
    if (!role) return null;
    const node = {id: ids.get(given.id), parent: ids.get(given.parent) || null, role, content: text(given.content),
        created: number(given.created, 0)};
    for (const name of ["model", "reasoning", "finish", "error", "group", "form", "call"])
        if (typeof given[name] === "string") node[name] = given[name];
    if (given.request && typeof given.request.id === "string" && Number.isInteger(given.request.index))
        node.request = {id: given.request.id, index: given.request.index, ...(given.request.part === true && {part: true})};
    if (given.said) node.said = saidOf(given.said);
    if (given.chosen === true) node.chosen = true;
    if (Array.isArray(given.calls))
        node.calls = given.calls.filter((t) => t && typeof t === "object").map((t) => ({id: text(t.id), name: text(t.name),
            arguments: text(t.arguments)}));
    if (given.stats && typeof given.stats === "object")
        node.stats = Object.fromEntries(Object.entries(given.stats).filter(([, v]) => Number.isFinite(v)).slice(0, 16));
    node.tokens = tokensOf(given.tokens);
    return node;
}

function fromNodes(given, defaults) {
    const c = newConversation({...defaults, ...settingsOf(given.settings, defaults)});
    c.title = text(given.title).slice(0, 200);
    c.created = number(given.created, c.created);
    c.updated = number(given.updated, c.updated);
    const all = Object.values(given.nodes).filter((n) => n && typeof n === "object" && typeof n.id === "string");
    const ids = new Map(all.map((n) => [n.id, newId()]));
    for (const one of all) {
        const node = nodeOf(one, ids);
        if (node) c.nodes[node.id] = node;
    }
    for (const node of Object.values(c.nodes)) { // no circles, and no parent that is not there
        const seen = new Set();
        for (let n = node; n; n = c.nodes[n.parent]) {
            if (seen.has(n.id)) {
                n.parent = null;
                break;
            }
            seen.add(n.id);
        }
        if (node.parent && !c.nodes[node.parent]) node.parent = null;
    }
    const head = ids.get(given.head), roots = childrenOf(c, null);
    if (head && c.nodes[head]) c.head = head;
    else if (roots.length) show(c, roots[roots.length - 1].id);
    return c;
}

export function settingsOf(given, defaults) {
    const out = {};
    for (const [name, value] of Object.entries(defaults))
        if (given && typeof given === "object" && typeof given[name] === typeof value) out[name] = given[name];
    return out;
}

// {"messages": [...]}: as `weft chat` saves it, and as data for training.
function fromMessages(messages, title, defaults) {
    const c = newConversation(defaults);
    for (const m of messages) {
        if (!m || typeof m !== "object") continue;
        const content = Array.isArray(m.content) ? m.content.map((p) => text(p && p.text)).join("") : text(m.content);
        if (m.role === "system") c.settings.system = content;
        else if (["user", "assistant", "tool"].includes(m.role)) {
            const calls = Array.isArray(m.tool_calls) ? m.tool_calls.filter((t) => t && t.function).map((t) => ({id: text(t.id),
                name: text(t.function.name), arguments: typeof t.function.arguments === "string" ? t.function.arguments
                    : JSON.stringify(t.function.arguments)})) : undefined;
            add(c, {role: m.role, content, calls, reasoning: text(m.reasoning_content) || undefined, call: text(m.tool_call_id) || undefined});
        }
    }
    if (title) c.title = title;
    return c;
}

// The conversations of a file: ours, a list of messages, or a line of JSON each. Throws where there is none.
export function fromFile(source, defaults) {
    let values;
    try {
        values = [JSON.parse(source)];
    } catch (e) {
        values = source.split("\n").filter((l) => l.trim()).map((l) => JSON.parse(l));
    }
    const out = [];
    for (const value of values) {
        const all = value && Array.isArray(value.conversations) ? value.conversations : [value];
        for (const one of all) {
            if (one && one.nodes && typeof one.nodes === "object") out.push(fromNodes(one, defaults));
            else if (one && Array.isArray(one.messages)) out.push(fromMessages(one.messages, text(one.title).slice(0, 200), defaults));
            else if (Array.isArray(one)) out.push(fromMessages(one, "", defaults));
        }
    }
    const found = out.filter((c) => Object.keys(c.nodes).length);
    if (!found.length) throw new Error("there is no conversation in this file");
    return found;
}
