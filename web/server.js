// SPDX-License-Identifier: Apache-2.0
// server.js: the server as it lives, once a second from /metrics and /slots, while this view is shown. A key that is no
// admin's sees the totals, and of the slots and the use by key its own.
import {basesOf} from "./answer.js";
import {getJson, getText} from "./api.js";
import {Chart} from "./charts.js";
import {bytes, el, seconds, short, tile} from "./dom.js";
import {parseMetrics, quantile, total} from "./metrics.js";

const EVERY = 1000;
const share = (v) => (Number.isFinite(v) ? `${(v * 100).toFixed(0)} %` : "–");

function rateOf(before, now, name, passed, labels) {
    return before ? Math.max(0, total(now, name, labels) - total(before, name, labels)) / passed : NaN;
}

function shareOf(before, now, part, whole) {
    const gained = before ? total(now, whole) - total(before, whole) : 0;
    return gained > 0 ? (total(now, part) - total(before, part)) / gained : NaN;
}

function rows(names, lines) {
    return el("div", {class: "table", tabindex: "0", role: "region", "aria-label": names[0]},
        el("table", null, el("thead", null, el("tr", null, names.map((n) => el("th", {scope: "col"}, n)))),
            el("tbody", null, lines.map((l) => el("tr", null, el("th", {scope: "row"}, l[0]), ...l.slice(1).map((v) => el("td", null, v)))))));
}

export class ServerView {
    // reload: has the list of models asked for again
    constructor(root, models, reload) {
        this.root = root;
        this.models = models;
        this.reload = reload;
        this.timer = 0;
        this.build();
    }

    build() {
        this.tiles = {running: tile("Running"), waiting: tile("Waiting"), rate: tile("Tokens per second"), pages: tile("KV pages in use"),
            hits: tile("Prompt tokens found in the cache"), adapters: tile("Adapters ready")};
        this.charts = {
            tokens: new Chart("Tokens per second", [{name: "written", kind: "a"}, {name: "read", kind: "b"}]),
            requests: new Chart("Requests", [{name: "running", kind: "a"}, {name: "waiting", kind: "b"}]),
            pages: new Chart("KV pages", [{name: "of requests", kind: "a"}, {name: "cached", kind: "b"}]),
            hits: new Chart("Prefix hits", [{name: "share of prompts", kind: "a"}], {show: share, top: 1}),
            first: new Chart("Time to the first token", [{name: "median", kind: "a"}, {name: "99 of 100", kind: "b"}], {show: seconds}),
            between: new Chart("Time between tokens", [{name: "median", kind: "a"}, {name: "99 of 100", kind: "b"}], {show: seconds}),
        };
        this.slots = el("div");
        this.memory = el("div", {class: "memory"});
        this.tables = el("div");
        this.served = el("div");
        this.state = el("p", {class: "quiet", role: "status"});
        this.root.replaceChildren(el("h2", {tabindex: "-1"}, "Server"), this.state,
            el("dl", {class: "tiles"}, Object.values(this.tiles).map((t) => t.element)),
            el("div", {class: "charts"}, Object.values(this.charts).map((c) => c.element)),
            el("h3", null, "Slots"), this.slots, el("h3", null, "Memory"), this.memory,
            el("h3", null, "Models and adapters"), this.served, el("h3", null, "Use"), this.tables);
    }

    start() {
        if (this.timer) return;
        this.timer = setInterval(() => document.hidden || this.look(), EVERY);
        this.look();
    }

    stop() {
        clearInterval(this.timer);
        this.timer = 0;
        this.before = null;
    }

    async look() {
        if (this.looking) return;
        this.looking = true;
        try {
            if (this.models().some((m) => m.status)) await this.reload();
            const [text, slots] = await Promise.all([getText("metrics"), this.askSlots()]);
            const now = parseMetrics(text), at = performance.now();
            this.show(now, slots, this.before ? (at - this.at) / 1000 : 1);
            this.before = now;
            this.at = at;
            this.state.textContent = "";
        } catch (e) {
            this.state.textContent = e.message;
            for (const chart of Object.values(this.charts)) chart.push();
            this.before = null;
        }
        this.looking = false;
    }

