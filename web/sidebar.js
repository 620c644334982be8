// SPDX-License-Identifier: Apache-2.0
// sidebar.js: the list of conversations, search in them, export and import.
import {download, el, iconButton, say} from "./dom.js";
import {DEFAULTS} from "./answer.js";
import * as store from "./store.js";
import {sure} from "./sure.js";
import {asMarkdown, fromFile} from "./tree.js";

const DAY = 86400000, FOUND = 200;

function groupOf(time) {
    const today = new Date().setHours(0, 0, 0, 0);
    if (time >= today) return "Today";
    if (time >= today - DAY) return "Yesterday";
    if (time >= today - 6 * DAY) return "Last seven days";
    return new Date(time).toLocaleDateString(undefined, {month: "long", year: "numeric"});
}

export class Sidebar {
    /* parts: {list, search, note}; hooks: {removed(id), imported(id), failed(text), elsewhere(id)} */
    constructor(parts, hooks) {
        this.parts = parts;
        this.hooks = hooks;
        this.current = "";
        this.found = null;
        parts.search.addEventListener("input", () => this.search(parts.search.value));
        store.onChange(({id}) => {
            this.refresh();
            hooks.elsewhere(id);
        });
        this.refresh();
        store.isKept().then((kept) => {
            if (!kept) parts.note.textContent = "This browser keeps nothing here: conversations end with the tab.";
        });
    }

    async refresh() {
        const all = await store.heads();
        const shown = this.found ? all.filter((h) => this.found.has(h.id)) : all, out = [];
        let group = "", list = null;
        for (const head of shown) {
            const name = groupOf(head.updated);
            if (name !== group) {
                list = el("ul", {"aria-label": name});
                out.push(el("h3", null, name), list);
                group = name;
            }
            list.append(this.entry(head));
        }
        if (!out.length) out.push(el("p", {class: "quiet"}, this.found ? "Nothing found." : "No conversations yet."));
        this.parts.list.replaceChildren(...out);
    }

    entry(head) {
        const title = head.title || "Untitled";
        return el("li", null,
            el("a", {href: `#/c/${head.id}`, "aria-current": head.id === this.current ? "page" : null, title}, title),
            iconButton("trash", `Delete ${title}`, () => this.ask(head)));
    }

    mark(id) {
        this.current = id;
        for (const a of this.parts.list.querySelectorAll("a")) {
            if (a.hash === `#/c/${id}`) a.setAttribute("aria-current", "page");
            else a.removeAttribute("aria-current");
        }
    }

    async search(query) {
        if (this.searching) this.searching.abort();
        this.searching = new AbortController();
        const {signal} = this.searching;
        const found = query.trim() ? new Set(await store.search(query, FOUND, signal)) : null;
        if (signal.aborted) return;
        this.found = found;
        await this.refresh();
        if (found) say(`${found.size} conversations found`);
    }

    async ask(head) {
        if (!(await sure({title: "Delete the conversation?", text: `“${head.title || "Untitled"}” is not kept anywhere else.`}))) return;
        await store.remove(head.id);
        await this.refresh();
        this.hooks.removed(head.id);
        this.parts.search.focus();
    }

    async exportAll() {
        const conversations = [];
        await store.each((c) => conversations.push(c));
        download("weft-conversations.json", "application/json", JSON.stringify({format: "weft-conversations", version: 1, conversations}));
    }

    exportOne(c, asText) {
        const name = (c.title || "conversation").replace(/[^\p{L}\p{N}]+/gu, "-").slice(0, 40);
        if (asText) download(`${name}.md`, "text/markdown", asMarkdown(c));
        else download(`${name}.json`, "application/json", JSON.stringify({format: "weft-conversations", version: 1, conversations: [c]}));
    }

    async importFile(file) {
        try {
            const all = fromFile(await file.text(), DEFAULTS);
            for (const c of all) await store.save(c);
            await this.refresh();
            say(`${all.length} conversations imported`);
            this.hooks.imported(all[0].id);
        } catch (e) {
            this.hooks.failed(`${file.name}: ${e.message}`);
        }
    }
}
