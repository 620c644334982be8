// SPDX-License-Identifier: Apache-2.0
// learning.js: what the server has learned of the caller: the versions of its adapter and what became of each, going back, learning
// anew, forgetting; and its memories. It is asked while this view is shown, and what it cannot do it says itself.
import {getJson, key, postJson} from "./api.js";
import {historyOf, stepsChart} from "./charts.js";
import {el, say, textButton, tile} from "./dom.js";
import {Memories} from "./memories.js";
import {sure} from "./sure.js";

const BUSY = 1500, QUIET = 5000; // ms between two looks: while something is learned, and else
const REASONS = {not_learned: "the correction did not come out", paraphrases: "it did not hold in other words", held_out: "earlier corrections would have been lost",
    neighbours: "other answers would have changed", facts: "what is known of the same thing would have changed",
    kl: "it would have spoken too differently from the base", norm: "it would have changed a matrix by too much", not_finite: "its numbers were not finite",
    not_better: "learned anew it was no better than the version that answers"};

const when = (ms) => (ms ? new Date(ms).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"}) : "");

export const nameOf = (version) => (version ? `version ${version}` : "the base alone");

// What became of it, in words.
export function fateOf(v) {
    if (v.what === "published") return v.other_model ? "learned over another model, and no version of this one" : "published";
    if (v.what === "rejected") return `refused by the gate: ${REASONS[v.reason] ? `${REASONS[v.reason]} (${v.reason})` : v.reason || "no reason is kept"}`;
    return v.what.startsWith("rolled") ? `gone back to ${nameOf(v.version)}` : v.what + (v.reason ? `: ${v.reason}` : "");
}

export class LearningView {
    // changed(): another version answers
    constructor(root, changed) {
        this.root = root;
        this.changed = changed;
        this.on = null;
        this.answer = null;
        this.state = el("p", {class: "quiet", role: "status"});
        this.said = el("p", {class: "quiet", role: "status"});
        this.fault = el("p", {class: "error", role: "alert", hidden: true});
        this.whose = el("p", {class: "quiet"}, "Without a key, all who use this server without one are taken for one person.");
        this.tiles = {current: tile("Answers now"), waiting: tile("Waits to be learned"), answers: tile("Answers kept"), events: tile("Feedback"), memories: tile("Memories"), versions: tile("Versions")};
        this.figures = el("dl", {class: "tiles"}, Object.values(this.tiles).map((t) => t.element));
        this.charts = el("div", {class: "charts"});
        this.actions = el("div", {class: "doings"});
        this.versions = el("ol", {class: "versions", "aria-label": "Versions, the newest first"});
        this.none = el("p", {class: "quiet"}, "Nothing was learned yet: corrections and edits of answers are.");
        this.heading = el("h3", null, "Versions");
        this.memories = new Memories((text) => this.tell(text));
        this.root.replaceChildren(el("h2", {tabindex: "-1"}, "Learning"), this.state, this.whose, this.fault, this.said, this.figures, this.charts, this.actions,
            this.heading, this.none, this.versions, this.memories.element);
    }

    start() {
        if (this.on) return;
        this.on = {};
        this.loop(this.on);
    }

    stop() {
        clearTimeout(this.timer);
        this.on = null;
    }

    async loop(on) {
        if (!document.hidden) await this.look();
        if (this.on === on) this.timer = setTimeout(() => this.loop(on), this.answer && this.answer.waiting ? BUSY : QUIET);
    }

    async look() {
        this.whose.hidden = !!key.get();
        try {
            this.show(await getJson("v1/learn"));
            this.state.textContent = "";
        } catch (e) {
            this.show(null);
            this.state.textContent = e.message;
        }
        await this.memories.look();
    }

    tell(text, fault = "") {
        this.said.textContent = text;
        this.fault.textContent = fault;
        this.fault.hidden = !fault;
        if (text) say(text);
    }

    // Asks the server for something, tells what came of it, and looks again.
    async ask(path, body, words) {
        try {
            this.tell(words(await (await postJson(path, body)).json()));
        } catch (e) {
            this.tell("", e.message);
        }
        await this.look();
    }

    async goTo(version) {
        const where = version === undefined ? "the version before" : nameOf(version);
        const text = `From your next request on ${version === undefined ? "it" : where} answers. No version is lost, and what is learned next goes on from there.`;
        if (await sure({title: `Go back to ${where}?`, text, yes: "Go back", no: "Stay"}))
            await this.ask("v1/learn/rollback", version === undefined ? {} : {to: version}, (a) => `Now answers: ${nameOf(a.current)}`);
    }

    consolidate() {
        return this.ask("v1/learn/consolidate", {}, (a) => `All corrections are learned anew from the base, in their turn; ${a.waiting} waiting`);
    }

    async forget() {
        const text = "All goes that this server keeps of you: answers, what you said of them, memories, and all versions of your adapter. Conversations in this browser stay.";
        if (await sure({title: "Forget everything?", text, yes: "Forget everything", typed: "forget"}))
            await this.ask("v1/learn/forget", {}, (a) => `Forgotten: ${a.answers} answers, ${a.events} things said of them, ${a.memories} memories, ${a.versions} versions`);
    }

    // answer: of GET /v1/learn; null: there is none
    show(answer) {
        const state = JSON.stringify(answer);
        if (state === this.shown) return;
        const at = this.root.contains(document.activeElement) ? document.activeElement.dataset.do : "";
        if (this.answer && answer && this.answer.current !== answer.current) this.changed();
        this.shown = state;
        this.answer = answer;
        this.figures.hidden = this.charts.hidden = this.heading.hidden = this.versions.hidden = !answer;
        const rows = answer && Array.isArray(answer.versions) ? answer.versions : [], counts = (answer && answer.counts) || {};
        this.none.hidden = !answer || rows.length > 0;
        if (answer) {
            for (const [name, t] of Object.entries(this.tiles)) t.value.textContent = String(counts[name] ?? 0);
            this.tiles.current.value.textContent = answer.current ? `version ${answer.current}` : "the base";
            this.tiles.waiting.value.textContent = String(answer.waiting || 0);
        }
        const history = historyOf(rows);
        this.charts.replaceChildren(...(rows.length ? [stepsChart("Versions", [{name: "published", kind: "a", points: history.published}, {name: "refused", kind: "b", points: history.rejected}])] : []),
            ...(history.kl.length ? [stepsChart("KL to the base, nats a token", [{name: "published", kind: "c", points: history.kl}], {show: (v) => v.toPrecision(2), joined: true})] : []));
        const act = (name, label, f, more) => textButton(label, f, {"data-do": name, ...more});
        this.actions.replaceChildren(...(answer ? [act("back", "Go back to the version before", () => this.goTo(), {disabled: !answer.current}),
            act("anew", "Learn it all anew", () => this.consolidate(), {disabled: !answer.current})] : []), act("forget", "Forget everything …", () => this.forget(), {class: "button danger"}));
        this.versions.replaceChildren(...rows.map((v) => this.row(v, answer)), rows.length ? this.row({version: 0, what: "base"}, answer) : "");
        if (at) (this.root.querySelector(`[data-do="${at}"]:not(:disabled)`) || this.root.querySelector("h2")).focus();
    }

    row(v, answer) {
        const isBase = v.what === "base", counts = isBase || (v.what === "published" && !v.other_model), isNow = counts && v.version === answer.current;
        const facts = [v.what === "rejected" || v.what === "published" ? `on ${nameOf(v.parent)}` : "", v.first_event ? `from what you said no. ${v.first_event}${v.last_event > v.first_event ? ` to ${v.last_event}` : ""}` : "",
            Number.isFinite(v.kl) ? `KL ${v.kl.toPrecision(2)}` : "", v.content ? `content ${v.content.slice(0, 12)}` : "", when(v.time_ms)].filter(Boolean);
        return el("li", {class: `${v.what}${isNow ? " now" : ""}`, "aria-current": isNow ? "true" : null},
            el("div", null, el("strong", null, isBase ? "The base alone" : v.what.startsWith("rolled") ? "Went back" : `Version ${v.version}`), isNow && el("span", {class: "pill"}, "answers now"),
                el("span", null, isBase ? "what the model says without what was learned" : fateOf(v))),
            facts.length ? el("div", {class: "quiet"}, facts.join(" · ")) : null,
            counts && !isNow && textButton(isBase ? "Go back to the base" : `${v.version < answer.current ? "Go back to" : "Take"} version ${v.version}`, () => this.goTo(v.version), {class: "button small", "data-do": `to-${v.version}`}));
    }
}
