// SPDX-License-Identifier: Apache-2.0
// memories.js: the caller's memories, listed, added, corrected and deleted (docs/howto/memory.md). A part of the view of learning.
import {getJson, postJson} from "./api.js";
import {el, freshId, iconButton, textButton} from "./dom.js";
import {sure} from "./sure.js";

const MOST = 100; // that are shown at once
const KINDS = [["semantic", "fact"], ["procedural", "what passed or failed"], ["episodic", "a past request"]];
const kindOf = (kind) => (KINDS.find(([k]) => k === kind) || [kind, kind])[1];
const day = (ms) => new Date(ms).toLocaleDateString(undefined, {dateStyle: "medium"});

export class Memories {
    // tell(text): says what was done
    constructor(tell) {
        this.tell = tell;
        this.all = [];
        this.note = el("p", {class: "quiet"});
        this.list = el("ul", {class: "memories", "aria-label": "Memories"});
        this.find = el("input", {type: "search", placeholder: "Find", "aria-label": "Find in memories", on: {input: () => this.draw()}});
        this.add = this.form(null);
        this.parts = el("div", null, this.add, this.find, this.list);
        this.element = el("section", {"aria-label": "Memories"}, el("h3", null, "Memories"), this.note, this.parts);
    }

    async look() {
        try {
            this.show((await getJson("v1/memories")).data);
        } catch (e) {
            this.parts.hidden = true;
            this.note.textContent = e.message;
            this.shown = "";
        }
    }

    show(all) {
        const state = JSON.stringify(all);
        this.parts.hidden = false;
        if (state === this.shown) return;
        this.shown = state;
        this.all = all.slice().reverse(); // the newest first
        this.draw();
    }

    draw() {
        if (this.list.contains(document.activeElement) && document.activeElement.closest("form")) return; // nothing goes away under who writes
        const words = this.find.value.toLowerCase().split(/\s+/).filter(Boolean);
        const found = this.all.filter((m) => words.every((w) => `${m.key}\n${m.text}\n${m.kind}`.toLowerCase().includes(w)));
        this.find.hidden = this.all.length < 2;
        this.note.textContent = !this.all.length ? "None yet. What you say of answers becomes some." : found.length > MOST ? `The newest ${MOST} of ${found.length}` : words.length ? `${found.length} found` : "";
        this.list.replaceChildren(...found.slice(0, MOST).map((m) => this.item(m)));
    }

    item(m) {
        const text = el("div", {class: "memory-text"}, m.key && el("strong", null, m.key), el("span", null, m.text));
        const facts = [kindOf(m.kind), m.source ? "from an answer" : "by hand", m.valid_to_ms ? `until ${day(m.valid_to_ms)}` : `since ${day(m.valid_from_ms || m.created_ms)}`];
        const named = (m.key || m.text).slice(0, 40), item = el("li", {class: m.valid_to_ms && m.valid_to_ms <= Date.now() ? "past" : null}, text, el("div", {class: "quiet"}, facts.join(" · ")));
        item.append(el("span", {class: "actions"}, iconButton("edit", `Correct ${named}`, () => {
            item.replaceChildren(this.form(m));
            item.querySelector("textarea").focus();
        }), iconButton("trash", `Delete ${named}`, () => this.drop(m))));
        return item;
    }

    // To add one, or to correct m.
    form(m) {
        const label = (name, box) => {
            box.id = freshId("memory");
            return el("div", {class: "field"}, el("label", {for: box.id}, name), box);
        };
        const kind = el("select", null, KINDS.map(([value, name]) => el("option", {value}, name)));
        const about = el("input", {value: m ? m.key : "", autocomplete: "off"}), text = el("textarea", {rows: 2, value: m ? m.text : ""}), fault = el("p", {class: "fault", role: "alert"});
        if (m) kind.value = m.kind;
        const close = () => (document.activeElement.blur(), this.draw(), this.find.hidden ? this.add.querySelector("textarea").focus() : this.find.focus());
        const send = async (e) => {
            e.preventDefault();
            if (!text.value.trim()) return text.focus();
            const body = {kind: kind.value, text: text.value.trim(), ...(about.value.trim() && {key: about.value.trim()}),
                ...(m && {id: m.id, valid_from_ms: m.valid_from_ms, ...(m.valid_to_ms && {valid_to_ms: m.valid_to_ms})})};
            try {
                await postJson("v1/memories", body);
            } catch (error) {
                fault.textContent = error.message;
                return text.focus();
            }
            fault.textContent = "";
            if (m) close();
            else about.value = text.value = "", text.focus();
            await this.look();
            return this.tell(m ? "The memory was corrected" : "The memory was added");
        };
        return el("form", {class: "memory", "aria-label": m ? "Correct the memory" : "Add a memory", on: {submit: send, keydown: (e) => m && e.key === "Escape" && (e.preventDefault(), close())}},
            el("div", {class: "grid"}, label("Kind", kind), label("About", about)), label(m ? "What is so" : "A new memory", text), fault,
            el("div", {class: "edit-buttons"}, el("button", {class: `button${m ? " strong" : ""}`}, m ? "Save" : "Add"), m && textButton("Cancel", close)));
    }

    async drop(m) {
        if (!(await sure({title: "Delete this memory?", text: m.text.length > 200 ? `${m.text.slice(0, 200)}…` : m.text}))) return;
        let words = "The memory was deleted";
        try {
            await getJson(`v1/memories/${m.id}`, {method: "DELETE"});
        } catch (e) {
            words = e.message;
        }
        await this.look();
        this.tell(words);
        this.add.querySelector("textarea").focus();
    }
}
