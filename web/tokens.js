// SPDX-License-Identifier: Apache-2.0
// tokens.js: the tokens of an answer, tinted by how likely each was; the likeliest others show on hover, and on focus,
// which arrow keys move.
import {el} from "./dom.js";

const shownText = (text) => text.replaceAll("\n", "⏎\n").replaceAll("\t", "⇥");
const percent = (logprob) => {
    const p = Math.exp(logprob) * 100;
    return p >= 99.95 ? "100 %" : p >= 10 ? `${p.toFixed(0)} %` : p >= 0.1 ? `${p.toFixed(1)} %` : "< 0.1 %";
};

// 0: hardly likely, 4: almost certain.
function levelOf(logprob) {
    const p = Math.exp(logprob);
    return p >= 0.9 ? 4 : p >= 0.6 ? 3 : p >= 0.3 ? 2 : p >= 0.1 ? 1 : 0;
}

function row(text, logprob, chosen) {
    const bar = el("span", {class: "bar-fill"});
    bar.style.width = `${Math.max(1, Math.exp(logprob) * 100)}%`;
    return el("tr", {class: chosen ? "chosen" : null}, el("th", {scope: "row"}, JSON.stringify(text).slice(1, -1) || "∅"),
        el("td", null, percent(logprob)), el("td", {class: "bar"}, bar));
}

function tipOf([text, logprob, tops]) {
    const rows = tops.map(([t, l]) => row(t, l, t === text));
    if (!tops.some(([t]) => t === text)) rows.push(row(text, logprob, true));
    return el("table", null, el("tbody", null, rows));
}

function place(tip, over) {
    const box = over.getBoundingClientRect(), own = tip.getBoundingClientRect();
    tip.style.left = `${Math.max(4, Math.min(box.left, innerWidth - own.width - 4))}px`;
    tip.style.top = `${box.bottom + own.height + 6 < innerHeight ? box.bottom + 4 : Math.max(4, box.top - own.height - 4)}px`;
}

export function tokenList(tokens) {
    const tip = el("div", {class: "token-tip", role: "tooltip", hidden: true});
    const spans = tokens.map((token, i) => el("span", {class: `token p${levelOf(token[1])}`, role: "listitem", tabindex: i ? "-1" : "0",
        "aria-label": `${JSON.stringify(token[0])}, ${percent(token[1])}`, "data-at": i}, shownText(token[0])));
    const show = (span) => {
        tip.replaceChildren(tipOf(tokens[Number(span.dataset.at)]));
        tip.hidden = false;
        place(tip, span);
    };
    const hide = () => (tip.hidden = true);
    const move = (from, to) => {
        if (!spans[to]) return;
        spans[from].tabIndex = -1;
        spans[to].tabIndex = 0;
        spans[to].focus();
    };
    const list = el("div", {class: "tokens", role: "list", "aria-label": "Tokens and their probabilities; arrow keys go through them"}, spans);
    list.addEventListener("pointerover", (e) => e.target.dataset.at !== undefined && show(e.target));
    list.addEventListener("pointerleave", hide);
    list.addEventListener("focusin", (e) => e.target.dataset.at !== undefined && show(e.target));
    list.addEventListener("focusout", hide);
    list.addEventListener("keydown", (e) => {
        const at = Number(e.target.dataset.at), step = {ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1}[e.key];
        if (e.key === "Escape") hide();
        if (!step) return;
        e.preventDefault();
        move(at, at + step);
    });
    return el("div", null, list, tip);
}
