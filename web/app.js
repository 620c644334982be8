// SPDX-License-Identifier: Apache-2.0
// app.js: puts the page together: views, models, key, theme, and what happens when the server goes away.
import {getJson, key, watch} from "./api.js";
import {basesOf, isVersion} from "./answer.js";
import {Chat, composer} from "./chat.js";
import {el, icon, iconButton, say} from "./dom.js";
import {LearningView} from "./learning.js";
import {fillSettings} from "./settings.js";
import {ServerView, isLearned, isLoaded, isPreset, stateOf, whatOf} from "./server.js";
import {Sidebar} from "./sidebar.js";

const at = (id) => document.getElementById(id);
const RETRY = 2000, RELOAD = 1500;
let models = [], props = null, chat = null, sidebar = null, server = null, learning = null, down = 0, again = 0, stale = false;

/* ---- what is served ---- */

const bases = () => basesOf(models);
function adaptersOf(model) {
    const own = new Set(bases());
    return models.filter((m) => m.parent && !own.has(m) && (!model || m.parent === model || own.size < 2));
}

const scales = (id) => models.some((m) => m.id === id && !isPreset(m) && !isLearned(m));

function option(value, text) {
    return el("option", {value}, text);
}

function pickerOf(side) {
    const s = chat.settings, names = side ? ["model2", "adapter2", "scale2"] : ["model", "adapter", "scale"];
    if (bases().length && !bases().some((m) => m.id === s[names[0]])) s[names[0]] = ""; // of another server, or one that is gone
    const told = side ? "second " : "", own = s[names[0]] || (side && s.model) || (bases()[0] || {}).id || "";
    const model = el("select", {"aria-label": `${told}model`, disabled: bases().length < 2},
        ...bases().map((m) => option(m.id, m.status && m.status.value !== "loaded" ? `${m.id} (${stateOf(m)})` : m.id)));
    model.value = own;
    const adapter = el("select", {"aria-label": `${told}adapter`}, option("", "no adapter"), adaptersOf(own).map((m) => option(m.id, isPreset(m) ? `${m.id} (preset)` : isLearned(m) ? `${m.id} (learned)` : m.id)));
    if (s[names[1]] && !adaptersOf(own).some((m) => m.id === s[names[1]])) s[names[1]] = "";
    adapter.value = s[names[1]];
    const scale = el("input", {type: "number", min: -8, max: 8, step: "any", value: s[names[2]], "aria-label": `scale of the ${told}adapter`,
        title: "Scale of the adapter", class: "scale", hidden: !scales(adapter.value)});
    const changed = (f) => () => {
        f();
        chat.settingsChanged();
    };
    model.addEventListener("change", changed(() => (s[names[0]] = model.value, s[names[1]] = "", showPickers(), showEmpty())));
    adapter.addEventListener("change", changed(() => (s[names[1]] = adapter.value, scale.hidden = !scales(adapter.value))));
    scale.addEventListener("change", changed(() => (s[names[2]] = Number.isFinite(scale.valueAsNumber) ? scale.valueAsNumber : 1)));
    return el("span", {class: "picker"}, bases().length > 1 ? model : el("span", {class: "model-name"}, own || "no model"),
        adaptersOf(own).length ? [adapter, scale] : null);
}

function showPickers() {
    const s = chat.settings;
    stale = false;
    const compare = iconButton("pair", "Two answers side by side", () => {
        s.compare = !s.compare;
        chat.settingsChanged();
        showPickers();
        at("pickers").querySelector("button").focus();
    }, {"aria-pressed": String(s.compare)});
    at("pickers").replaceChildren(pickerOf(0), s.compare ? el("span", {class: "beside"}, "beside") : "", s.compare ? pickerOf(1) : "", compare);
}

function showEmpty() {
    const base = bases().find((m) => m.id === chat.settings.model) || bases()[0], adapters = adaptersOf("").filter((m) => !isPreset(m) && !isLearned(m)), presets = models.filter(isPreset);
    const facts = [];
    if (base) facts.push(["Model", whatOf(base)]);
    at("served").textContent = base ? base.id : "Ask something";
    if (bases().length > 1) facts.push(["Models", bases().map((m) => m.id).join(", ")]);
    if (adapters.length) facts.push(["Adapters", adapters.slice(0, 12).map((m) => m.id).join(", ") + (adapters.length > 12 ? `, and ${adapters.length - 12} more` : "")]);
    if (presets.length) facts.push(["Presets", presets.slice(0, 12).map((m) => m.id).join(", ")]);
    if (props) facts.push(["At once", `${props.total_slots} requests${bases().length > 1 ? " for each model" : ""}`], ["Server", props.build_info]);
    at("facts").replaceChildren(...facts.flatMap(([name, value]) => [el("dt", null, name), el("dd", null, value)]));
}

const learns = () => !!(props && props.learns && props.learns.feedback);

