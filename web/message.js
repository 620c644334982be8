// SPDX-License-Identifier: Apache-2.0
// message.js: one message as it is shown: text, thoughts, calls of tools, probabilities, numbers and what can be done.
import {copyText, el, freshId, icon, iconButton, say, seconds, textButton} from "./dom.js";
import {FeedbackView} from "./feedback.js";
import {highlight} from "./highlight.js";
import {Markdown} from "./markdown.js";
import {tokenList} from "./tokens.js";

function codeOf(text, language) {
    const code = el("code", {class: "block-code"});
    highlight(text, language, code);
    return el("pre", {class: "plain-code", tabindex: "0", role: "region", "aria-label": "Code"}, code);
}

export function pretty(text) {
    try {
        return JSON.stringify(JSON.parse(text), null, 2);
    } catch (e) {
        return text;
    }
}

function stat(label, value) {
    return el("span", {class: "stat", title: label}, el("span", {class: "unseen"}, `${label}: `), value);
}

const FINISH = {length: "length reached", stopped: "stopped", failed: "failed", tool_calls: "called tools"};

function numbersOf(node) {
    const s = node.stats || {}, out = [];
    if (Number.isFinite(s.rate)) out.push(stat("Tokens per second", `${s.rate.toFixed(s.rate < 100 ? 1 : 0)} tok/s`));
    if (Number.isFinite(s.first)) out.push(stat("Time to the first token", `first after ${seconds(s.first)}`));
    if (Number.isFinite(s.tokens)) out.push(stat("Tokens of the answer", `${s.tokens} tokens`));
    if (Number.isFinite(s.prompt)) out.push(stat("Tokens of the prompt, and of them cached", `prompt ${s.prompt}${s.cached ? `, ${s.cached} cached` : ""}`));
    if (FINISH[node.finish]) out.push(stat("How it ended", FINISH[node.finish]));
    return out;
}

/* actions: {place(node): {at, n}, go(node, by), again(node), edit(node, text), more(node), results(node, texts), keep(node),
   isKept(node), remove(node), and those of FeedbackView} */
export class MessageView {
    constructor(node, label, actions) {
        this.node = node;
        this.actions = actions;
        this.label = label;
        this.showsTokens = false;
        this.body = el("div", {class: "body"});
        this.markdown = new Markdown(this.body);
        this.thoughts = el("div", {class: "thoughts"});
        this.thoughtText = new Markdown(this.thoughts);
        this.summary = el("summary");
        this.reasoning = el("details", {class: "reasoning", hidden: true}, this.summary, this.thoughts);
        this.calls = el("div", {class: "calls"});
        this.error = el("p", {class: "error", hidden: true});
        this.numbers = el("div", {class: "numbers"});
        this.buttons = el("div", {class: "actions", role: "group", "aria-label": `Actions for this ${this.isAnswer() ? "answer" : "message"}`});
        this.feedback = this.isAnswer() ? new FeedbackView(node, actions) : null;
        this.who = el("div", {class: "who"}, label);
        this.element = el("article", {class: `message ${node.role}`, "aria-label": label, "data-id": node.id},
            this.who, this.reasoning, this.body, this.calls, this.error,
            el("div", {class: "foot"}, this.numbers, this.feedback && this.feedback.buttons, this.buttons), this.feedback && this.feedback.element);
        this.update();
    }

    isAnswer() {
        return this.node.role === "assistant";
    }

    isRunning() {
        return this.node.finish === "running";
    }

    update() {
        const node = this.node;
        if (this.editing) return;
        this.element.classList.toggle("running", this.isRunning());
        this.element.setAttribute("aria-busy", String(this.isRunning()));
        if (this.isAnswer() && node.model && node.model !== this.who.textContent) { // which version answers is known by then
            this.who.textContent = node.model;
            this.element.setAttribute("aria-label", node.model);
        }
        this.showText();
        this.showReasoning();
        if (node.calls) this.showCalls();
        this.error.hidden = !node.error;
        this.error.textContent = node.error || "";
        this.numbers.replaceChildren(...numbersOf(node));
        if (this.buttonsAre !== this.buttonState()) this.showButtons();
        if (this.feedback) this.feedback.update();
    }

    showText() {
        const node = this.node;
        if (this.showsTokens && node.tokens && !this.isRunning()) {
            if (this.shown !== "tokens") this.body.replaceChildren(tokenList(node.tokens));
            this.shown = "tokens";
            return;
        }
        const plain = node.role !== "assistant", kind = plain ? "plain" : node.form === "schema" ? "json" : "markdown";
        if (this.shown && this.shown !== kind) {
            this.body.replaceChildren();
            this.markdown = new Markdown(this.body);
        }
        if (kind === "plain") this.body.textContent = node.content;
        else if (kind === "json") this.body.replaceChildren(...(node.content ? [codeOf(this.isRunning() ? node.content : pretty(node.content), "json")] : []));
        else this.markdown.update(node.content);
        this.body.classList.toggle("verbatim", kind === "plain");
        this.shown = kind;
    }

