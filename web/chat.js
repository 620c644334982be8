// SPDX-License-Identifier: Apache-2.0
// chat.js: the conversation that is open: its messages, the box to write in, and the answers that are on their way. A
// conversation with running answers is kept until they end, whatever else is opened meanwhile.
import {el, say} from "./dom.js";
import {DEFAULTS, requestOf, run, sideOf} from "./answer.js";
import {tell, wordsOf} from "./feedback.js";
import {MessageView} from "./message.js";
import * as store from "./store.js";
import * as tree from "./tree.js";

const LAST = "weft.settings";
const SAVE_EVERY = 1000; // ms, while an answer comes

function lastSettings() {
    try {
        return {...DEFAULTS, ...tree.settingsOf(JSON.parse(localStorage.getItem(LAST)), DEFAULTS)};
    } catch (e) {
        return {...DEFAULTS};
    }
}

export class Chat {
    /* parts: {messages, empty}: elements; hooks: {models(), changed(conversation), title(text), busy(flag), notice(text),
       learns(), answered(asked, by)} */
    constructor(parts, hooks) {
        this.parts = parts;
        this.hooks = hooks;
        this.views = new Map();
        this.running = new Map(); // id of a message: {controller, conversation}
        this.gone = new Set(); // ids of conversations that were deleted
        this.pinned = true;
        this.fresh();
        parts.scroll.addEventListener("scroll", () => {
            const s = parts.scroll;
            this.pinned = s.scrollHeight - s.scrollTop - s.clientHeight < 40;
        }, {passive: true});
    }

    get settings() {
        return this.c.settings;
    }

    fresh() {
        const before = this.c ? this.c.settings : lastSettings();
        this.c = tree.newConversation({...before, system: this.c ? before.system : lastSettings().system});
        this.isNew = true;
        this.render();
    }

    // False where there is none of that id.
    async open(id) {
        const busy = [...this.running.values()].find((r) => r.conversation.id === id);
        const c = busy ? busy.conversation : await store.load(id);
        if (!c) return false;
        c.settings = {...DEFAULTS, ...c.settings};
        for (const n of Object.values(c.nodes)) if (n.finish === "running" && !this.running.has(n.id)) n.finish = "stopped";
        if (!busy) for (const n of Object.values(c.nodes)) if (n.said) n.said = tree.saidOf(n.said);
        this.c = c;
        this.isNew = false;
        this.render();
        return true;
    }

    // It was deleted: its answers end, and nothing writes it again.
    forget(id) {
        this.gone.add(id);
        for (const r of this.running.values()) if (r.conversation.id === id) r.controller.abort();
    }

    async keep(c = this.c) {
        if (this.gone.has(c.id)) return;
        c.updated = Date.now();
        if (c === this.c) this.isNew = false;
        try {
            await store.save(c);
        } catch (e) {
            this.hooks.notice(`This browser could not keep the conversation: ${e.message}`);
        }
        this.hooks.changed(c);
    }

    // Another tab has saved it.
    async reload(id) {
        if (id !== this.c.id || this.isBusy() || this.parts.messages.contains(document.activeElement)) return;
        const at = this.parts.scroll.scrollTop;
        if (await this.open(id)) this.parts.scroll.scrollTop = at;
    }

    settingsChanged() {
        localStorage.setItem(LAST, JSON.stringify(this.c.settings));
        if (!this.isNew) this.keep();
    }

    rename(title) {
        this.c.title = title.trim().slice(0, 200) || this.c.title;
        this.hooks.title(this.c.title);
        if (!this.isNew) this.keep();
    }

    /* ---- what is shown ---- */

    labelOf(node) {
        if (node.role === "user") return "You";
        if (node.role === "tool") return "Result of a tool";
        return node.model || "Answer";
    }