function showLearning() {
    at("learning-tab").hidden = !learns();
    chat.refreshAll();
    if (!at("settings").contains(document.activeElement)) fillPanel();
}

async function loadModels() {
    const before = JSON.stringify([models, props]);
    clearTimeout(again);
    try {
        const answer = await getJson("v1/models");
        models = Array.isArray(answer.data) ? answer.data.filter((m) => m && typeof m.id === "string") : [];
        const there = bases().find(isLoaded); // another, or a preset's, would be loaded for being asked about
        if (there && !there.parent && !props) props = await getJson(bases().length > 1 ? `props?model=${encodeURIComponent(there.id)}` : "props");
    } catch (e) {
        if (!models.length) return;
    }
    if (JSON.stringify([models, props]) !== before) {
        stale = at("pickers").contains(document.activeElement); // then they are drawn when it is left
        if (!stale) showPickers();
        showEmpty();
        showLearning();
    }
    if (models.some((m) => m.status && m.status.value === "loading")) again = setTimeout(loadModels, RELOAD);
}

/* ---- key, and a server that is away ---- */

function askForKey(message) {
    const dialog = at("key-dialog");
    at("key-fault").textContent = key.get() && message ? message : "";
    if (dialog.open) return;
    at("key-box").value = "";
    dialog.returnValue = "";
    dialog.showModal();
}

function onKeyClosed() {
    const {returnValue} = at("key-dialog");
    if (returnValue === "use" && at("key-box").value.trim()) key.set(at("key-box").value.trim());
    else if (returnValue === "forget") key.set("");
    else return;
    at("key-box").value = "";
    props = null;
    loadModels();
}

function onDown() {
    at("away").hidden = false;
    if (down) return;
    down = setInterval(() => getJson("health").catch(() => {}), RETRY);
}

function onUp() {
    at("away").hidden = true;
    if (!down) return;
    clearInterval(down);
    down = 0;
    say("The server answers again");
    props = null; // it may be another one
    loadModels();
}

/* ---- views ---- */

const isNarrow = () => matchMedia("(max-width: 759px)").matches;

function showSide(open) {
    document.body.classList.toggle("side-open", open);
    at("side").inert = !open;
    at("main").inert = open && isNarrow();
    at("menu").setAttribute("aria-expanded", String(open));
    if (open && isNarrow()) at("new").focus();
}

function showSettings(open) {
    document.body.classList.toggle("settings-open", open);
    at("settings").hidden = !open;
    at("settings-button").setAttribute("aria-expanded", String(open));
    if (open) at("settings").querySelector("button").focus();
    else at("settings-button").focus();
}

function fillPanel() {
    fillSettings(at("settings-body"), chat.settings, () => chat.settingsChanged(), !!(props && props.learns && props.learns.memories));
}

async function route() {
    const [, where, id] = location.hash.split("/");
    const view = where === "server" || where === "learning" ? where : "chat", isChat = view === "chat";
    for (const name of ["chat", "server", "learning"]) {
        at(name).hidden = name !== view;
        if (name === view) at(`${name}-tab`).setAttribute("aria-current", "page");
        else at(`${name}-tab`).removeAttribute("aria-current");
    }
    at("settings-button").hidden = at("title").hidden = !isChat;
    for (const [name, one] of [["server", server], ["learning", learning]])
        if (name === view) one.start();
        else one.stop();
    if (!isChat) {
        document.title = `${view === "server" ? "Server" : "Learning"} – Weft`;
        at("settings").hidden = true;
        return;
    }
    if (document.body.classList.contains("settings-open")) at("settings").hidden = false;
    if (where === "c" && id !== chat.c.id && !(await chat.open(id))) location.hash = "#/";
    else if (where !== "c" && !chat.isNew) chat.fresh();
    sidebar.mark(chat.c.id);
    at("chat-tab").href = chat.isNew ? "#/" : `#/c/${chat.c.id}`;
    showPickers();
    fillPanel();
    if (isNarrow()) showSide(false);
    else at("say").focus();
}

/* ---- theme ---- */

const THEMES = ["auto", "light", "dark"];

function showTheme() {
    const now = document.documentElement.dataset.theme || "auto", button = at("theme");
    button.replaceChildren(icon({auto: "auto", light: "sun", dark: "moon"}[now]));
    button.setAttribute("aria-label", `Colours: ${now === "auto" ? "as the system" : now}; change`);
    button.title = button.getAttribute("aria-label");
}

function nextTheme() {
    const now = document.documentElement.dataset.theme || "auto", next = THEMES[(THEMES.indexOf(now) + 1) % 3];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    localStorage.setItem("weft.theme", next);
    showTheme();
}

/* ---- beginning ---- */

function notice(text) {
    at("notice").textContent = text;
    at("notice").hidden = !text;
}

function newChat() {
    notice("");
    if (location.hash === "#/") route();
    location.hash = "#/";
    chat.fresh();
    sidebar.mark("");
    at("say").focus();
}