    showReasoning() {
        const text = this.node.reasoning || "";
        this.reasoning.hidden = !text;
        if (!text) return;
        const n = text.trim().split(/\s+/).length, thinks = this.isRunning() && !this.node.content;
        this.summary.textContent = thinks ? `Thinking, ${n} words` : `Thought for ${n} words`;
        this.thoughtText.update(text);
    }

    // Calls that nothing has answered yet have a box for what each gave.
    showCalls() {
        const state = JSON.stringify(this.node.calls) + this.isRunning() + this.actions.isAnswered(this.node);
        if (this.callsAre === state) return;
        this.callsAre = state;
        const open = !this.isRunning() && !this.actions.isAnswered(this.node), boxes = [];
        const cards = this.node.calls.map((call) => {
            const id = freshId("result");
            const box = open && el("textarea", {id, rows: 2, spellcheck: "false", placeholder: "what the tool gives back"});
            if (box) boxes.push(box);
            return el("div", {class: "call"}, el("div", {class: "call-name"}, "calls ", el("code", null, call.name)),
                codeOf(pretty(call.arguments), "json"), box && el("label", {for: id}, `Result of ${call.name}`), box);
        });
        if (open)
            cards.push(textButton("Send results", () => this.actions.results(this.node, boxes.map((b) => b.value)), {class: "button strong"}));
        this.calls.replaceChildren(...cards);
    }

    buttonState() {
        const {at, n} = this.actions.place(this.node);
        return [this.isRunning(), at, n, this.showsTokens, !!this.node.tokens, this.node.finish, this.actions.isKept(this.node)].join();
    }

    showButtons() {
        const node = this.node, a = this.actions, {at, n} = a.place(node), out = [];
        this.buttonsAre = this.buttonState();
        if (n > 1 && !node.group)
            out.push(iconButton("left", "Branch before", () => a.go(node, -1), {disabled: at === 0}),
                el("span", {class: "branch"}, el("span", {class: "unseen"}, "branch "), `${at + 1}/${n}`),
                iconButton("right", "Branch after", () => a.go(node, 1), {disabled: at === n - 1}));
        if (!this.isRunning()) {
            if (node.group)
                out.push(textButton(a.isKept(node) ? "Goes on here" : "Go on with this one", () => a.keep(node),
                    {class: "button small", "aria-pressed": String(a.isKept(node))}));
            out.push(iconButton("copy", "Copy", () => this.copy()));
            if (this.isAnswer() && node.tokens && node.tokens.length)
                out.push(iconButton("tokens", "Tokens and their probabilities", () => this.toggleTokens(), {"aria-pressed": String(this.showsTokens)}));
            if (node.role !== "tool") out.push(iconButton("edit", "Edit as a new branch", () => this.edit()));
            if (this.isAnswer()) {
                if (["stopped", "length", "failed"].includes(node.finish) && node.content && !node.group)
                    out.push(iconButton("more", "Go on with this answer", () => a.more(node)));
                out.push(iconButton("again", "Answer again", () => a.again(node)));
            }
            out.push(iconButton("trash", "Delete, with all below it", () => a.remove(node)));
        }
        this.buttons.replaceChildren(...out);
    }

    async copy() {
        await copyText(this.node.content);
        say("Copied");
        const button = this.buttons.querySelector("[aria-label=Copy]");
        if (!button) return;
        button.replaceChildren(icon("check"));
        setTimeout(() => button.replaceChildren(icon("copy")), 1200);
    }

    toggleTokens() {
        this.showsTokens = !this.showsTokens;
        this.update();
        const button = this.buttons.querySelector("[aria-pressed]");
        if (button) button.focus();
    }

    edit() {
        const box = el("textarea", {class: "edit", rows: Math.min(16, this.node.content.split("\n").length + 1), value: this.node.content,
            "aria-label": "Message as it should be"});
        const end = (text) => {
            this.editing = false;
            this.shown = "";
            this.body.replaceChildren();
            this.markdown = new Markdown(this.body);
            this.update();
            const button = this.buttons.querySelector("[aria-label^=Edit]");
            if (button) button.focus();
            if (text !== null && text !== this.node.content) this.actions.edit(this.node, text);
        };
        box.addEventListener("keydown", (e) => {
            if (e.key === "Escape") e.stopPropagation(), end(null);
            if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) e.preventDefault(), end(box.value);
        });
        this.editing = true;
        this.shown = "edit";
        this.body.classList.remove("verbatim");
        this.body.replaceChildren(box, el("div", {class: "edit-buttons"},
            textButton(this.isAnswer() ? "Save" : "Send", () => end(box.value), {class: "button strong"}), textButton("Cancel", () => end(null))));
        box.focus();
    }
}