    actions() {
        return {
            place: (n) => {
                const all = this.siblings(n);
                return {at: all.indexOf(all.find((s) => s.id === n.id || (s.group && s.group === n.group))), n: all.length};
            },
            go: (n, by) => {
                const all = this.siblings(n), at = all.findIndex((s) => s.id === n.id);
                if (all[at + by]) this.select(all[at + by]);
            },
            again: (n) => this.answer(n.parent, n.group),
            edit: (n, text) => this.edit(n, text),
            more: (n) => this.goOn(n),
            results: (n, texts) => this.giveResults(n, texts),
            isAnswered: (n) => tree.childrenOf(this.c, n.id).length > 0,
            isKept: (n) => tree.pathTo(this.c, this.c.head).includes(n),
            keep: (n) => this.keepOne(n),
            remove: (n) => this.remove(n),
            learns: () => this.hooks.learns(),
            tell: (n, kind, value) => this.tell(n, kind, value),
        };
    }

    // Branches: answers side by side count as one.
    siblings(node) {
        const seen = new Set();
        return tree.childrenOf(this.c, node.parent).filter((n) => {
            if (!n.group) return true;
            if (seen.has(n.group)) return false;
            return seen.add(n.group);
        });
    }

    select(node) {
        tree.show(this.c, node.id);
        this.render();
        this.keep();
        const view = this.views.get(node.id);
        if (view) view.element.querySelector(".actions button").focus();
    }

    keepOne(node) {
        for (const n of tree.childrenOf(this.c, node.parent)) n.chosen = undefined;
        node.chosen = true;
        this.select(node);
    }

    viewOf(node) {
        const view = new MessageView(node, this.labelOf(node), this.actions());
        this.views.set(node.id, view);
        return view.element;
    }

    render() {
        const path = tree.pathTo(this.c, this.c.head), out = [];
        this.views.clear();
        if (path.length && this.settings.system.trim())
            out.push(el("details", {class: "system"}, el("summary", null, "System prompt"), el("p", {class: "verbatim"}, this.settings.system)));
        for (const node of path) {
            if (!node.group) out.push(this.viewOf(node));
            else {
                const pair = tree.childrenOf(this.c, node.parent).filter((n) => n.group === node.group);
                out.push(el("div", {class: "pair", role: "group", "aria-label": "Answers side by side"}, pair.map((n) => this.viewOf(n))));
            }
        }
        this.parts.messages.replaceChildren(...out);
        this.parts.empty.hidden = path.length > 0;
        this.hooks.title(this.c.title);
        this.hooks.busy(this.isBusy());
        this.pinned = true;
        this.follow();
    }

    follow() {
        if (this.pinned) this.parts.scroll.scrollTop = this.parts.scroll.scrollHeight;
    }

    /* ---- what is done ---- */

    isBusy() {
        return [...this.running.values()].some((r) => r.conversation === this.c);
    }

    stop() {
        for (const r of this.running.values()) if (r.conversation === this.c) r.controller.abort();
    }

    async send(text) {
        const last = this.c.nodes[this.c.head];
        if (last && last.role === "user" && !text.trim()) return this.answer(last.id);
        if (!text.trim() || this.isBusy()) return false;
        const {head, title} = this.c, user = tree.add(this.c, {role: "user", content: text});
        if (await this.answer(user.id)) return true;
        tree.remove(this.c, user.id); // nothing was sent: it stays in the box
        this.c.head = head;
        this.c.title = title;
        this.render();
        return false;
    }

    nameOf(side) {
        const {base, adapter, scale, first} = sideOf(this.settings, side, this.hooks.models()), name = base || first || "Answer";
        return adapter ? `${name} + ${adapter}${scale !== 1 ? ` × ${scale}` : ""}` : name;
    }

    // A new answer below a message, or two; false where nothing could be sent.
    async answer(parent, pair = this.settings.compare) {
        const sides = pair ? [0, 1] : [0], models = this.hooks.models();
        let bodies;
        try {
            bodies = sides.map((side) => requestOf(this.c, parent, side, models));
        } catch (e) {
            this.hooks.notice(e.message);
            return false;
        }
        for (const n of tree.childrenOf(this.c, parent)) n.chosen = undefined;
        const group = pair ? tree.newId() : undefined, form = this.settings.form === "schema" && !bodies[0].tools ? "schema" : undefined;
        const nodes = sides.map((side) => {
            this.c.head = parent;
            return tree.add(this.c, {role: "assistant", model: this.nameOf(side), finish: "running", group, form});
        });
        this.c.head = nodes[0].id;
        nodes.forEach((node, i) => this.begin(node, bodies[i]));
        this.render();
        return true;
    }