function menuOf(button, items) {
    const list = el("div", {class: "menu", hidden: true}, items.map(([label, f]) =>
        el("button", {type: "button", on: {click: () => (list.hidden = true, button.setAttribute("aria-expanded", "false"), button.focus(), f())}}, label)));
    const toggle = (open) => {
        list.hidden = !open;
        button.setAttribute("aria-expanded", String(open));
    };
    button.setAttribute("aria-expanded", "false");
    button.after(list);
    button.addEventListener("click", () => toggle(list.hidden));
    list.parentNode.addEventListener("keydown", (e) => {
        if (e.key === "Escape" && !list.hidden) e.preventDefault(), e.stopPropagation(), toggle(false), button.focus();
    });
    list.parentNode.addEventListener("focusout", (e) => !list.parentNode.contains(e.relatedTarget) && toggle(false));
}

function wire() {
    for (const button of document.querySelectorAll("[data-icon]")) button.prepend(icon(button.dataset.icon));
    composer(at("say"), at("send"), chat);
    at("new").addEventListener("click", newChat);
    at("pickers").addEventListener("focusout", (e) => stale && document.hasFocus() && !at("pickers").contains(e.relatedTarget) && showPickers());
    at("menu").addEventListener("click", () => showSide(!document.body.classList.contains("side-open")));
    at("veil").addEventListener("click", () => showSide(false));
    at("settings-button").addEventListener("click", () => showSettings(at("settings").hidden));
    at("settings-close").addEventListener("click", () => showSettings(false));
    at("theme").addEventListener("click", nextTheme);
    at("key").addEventListener("click", () => askForKey(""));
    at("key-dialog").addEventListener("close", onKeyClosed);
    at("title").addEventListener("change", () => chat.rename(at("title").value));
    at("title").addEventListener("keydown", (e) => e.key === "Enter" && at("say").focus());
    at("import").addEventListener("change", () => {
        if (at("import").files[0]) sidebar.importFile(at("import").files[0]);
        at("import").value = "";
    });
    menuOf(at("files"), [["Export this conversation", () => sidebar.exportOne(chat.c, false)],
        ["Export it as Markdown", () => sidebar.exportOne(chat.c, true)],
        ["Export all conversations", () => sidebar.exportAll()], ["Import from a file", () => at("import").click()]]);
    document.addEventListener("keydown", (e) => {
        if ((e.ctrlKey || e.metaKey) && e.key === "k") e.preventDefault(), showSide(true), at("search").focus();
        if (e.altKey && e.key === "n") e.preventDefault(), newChat();
        if (e.key === "Escape" && document.body.classList.contains("side-open") && isNarrow()) e.preventDefault(), showSide(false), at("menu").focus();
        else if (e.key === "Escape" && at("settings").contains(e.target)) e.preventDefault(), showSettings(false);
    });
    addEventListener("hashchange", route);
}

function begin() {
    watch((what, error) => (what === "up" ? onUp() : what === "down" ? onDown() : askForKey(error.message)));
    chat = new Chat({messages: at("messages"), empty: at("empty"), scroll: at("scroll")}, {
        models: () => models,
        changed: (c) => {
            sidebar.refresh();
            if (c !== chat.c || ["#/server", "#/learning"].includes(location.hash) || location.hash === `#/c/${c.id}`) return;
            history.replaceState(null, "", `#/c/${c.id}`);
            sidebar.mark(c.id);
            at("chat-tab").href = `#/c/${c.id}`;
        },
        title: (text) => {
            at("title").value = text;
            document.title = text ? `${text} – Weft` : "Weft";
        },
        busy: (flag) => {
            at("send").replaceChildren(icon(flag ? "stop" : "send"));
            at("send").setAttribute("aria-label", flag ? "Stop" : "Send");
            at("send").title = flag ? "Stop (Esc)" : "Send (Enter)";
            at("send").classList.toggle("stops", flag);
            if (flag) notice("");
            if (models.some((m) => m.status)) again = setTimeout(loadModels, RELOAD); // it may be loaded for this
        },
        notice,
        learns,
        answered: async (name, by) => { // so that model is there to be asked about
            if (isVersion(by) && !models.some((m) => m.id === by)) loadModels();
            if (props) return;
            props = await getJson(name ? `props?model=${encodeURIComponent(name)}` : "props").catch(() => null);
            showEmpty();
            showLearning();
        },
    });
    sidebar = new Sidebar({list: at("conversations"), search: at("search"), note: at("kept")}, {
        removed: (id) => {
            chat.forget(id);
            if (id === chat.c.id) newChat();
        },
        imported: (id) => (location.hash = `#/c/${id}`),
        failed: notice,
        elsewhere: (id) => chat.reload(id),
    });
    server = new ServerView(at("server"), () => models, loadModels);
    learning = new LearningView(at("learning"), loadModels);
    wire();
    showTheme();
    showSide(!isNarrow());
    route();
    loadModels();
}

begin();