    // [[model, slots]]: of several models each has its own. One that is not there has none, and what fails leaves the rest to be shown.
    async askSlots() {
        const bases = basesOf(this.models()), of = (query) => getJson(`slots${query}`).catch(() => []);
        if (!bases.length) return [["", await of("")]];
        return Promise.all(bases.filter(isLoaded).map(async (m) =>
            [bases.length > 1 ? m.id : "", await of(bases.length > 1 || m.status || m.parent ? `?model=${encodeURIComponent(m.id)}` : "")]));
    }

    show(now, slots, passed) {
        const before = this.before, t = this.tiles, c = this.charts;
        const running = total(now, "weft_running"), waiting = total(now, "weft_waiting");
        const pages = total(now, "weft_kv_pages"), used = total(now, "weft_kv_pages_used"), cached = total(now, "weft_kv_pages_cached");
        const written = rateOf(before, now, "weft_generated_tokens_total", passed);
        t.running.value.textContent = `${running} of ${total(now, "weft_slots")}`;
        t.waiting.value.textContent = String(waiting);
        t.rate.value.textContent = Number.isFinite(written) ? written.toFixed(1) : "–";
        t.pages.value.textContent = `${short(used + cached)} of ${short(pages)}`;
        t.hits.value.textContent = share(total(now, "weft_prefix_hit_tokens_total") / total(now, "weft_prefix_asked_tokens_total"));
        t.adapters.value.textContent = `${total(now, "weft_adapters_ready")} of ${total(now, "weft_adapters")}`;
        c.pages.top = pages;
        c.requests.top = total(now, "weft_slots");
        c.tokens.push(written, rateOf(before, now, "llamacpp:prompt_tokens_total", passed));
        c.requests.push(running, waiting);
        c.pages.push(used, cached);
        c.hits.push(shareOf(before, now, "weft_prefix_hit_tokens_total", "weft_prefix_asked_tokens_total"));
        for (const [chart, name] of [[c.first, "weft_time_to_first_token_seconds"], [c.between, "weft_time_between_tokens_seconds"]])
            chart.push(...[0.5, 0.99].map((q) => (before ? quantile(before, now, name, q) : NaN)));
        this.showSlots(slots);
        this.showMemory(now);
        this.showTables(now);
    }

    // all: [[model, slots]]
    showSlots(all) {
        const names = JSON.stringify(all.map(([name]) => name));
        if (this.slotsAre !== names)
            this.slots.replaceChildren(...all.flatMap(([name]) => [name ? el("h4", null, name) : "", el("ol", {class: "slots", "aria-label": name ? `Slots of ${name}` : "Slots"})]),
                all.length ? "" : el("p", {class: "quiet"}, "No model is loaded."));
        this.slotsAre = names;
        this.slots.querySelectorAll("ol").forEach((list, i) => this.fillSlots(list, all[i][1]));
    }

    fillSlots(list, slots) {
        while (list.children.length > slots.length) list.lastChild.remove();
        slots.forEach((slot, i) => {
            const seen = slot.n_tokens !== undefined, next = seen && slot.next_token ? slot.next_token[0] : null;
            const words = slot.is_processing ? (seen ? `${slot.n_prompt_tokens} + ${next.n_decoded} tokens` : "another key's request")
                : seen && slot.n_tokens ? `idle, holds ${slot.n_tokens}` : "idle";
            let item = list.children[i];
            if (!item) {
                item = el("li", null, el("span", {class: "slot-id"}, String(slot.id)), el("span", {class: "slot-words"}), el("span", {class: "slot-bar"}, el("span")));
                list.append(item);
            }
            item.className = slot.is_processing ? "busy" : "";
            item.children[1].textContent = words;
            item.children[2].firstChild.style.width = `${seen ? Math.min(100, (100 * slot.n_tokens) / slot.n_ctx) : 0}%`;
        });
    }