    goOn(node) {
        if (this.isBusy()) return;
        node.finish = "running";
        this.begin(node, requestOf(this.c, node.id, 0, this.hooks.models()));
        this.render();
    }

    begin(node, body) {
        const c = this.c, controller = new AbortController();
        this.running.set(node.id, {controller, conversation: c});
        this.keep(c);
        if (!document.hidden) say("The answer begins");
        let saved = performance.now(), waiting = false;
        const changed = () => {
            if (performance.now() - saved > SAVE_EVERY && !this.gone.has(c.id)) {
                saved = performance.now();
                store.save(c).catch(() => {}); // at the end it is told
            }
            if (waiting) return;
            waiting = true;
            requestAnimationFrame(() => {
                waiting = false;
                this.refresh(node);
            });
        };
        run(node, body, controller.signal, changed).finally(() => {
            this.running.delete(node.id);
            this.keep(c);
            this.hooks.answered(body.model, node.model);
            if (c !== this.c) return;
            this.hooks.busy(this.isBusy());
            this.refreshAll();
            this.follow();
            say(node.finish === "failed" ? `The answer failed: ${node.error}` : `The answer is complete: ${node.content.slice(0, 600)}`);
        });
    }

    refreshAll() {
        for (const view of this.views.values()) view.update();
    }

    refresh(node) {
        const view = this.views.get(node.id);
        if (!view || view.node !== node) return;
        view.update();
        this.follow();
    }

    // A new branch beside the message; what was a question is answered.
    edit(node, text) {
        if (node.role === "user" && this.isBusy()) return;
        this.c.head = node.parent;
        const copy = {role: node.role, content: text};
        if (node.role === "assistant") Object.assign(copy, {model: node.model, finish: "edited"});
        const fresh = tree.add(this.c, copy);
        if (node.role === "user") this.answer(fresh.id);
        else {
            this.render();
            this.keep();
        }
    }

    giveResults(node, texts) {
        this.c.head = node.id;
        let last = null;
        node.calls.forEach((call, i) => (last = tree.add(this.c, {role: "tool", call: call.id, content: texts[i]})));
        this.answer(last.id);
    }

    // Says something of an answer to the server, and keeps what that said, wherever the conversation is by then.
    async tell(node, kind, value) {
        const {c} = this, {id, request} = node, before = (node.said || {})[kind];
        node.said = {...node.said, [kind]: {value, state: "sending"}};
        this.refresh(node);
        const said = await tell(request, kind, value, before), busy = [...this.running.values()].find((r) => r.conversation.id === c.id);
        const now = this.c.id === c.id ? this.c : busy ? busy.conversation : await store.load(c.id), kept = now && now.nodes[id];
        if (!kept || !kept.request || kept.request.id !== request.id) return;
        kept.said = {...kept.said, [kind]: said};
        await this.keep(now);
        this.refresh(kept);
        say(wordsOf(kind, said));
    }

    async remove(node) {
        const below = [node.id];
        for (let i = 0; i < below.length; i++) {
            if (this.running.has(below[i])) this.running.get(below[i]).controller.abort();
            below.push(...tree.childrenOf(this.c, below[i]).map((n) => n.id));
        }
        tree.remove(this.c, node.id);
        this.render();
        await this.keep();
    }
}

// The box: it grows with its text; Enter sends, Shift-Enter begins a line.
export function composer(box, button, chat) {
    const grow = () => {
        box.style.height = "auto";
        box.style.height = `${Math.min(box.scrollHeight + 2, innerHeight * 0.4)}px`;
    };
    const send = async () => {
        const text = box.value;
        box.value = "";
        grow();
        if (!(await chat.send(text)) && !box.value) box.value = text, grow();
        box.focus();
    };
    box.addEventListener("input", grow);
    box.addEventListener("keydown", (e) => {
        if (e.key !== "Enter" || e.shiftKey || e.isComposing) return;
        e.preventDefault();
        if (!chat.isBusy()) send();
    });
    button.addEventListener("click", () => (chat.isBusy() ? chat.stop() : send()));
    document.addEventListener("keydown", (e) => {
        if (e.key === "Escape" && !e.defaultPrevented && chat.isBusy() && !document.querySelector("dialog[open]")) chat.stop();
    });
    grow();
}

