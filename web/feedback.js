// SPDX-License-Identifier: Apache-2.0
// feedback.js: what the reader says of an answer: thumbs, and what would have been right. The server keeps it and may learn from
// it (docs/howto/learn.md); what it said to that stays with the message.
//
// message.request, message.said: tree.js
import {postJson} from "./api.js";
import {el, freshId, iconButton, textButton} from "./dom.js";
import {KINDS, newId} from "./tree.js";

const NAMES = {edit: "The whole answer as it should be", correction: "What is right, in short"};
const ENDS = ["stop", "length", "tool_calls"]; // answers that were cut off are not kept

// Sends it; the result is what becomes of message.said[kind], as `before` was. Each time has a key of its own, by which the server
// counts it once however often it arrives; who says again what was not answered (by the server, or a proxy before it) says it with
// the key that it had.
export async function tell(request, kind, value, before) {
    const key = before && before.key && before.value === value ? before.key : newId();
    try {
        const answer = await (await postJson("v1/feedback", {request_id: request.id, index: request.index, [kind]: value},
            {headers: {"Idempotency-Key": `"${key}"`}})).json();
        return {value, state: answer.repeated ? "repeated" : "kept", prompts: answer.in_prompts === true};
    } catch (e) {
        const isLost = !e.status || e.status >= 500;
        return {value, state: "refused", words: e.message, ...(isLost && {key})};
    }
}

export function wordsOf(kind, s) {
    const name = kind === "thumb" ? `Thumb ${s.value}` : kind === "edit" ? "Your edit" : "Your correction";
    if (s.state === "sending") return `${name}: on its way`;
    if (s.state === "refused") return `${name} was refused: ${s.words}`;
    const prompts = kind === "thumb" ? "" : s.prompts ? "; it stands in your next prompts" : "; it does not enter prompts";
    return `${name}: ${s.state === "repeated" ? "said before, and counts once" : "kept"}${prompts}`;
}

/* actions: {learns(): may anything be said?, tell(node, kind, value)} */
export class FeedbackView {
    constructor(node, actions) {
        this.node = node;
        this.actions = actions;
        this.buttons = el("div", {class: "feedback", role: "group", "aria-label": "What you say of this answer"});
        this.said = el("ul", {class: "said", "aria-label": "What you said of this answer"});
        this.form = el("div");
        this.element = el("div", null, this.form, this.said);
        this.update();
    }

    mayTell() {
        return this.actions.learns() && !!this.node.request && ENDS.includes(this.node.finish);
    }

    update() {
        const said = this.node.said || {}, state = JSON.stringify([this.mayTell(), said]);
        if (state === this.shown) return;
        const focused = this.buttons.contains(document.activeElement) ? document.activeElement.dataset.say : "";
        this.shown = state;
        this.said.replaceChildren(...KINDS.filter((k) => said[k]).map((k) => el("li", {class: said[k].state === "refused" ? "refused" : null}, wordsOf(k, said[k]))));
        this.said.hidden = !this.said.children.length;
        const thumb = (value) => iconButton(value, `Thumb ${value}`, () => this.tell("thumb", value),
            {"data-say": value, "aria-pressed": String(!!said.thumb && said.thumb.value === value && said.thumb.state !== "refused")});
        this.buttons.replaceChildren(...(this.mayTell() ? [thumb("up"), thumb("down"),
            iconButton("mend", "Say what is right", () => this.open(), {"data-say": "right", "aria-expanded": String(this.form.childElementCount > 0)})] : []));
        this.buttons.hidden = !this.mayTell();
        if (focused) this.focus(focused);
    }

    focus(which) {
        const button = this.buttons.querySelector(`[data-say=${which}]`);
        if (button) button.focus();
    }

    tell(kind, value) {
        const said = (this.node.said || {})[kind];
        if (!said || said.state !== "sending") this.actions.tell(this.node, kind, value);
    }

    close() {
        this.form.replaceChildren();
        this.buttons.querySelector("[data-say=right]")?.setAttribute("aria-expanded", "false");
        this.focus("right");
    }

    // A box for the whole answer, or for a sentence.
    open() {
        if (this.form.childElementCount) return this.close();
        const {node} = this, said = node.said || {}, ways = node.content && !node.request.part ? ["edit", "correction"] : ["correction"];
        const texts = {edit: said.edit ? said.edit.value : node.content, correction: said.correction ? said.correction.value : ""};
        const name = freshId("way"), fault = el("p", {class: "fault", role: "alert"});
        let way = ways[0];
        const box = el("textarea", {class: "edit"});
        const choose = (to) => {
            texts[way] = way === to ? texts[way] : box.value;
            way = to;
            box.value = texts[way];
            box.rows = way === "edit" ? Math.min(16, box.value.split("\n").length + 1) : 2;
            box.setAttribute("aria-label", NAMES[way]);
        };
        const send = () => {
            const text = box.value.trim();
            fault.textContent = !text ? "There is nothing to send" : way === "edit" && text === node.content.trim() ? "That is the answer as it is" : "";
            if (fault.textContent) return box.focus();
            this.close();
            return this.tell(way, way === "edit" ? box.value : text);
        };
        const radios = ways.map((w) => el("label", {class: "check"},
            el("input", {type: "radio", name, value: w, checked: w === way, on: {change: () => choose(w)}}), el("span", null, NAMES[w])));
        choose(way);
        this.form.replaceChildren(el("div", {class: "correct", role: "group", "aria-label": "What would have been right", on: {keydown: (e) => {
            if (e.key === "Escape") e.preventDefault(), e.stopPropagation(), this.close();
            if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) e.preventDefault(), send();
        }}}, ways.length > 1 && el("div", {class: "ways", role: "radiogroup", "aria-label": "What you give"}, radios), box, fault,
        el("div", {class: "edit-buttons"}, textButton("Send", send, {class: "button strong"}), textButton("Cancel", () => this.close()))));
        this.buttons.querySelector("[data-say=right]").setAttribute("aria-expanded", "true");
        box.focus();
        return undefined;
    }
}