    showMemory(now) {
        const by = new Map(); // of all models
        for (const s of now.get("weft_memory_bytes") || []) if (s.labels.owner) by.set(s.labels.owner, (by.get(s.labels.owner) || 0) + s.value);
        const owners = [...by], sum = owners.reduce((n, [, value]) => n + value, 0) || 1;
        const bar = el("div", {class: "memory-bar", role: "img", "aria-label": owners.map(([name, value]) => `${name} ${bytes(value)}`).join(", ")},
            ...owners.map(([, value], i) => {
                const part = el("span", {class: `part part-${i % 6}`});
                part.style.flexGrow = String(value / sum);
                return part;
            }));
        this.memory.replaceChildren(bar, el("ul", {class: "legend"}, owners.map(([name, value], i) =>
            el("li", {class: `key part-${i % 6}`}, `${name} `, el("span", {class: "number"}, bytes(value))))));
    }

    showTables(now) {
        const names = ["weft_key_requests_total", "weft_key_prompt_tokens_total", "weft_key_cached_tokens_total", "weft_key_generated_tokens_total"];
        const by = new Map();
        names.forEach((name, i) => {
            for (const s of now.get(name) || []) {
                const id = JSON.stringify([s.labels.key, s.labels.adapter]);
                if (!by.has(id)) by.set(id, [s.labels.key || "without a key", s.labels.adapter || "none", 0, 0, 0, 0]);
                by.get(id)[i + 2] += s.value;
            }
        });
        const state = JSON.stringify([...by]);
        if (state !== this.useIs)
            this.tables.replaceChildren(by.size ? rows(["Key", "Adapter", "Requests", "Prompt tokens", "of them cached", "Written"], [...by.values()].map((r) => r.map((v) => (typeof v === "number" ? short(v) : v))))
                : el("p", {class: "quiet"}, "No requests yet."));
        this.useIs = state;
        const models = this.models(), served = JSON.stringify(models);
        if (served !== this.servedIs)
            this.served.replaceChildren(rows(["Name", "What", "State"], models.map((m) => [m.id, whatOf(m), standingOf(m)])));
        this.servedIs = served;
    }
}

export function stateOf(model) {
    const s = model.status;
    if (!s) return model.parent ? "served" : "ready"; // whether an adapter is packed is the tile's affair
    const part = s.value === "loading" && Number.isFinite(s.progress) ? ` ${(s.progress * 100).toFixed(0)} %` : "";
    return `${s.failed ? "failed" : s.value}${part}`;
}

export function standingOf(model) {
    const why = model.status && model.status.message;
    return `${stateOf(model)}${model.pinned ? ", pinned" : ""}${why ? `: ${why}` : ""}`;
}

export const isLoaded = (model) => !model.status || model.status.value === "loaded";

// A version of the caller's own adapter, NAME@7: it answers where nothing else is named.
export const isLearned = (model) => model.learned === true;

// A name with settings over a model, of weft.yaml; what else has a parent is an adapter.
export const isPreset = (model) => !!model.parent && !isLearned(model) && !(model.meta && Number.isInteger(model.meta.adapter_id));

export function whatOf(model) {
    if (isLearned(model)) return `version ${model.version} of what you taught ${model.parent}`;
    if (model.parent) return `${isPreset(model) ? "preset over" : "adapter of"} ${model.parent}`;
    const m = model.meta || {}, parts = [];
    if (m.n_params) parts.push(`${short(m.n_params)} parameters`);
    if (m.size) parts.push(bytes(m.size));
    if (m.n_ctx) parts.push(`${m.n_ctx} tokens of context`);
    if (model.aliases) parts.push(`also ${model.aliases.join(", ")}`);
    return parts.join(", ") || (isLoaded(model) ? "model" : "loaded when it is asked");
}
