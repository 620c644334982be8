// SPDX-License-Identifier: Apache-2.0
// dom.js: elements by function calls. What is given as text becomes a text node; nothing here, or elsewhere on this
// page, parses HTML.

const SVG = "http://www.w3.org/2000/svg";

function set(node, name, value) {
    if (value === undefined || value === null || value === false) return;
    if (name === "on") for (const [event, f] of Object.entries(value)) node.addEventListener(event, f);
    else if (name === "class") node.setAttribute("class", value);
    else if (name === "value" || name === "checked" || name === "disabled" || name === "hidden") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
}

function fill(node, options, children) {
    for (const [name, value] of Object.entries(options || {})) set(node, name, value);
    for (const child of children) { // a list may be longer than a call takes arguments
        if (Array.isArray(child)) fill(node, null, child);
        else if (child !== null && child !== undefined && child !== false) node.append(child);
    }
    return node;
}

// el("p", {class: "note", on: {click: f}}, "text", child, [children], ...)
export function el(tag, options, ...children) {
    return fill(document.createElement(tag), options, children);
}

export function svg(tag, options, ...children) {
    return fill(document.createElementNS(SVG, tag), options, children);
}

// Drawn on 16 by 16, as strokes.
const PATHS = {
    plus: "M8 3v10M3 8h10",
    menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
    close: "M4 4l8 8M12 4l-8 8",
    copy: "M6 5.5h7.5v8H6zM10.5 5.5v-3H3v8h3",
    again: "M13 8a5 5 0 1 1-1.6-3.7M13.2 2v3.2H10",
    edit: "M3 13l.7-2.8L10.6 3.3a1.3 1.3 0 0 1 1.9 0l.2.2a1.3 1.3 0 0 1 0 1.9L5.8 12.3z",
    tokens: "M2.5 4.5h4v3h-4zM8.5 4.5h5v3h-5zM2.5 9.5h6v3h-6zM10.5 9.5h3v3h-3z",
    more: "M3 8h7M7 4.5L10.5 8 7 11.5M13 3v10",
    left: "M9.5 4L5.5 8l4 4",
    right: "M6.5 4l4 4-4 4",
    trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5",
    send: "M8 13V3.5M4 7.2L8 3.2l4 4",
    stop: "M4.5 4.5h7v7h-7z",
    gear: "M2.5 5h6M11.5 5h2M10 3.5v3M2.5 11h2M7.5 11h6M6 9.5v3",
    sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6M8 1.5v1.2M8 13.3v1.2M1.5 8h1.2M13.3 8h1.2M3.4 3.4l.8.8M11.8 11.8l.8.8M12.6 3.4l-.8.8M4.2 11.8l-.8.8",
    moon: "M13 9.6A5.4 5.4 0 1 1 6.4 3a4.3 4.3 0 0 0 6.6 6.6z",
    auto: "M8 2.5a5.5 5.5 0 1 1 0 11zM8 2.5a5.5 5.5 0 1 0 0 11",
    key: "M10.3 2.8a2.9 2.9 0 1 1-1.7 5.2L3.5 13H2.8v-2.2h1.8V9h1.8l1-1a2.9 2.9 0 0 1 2.9-5.2z",
    save: "M8 2.5v7M5 6.8l3 3 3-3M3 12.8h10",
    load: "M8 9.8v-7M5 5.5l3-3 3 3M3 12.8h10",
    pair: "M2.5 3.5h4.8v9H2.5zM8.7 3.5h4.8v9H8.7z",
    check: "M3.5 8.5l3 3 6-7",
    up: "M5 7.2v6H2.8v-6zM5 7.2l2.8-4.6c1 0 1.5.7 1.4 1.6l-.4 2.2h3.3c.8 0 1.3.7 1.1 1.5l-1 4.2c-.2.7-.7 1.1-1.4 1.1H5",
    down: "M11 8.8v-6h2.2v6zM11 8.8l-2.8 4.6c-1 0-1.5-.7-1.4-1.6l.4-2.2H3.9c-.8 0-1.3-.7-1.1-1.5l1-4.2c.2-.7.7-1.1 1.4-1.1H11",
    mend: "M2.5 3.5h10M2.5 7h6M2.5 10.5h3M8 11.2l2 2 3.8-5",
};

export function icon(name) {
    return svg("svg", {viewBox: "0 0 16 16", class: "icon", "aria-hidden": "true", focusable: "false"},
        svg("path", {d: PATHS[name]}));
}

// A button that shows an icon; its label is for screen readers and the tooltip.
export function iconButton(name, label, click, options = {}) {
    return el("button", {type: "button", class: "icon-button", "aria-label": label, title: label, on: {click}, ...options},
        icon(name));
}

export function textButton(label, click, options = {}) {
    return el("button", {type: "button", class: "button", on: {click}, ...options}, label);
}

// A figure with its label, of a <dl>.
export function tile(label) {
    const value = el("dd");
    return {element: el("div", {class: "tile"}, el("dt", null, label), value), value};
}

// Pages that come without TLS from another machine have no clipboard; they copy what is selected.
export async function copyText(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const box = el("textarea", {value: text, class: "unseen", "aria-hidden": "true"}), focused = document.activeElement;
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
    if (focused) focused.focus();
    return undefined;
}

// Says it to screen readers, once.
export function say(text) {
    const region = document.getElementById("said");
    if (region) region.textContent = text;
}

export function download(name, type, text) {
    const link = el("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

let nextId = 0;
export function freshId(prefix) {
    return `${prefix}-${++nextId}`;
}

// Numbers as people read them: 950, 1.2 k, 34 M.
export function short(value) {
    if (!Number.isFinite(value)) return "–";
    const units = ["", "k", "M", "G", "T"];
    let at = 0;
    while (Math.abs(value) >= 999.5 && at + 1 < units.length) value /= 1000, at++;
    const text = Math.abs(value) >= 100 || Number.isInteger(value) ? value.toFixed(0) : value.toFixed(Math.abs(value) >= 10 ? 1 : 2);
    return at ? `${text} ${units[at]}` : text;
}

export function bytes(value) {
    if (!Number.isFinite(value)) return "–";
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let at = 0;
    while (value >= 1023.5 && at + 1 < units.length) value /= 1024, at++;
    return `${value >= 100 || at === 0 ? value.toFixed(0) : value.toFixed(1)} ${units[at]}`;
}

export function seconds(value) {
    if (!Number.isFinite(value)) return "–";
    return value < 1 ? `${(value * 1000).toFixed(value < 0.01 ? 1 : 0)} ms` : `${value.toFixed(2)} s`;
}
