// SPDX-License-Identifier: Apache-2.0
// markdown.js: Markdown, as models write it, to DOM nodes. Text is hostile: whatever it holds, only elements of ALLOWED
// are made, links lead to http, https or mailto, and nothing is fetched (an image becomes a link to it). The work grows
// with the length of the text alone: nesting has bounds, and no expression looks back.
import {copyText, el, icon} from "./dom.js";
import {highlight} from "./highlight.js";

export const ALLOWED = new Set(["P", "H1", "H2", "H3", "H4", "H5", "H6", "STRONG", "EM", "DEL", "CODE", "PRE", "A", "UL",
    "OL", "LI", "BLOCKQUOTE", "HR", "BR", "TABLE", "THEAD", "TBODY", "TR", "TH", "TD", "DIV", "SPAN", "BUTTON", "svg", "path",
    "INPUT"]);
const DEPTH = 10, FRAMES = 48, LINK = 2048;

export function safeUrl(text) {
    try {
        const url = new URL(text);
        return ["http:", "https:", "mailto:"].includes(url.protocol) ? url.href : null;
    } catch (e) {
        return null;
    }
}

function link(url, children) {
    return el("a", {href: url, title: url, target: "_blank", rel: "noopener noreferrer nofollow"}, children);
}

/* ---- within a block ---- */

const PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
const isSpace = (c) => c === undefined || c === " " || c === "\n" || c === "\t";
const isPunctuation = (c) => c !== undefined && PUNCTUATION.includes(c);

// Where each run of backticks ends a code span that another of its length began: Map of start -> start of the end.
function pairTicks(text) {
    const waiting = new Map(), pairs = new Map(), runs = [];
    for (let i = text.indexOf("`"); i >= 0; i = text.indexOf("`", i)) {
        const from = i;
        while (text[i] === "`") i++;
        runs.push([from, i - from]);
    }
    for (let k = runs.length - 1; k >= 0; k--) {
        const [from, n] = runs[k];
        if (waiting.has(n)) pairs.set(from, waiting.get(n));
        waiting.set(n, from);
    }
    return pairs;
}

// Where each "[" is closed. Escaped ones are none.
function pairBrackets(text) {
    const open = [], pairs = new Map();
    for (let i = 0; i < text.length; i++) {
        if (text[i] === "\\") i++;
        else if (text[i] === "[") open.push(i);
        else if (text[i] === "]" && open.length) pairs.set(open.pop(), i);
    }
    return pairs;
}

// The "(destination "title")" at `at`: [url, behind it], or null.
function destination(text, at) {
    let i = at + 1, depth = 0, url = "";
    const end = Math.min(text.length, at + LINK);
    while (i < end && isSpace(text[i])) i++;
    if (text[i] === "<") {
        for (i++; i < end && text[i] !== ">" && text[i] !== "\n"; i++) url += text[i];
        i++;
    } else {
        for (; i < end && !isSpace(text[i]) && depth < 16; i++) {
            if (text[i] === "(") depth++;
            else if (text[i] === ")" && !depth--) break;
            if (text[i] === "\\" && isPunctuation(text[i + 1])) i++;
            url += text[i];
        }
    }
    while (i < end && text[i] !== ")" && text[i] !== "\n") i++; // a title is passed over
    return text[i] === ")" && i < end ? [url, i + 1] : null;
}

const BARE = /https?:\/\/[^\s<>"'`{}|\\^[\]]{1,2000}/y;

// A URL that stands in the text, without the signs that end a sentence.
function bareUrl(text, at) {
    BARE.lastIndex = at;
    const found = BARE.exec(text);
    if (!found) return null;
    let url = found[0];
    while (url && ".,;:!?*_~".includes(url[url.length - 1])) url = url.slice(0, -1);
    if (url.endsWith(")") && !url.includes("(")) url = url.slice(0, -1);
    return safeUrl(url) && url.length > 10 ? url : null;
}

class Inline {
    constructor(text, inLink) {
        this.text = text;
        this.inLink = inLink;
        this.frames = [{mark: "", n: 0, nodes: []}];
        this.open = {"*": 0, "_": 0, "~": 0};
        this.plain = "";
    }

    put(node) {
        this.flush();
        this.frames[this.frames.length - 1].nodes.push(node);
    }

    flush() {
        if (this.plain) this.frames[this.frames.length - 1].nodes.push(this.plain);
        this.plain = "";
    }

    // The innermost frame was none: its mark is text.
    fold() {
        const frame = this.frames.pop();
        this.open[frame.mark]--;
        const above = this.frames[this.frames.length - 1];
        above.nodes.push(frame.mark.repeat(frame.n));
        for (const node of frame.nodes) above.nodes.push(node);
    }

    // A run of n marks, which may end what others began.
    close(mark, n) {
        this.flush();
        while (n && this.open[mark]) {
            while (this.frames[this.frames.length - 1].mark !== mark) this.fold();
            const frame = this.frames[this.frames.length - 1];
            const used = mark === "~" ? 2 : Math.min(n, frame.n, 2);
            if (used > n || used > frame.n) break;
            this.frames.pop();
            this.open[mark]--;
            const node = el(mark === "~" ? "del" : used === 2 ? "strong" : "em", null, frame.nodes);
            n -= used;
            frame.n -= used;
            if (frame.n) {
                this.frames.push({mark, n: frame.n, nodes: [node]});
                this.open[mark]++;
            } else {
                this.frames[this.frames.length - 1].nodes.push(node);
            }
        }
        return n;
    }

    delimiter(i) {
        const mark = this.text[i];
        let n = 0;
        while (this.text[i + n] === mark) n++;
        const before = this.text[i - 1], after = this.text[i + n];
        const leftFlank = !isSpace(after) && (!isPunctuation(after) || isSpace(before) || isPunctuation(before));
        const rightFlank = !isSpace(before) && (!isPunctuation(before) || isSpace(after) || isPunctuation(after));
        const word = mark === "_"; // not within words
        const opens = leftFlank && (!word || !rightFlank || isPunctuation(before));
        const closes = rightFlank && (!word || !leftFlank || isPunctuation(after));
        let left = closes ? this.close(mark, n) : n;
        if (opens && left && (mark !== "~" || left === 2) && this.frames.length < FRAMES) {
            this.flush();
            this.frames.push({mark, n: left, nodes: []});
            this.open[mark]++;
            left = 0;
        }
        this.plain += mark.repeat(left);
        return i + n;
    }

    code(i) {
        let n = 0;
        while (this.text[i + n] === "`") n++;
        const end = this.ticks.get(i);
        if (end === undefined) {
            this.plain += "`".repeat(n);
            return i + n;
        }
        let inner = this.text.slice(i + n, end).replaceAll("\n", " ");
        if (inner.length > 2 && inner.startsWith(" ") && inner.endsWith(" ") && inner.trim()) inner = inner.slice(1, -1);
        this.put(el("code", null, inner));
        return end + n;
    }

    // "[label](destination)", or 0
    bracket(i, isImage) {
        const from = i + (isImage ? 1 : 0), to = this.brackets.get(from);
        if (this.inLink || to === undefined || this.text[to + 1] !== "(") return 0;
        const found = destination(this.text, to + 1);
        const url = found && safeUrl(found[0]);
        if (!url) return 0;
        const label = this.text.slice(from + 1, to);
        this.put(link(url, isImage ? [`image: ${label || url}`] : inline(label || url, true)));
        return found[1];
    }

    angle(i) {
        let end = i + 1;
        while (end < i + LINK && this.text[end] !== ">" && this.text[end] !== "<" && !isSpace(this.text[end])) end++;
        const inner = this.text[end] === ">" ? this.text.slice(i + 1, end) : "";
        if (this.inLink || !inner || !safeUrl(inner)) return 0;
        this.put(link(safeUrl(inner), [inner]));
        return end + 1;
    }

    step(i) {
        const c = this.text[i], next = this.text[i + 1];
        let to = 0;
        if (c === "\\" && next === "\n") this.put(el("br")), to = i + 2;
        else if (c === "\\" && isPunctuation(next)) this.plain += next, to = i + 2;
        else if (c === "`") to = this.code(i);
        else if (c === "[" || (c === "!" && next === "[")) to = this.bracket(i, c === "!");
        else if (c === "*" || c === "_" || c === "~") to = this.delimiter(i);
        else if (c === "<") to = this.angle(i);
        else if (c === "h" && !this.inLink && !/\w/.test(this.text[i - 1] || "")) {
            const url = bareUrl(this.text, i);
            if (url) this.put(link(safeUrl(url), [url])), to = i + url.length;
        } else if (c === "\n") {
            this.plain = this.plain.trimEnd();
            this.put(el("br")); // models mean their line ends
            to = i + 1;
        }
        if (!to) this.plain += c, to = i + 1;
        return to;
    }

    run() {
        this.ticks = pairTicks(this.text);
        this.brackets = this.inLink ? new Map() : pairBrackets(this.text);
        for (let i = 0; i < this.text.length;) i = this.step(i);
        this.flush();
        while (this.frames.length > 1) this.fold();
        return this.frames[0].nodes;
    }
}

function inline(text, inLink = false) {
    return new Inline(text, inLink).run();
}

/* ---- blocks ---- */

const indentOf = (line) => {
    let n = 0, i = 0;
    for (; line[i] === " " || line[i] === "\t"; i++) n += line[i] === "\t" ? 4 - (n % 4) : 1;
    return n;
};
const isBlank = (line) => !line.trim();

function fenceOf(line) {
    const found = /^ {0,3}(`{3,}|~{3,})/.exec(line);
    if (!found) return null;
    const info = line.slice(found[0].length).trim();
    return found[1][0] === "`" && info.includes("`") ? null : {mark: found[1], info};
}

function isFenceEnd(line, mark) {
    const text = line.trim();
    return text.length >= mark.length && indentOf(line) < 4 && text === mark[0].repeat(text.length);
}

function headingOf(line) {
    const found = /^ {0,3}(#{1,6})(?=[ \t]|$)/.exec(line);
    if (!found) return null;
    let text = line.slice(found[0].length).trim(), end = text.length;
    while (end && text[end - 1] === "#") end--;
    if (!end || isSpace(text[end - 1])) text = text.slice(0, end).trim();
    return {level: found[1].length, text};
}

function isRule(line) {
    const text = line.replace(/[ \t]/g, "");
    return text.length >= 3 && indentOf(line) < 4 && "-*_".includes(text[0]) && text === text[0].repeat(text.length);
}

function itemOf(line) {
    const found = /^( {0,3})([-*+]|\d{1,9}[.)])(?=[ \t]|$)/.exec(line);
    if (!found || isRule(line)) return null;
    const rest = line.slice(found[0].length), space = Math.min(indentOf(rest), 5);
    const inner = isBlank(rest) ? 1 : space > 4 ? 1 : space;
    return {indent: found[0].length + inner, mark: found[2].slice(-1), number: parseInt(found[2], 10),
        text: rest.replace(/^\t/, "    ").slice(isBlank(rest) ? rest.length : inner)};
}

// Cells of a row: split at "|" that are neither escaped nor within code.
function cellsOf(line) {
    const cells = [];
    let cell = "", ticks = false;
    const text = line.trim().replace(/^\|/, "");
    for (let i = 0; i < text.length; i++) {
        if (text[i] === "\\" && text[i + 1] === "|") cell += "|", i++;
        else if (text[i] === "|" && !ticks) cells.push(cell.trim()), cell = "";
        else {
            if (text[i] === "`") ticks = !ticks;
            cell += text[i];
        }
    }
    if (cell.trim()) cells.push(cell.trim());
    return cells;
}

function alignsOf(line) {
    if (line === undefined || !line.includes("-") || !/^[ \t|:-]+$/.test(line)) return null;
    const cells = cellsOf(line);
    if (!cells.length || !cells.every((c) => /^:?-+:?$/.test(c))) return null;
    return cells.map((c) => (c.endsWith(":") ? (c.startsWith(":") ? "center" : "right") : ""));
}

const isTable = (lines, i) => lines[i].includes("|") && alignsOf(lines[i + 1]) !== null &&
    alignsOf(lines[i + 1]).length === cellsOf(lines[i]).length;

function interrupts(lines, i) {
    const line = lines[i];
    const item = itemOf(line);
    return fenceOf(line) || headingOf(line) || isRule(line) || /^ {0,3}>/.test(line) || isTable(lines, i) ||
        (item && !isBlank(item.text) && (Number.isNaN(item.number) || item.number === 1));
}

// The first line behind the block that begins at i, and its kind.
function blockAt(lines, i) {
    const fence = fenceOf(lines[i]);
    let to = i + 1;
    if (fence) {
        while (to < lines.length && !isFenceEnd(lines[to], fence.mark)) to++;
        return {kind: "fence", from: i, to: Math.min(to + 1, lines.length), closed: to < lines.length, fence};
    }
    if (headingOf(lines[i])) return {kind: "heading", from: i, to};
    if (isRule(lines[i])) return {kind: "rule", from: i, to};
    if (/^ {0,3}>/.test(lines[i])) {
        while (to < lines.length && /^ {0,3}>/.test(lines[to])) to++;
        return {kind: "quote", from: i, to};
    }
    if (itemOf(lines[i])) return {kind: "list", from: i, to: listEnd(lines, i)};
    if (indentOf(lines[i]) >= 4) {
        while (to < lines.length && (isBlank(lines[to]) || indentOf(lines[to]) >= 4)) to++;
        return {kind: "indented", from: i, to};
    }
    if (isTable(lines, i)) {
        to = i + 2;
        while (to < lines.length && !isBlank(lines[to]) && lines[to].includes("|")) to++;
        return {kind: "table", from: i, to};
    }
    while (to < lines.length && !isBlank(lines[to])) {
        if (/^ {0,3}(=+|-{2,})[ \t]*$/.test(lines[to])) return {kind: "underlined", from: i, to: to + 1};
        if (interrupts(lines, to)) break;
        to++;
    }
    return {kind: "paragraph", from: i, to};
}

// Lines of a list: its items, what is indented below them, and lines that go on with a paragraph.
function listEnd(lines, i) {
    const first = itemOf(lines[i]);
    let indent = first.indent, to = i + 1, fence = null;
    for (; to < lines.length; to++) {
        const line = lines[to];
        if (fence) {
            if (isFenceEnd(line.trim(), fence)) fence = null;
            if (isBlank(line) || indentOf(line) >= 2) continue;
            return to;
        }
        if (isBlank(line)) {
            let next = to + 1;
            while (next < lines.length && isBlank(lines[next])) next++;
            const item = next < lines.length && itemOf(lines[next]);
            if (next >= lines.length || !((item && item.mark === first.mark) || indentOf(lines[next]) >= Math.min(indent, 4)))
                return to;
            to = next - 1;
            continue;
        }
        const item = itemOf(line), isInner = indentOf(line) >= Math.min(indent, 4);
        if (item && !isInner) {
            if (item.mark !== first.mark) return to;
            indent = item.indent;
        } else if (!isInner && (isBlank(lines[to - 1]) || interrupts(lines, to))) return to;
        const opened = indentOf(line) >= 2 && fenceOf(line.trim());
        if (opened) fence = opened.mark;
    }
    return to;
}

function codeBlock(code, language) {
    const block = el("code", {class: "block-code"});
    highlight(code, language, block);
    const copy = el("button", {type: "button", class: "code-copy", "aria-label": "Copy this code", title: "Copy this code"},
        icon("copy"));
    copy.addEventListener("click", async () => {
        await copyText(code);
        copy.replaceChildren(icon("check"));
        setTimeout(() => copy.replaceChildren(icon("copy")), 1200);
    });
    return el("div", {class: "code"},
        el("div", {class: "code-head"}, el("span", null, language || "text"), copy),
        el("pre", {tabindex: "0", role: "region", "aria-label": language ? `Code, ${language}` : "Code"}, block));
}

function list(lines, depth) {
    const first = itemOf(lines[0]), items = [];
    let item = null, loose = false, blank = false;
    for (const line of lines) {
        const mark = itemOf(line);
        if (mark && (!item || indentOf(line) < Math.min(item.indent, 4))) {
            if (blank) loose = true;
            item = {indent: mark.indent, lines: [mark.text]};
            items.push(item);
        } else if (isBlank(line)) {
            item.lines.push("");
        } else {
            if (blank && indentOf(line) < item.indent + 2) loose = true;
            let cut = 0, n = 0;
            while (n < item.indent && (line[cut] === " " || line[cut] === "\t")) n += line[cut++] === "\t" ? 4 : 1;
            item.lines.push(line.slice(cut));
        }
        blank = isBlank(line);
    }
    const ordered = !Number.isNaN(first.number);
    return el(ordered ? "ol" : "ul", {start: ordered && first.number !== 1 ? first.number : null},
        items.map((one) => listItem(one.lines, depth, loose)));
}

function listItem(lines, depth, loose) {
    const task = /^\[([ xX])\][ \t]+/.exec(lines[0]);
    if (task) lines[0] = lines[0].slice(task[0].length);
    const nodes = blocks(lines, depth + 1);
    const flat = loose ? nodes : nodes.flatMap((n) => (n.tagName === "P" ? [...n.childNodes] : [n]));
    const box = task && el("input", {type: "checkbox", disabled: true, checked: task[1] !== " ",
        "aria-label": task[1] !== " " ? "done" : "to do"});
    return el("li", {class: task ? "task" : null}, box, flat);
}

function table(lines) {
    const aligns = alignsOf(lines[1]);
    const row = (line, tag) => {
        const cells = cellsOf(line).slice(0, aligns.length);
        while (cells.length < aligns.length) cells.push("");
        return el("tr", null, cells.map((c, i) => el(tag, {class: aligns[i] || null, scope: tag === "th" ? "col" : null}, inline(c))));
    };
    return el("div", {class: "table", tabindex: "0", role: "region", "aria-label": "Table"},
        el("table", null, el("thead", null, row(lines[0], "th")),
            el("tbody", null, lines.slice(2).map((line) => row(line, "td")))));
}

function node(lines, block, depth) {
    const own = lines.slice(block.from, block.to);
    switch (block.kind) {
    case "fence":
        return codeBlock(own.slice(1, block.closed ? -1 : undefined).join("\n"), block.fence.info.split(/[\s{,]/)[0].slice(0, 24));
    case "heading": {
        const {level, text} = headingOf(own[0]);
        return el(`h${Math.min(level + 2, 6)}`, null, inline(text)); // below the page's own
    }
    case "underlined":
        return el(own[own.length - 1].trim()[0] === "=" ? "h3" : "h4", null, inline(own.slice(0, -1).join("\n").trim()));
    case "rule":
        return el("hr");
    case "quote":
        return el("blockquote", null, blocks(own.map((l) => l.replace(/^ {0,3}> ?/, "")), depth + 1));
    case "list":
        return list(own, depth);
    case "indented":
        return codeBlock(own.map((l) => l.replace(/^(?: {4}|\t)/, "")).join("\n").trimEnd(), "");
    case "table":
        return table(own);
    default:
        return el("p", null, inline(own.map((l) => l.trimStart()).join("\n").trimEnd()));
    }
}

function split(lines) {
    const out = [];
    for (let i = 0; i < lines.length;) {
        if (isBlank(lines[i])) i++;
        else {
            const block = blockAt(lines, i);
            out.push(block);
            i = block.to;
        }
    }
    return out;
}

function blocks(lines, depth) {
    if (depth > DEPTH) return lines.some((l) => !isBlank(l)) ? [el("p", null, lines.join("\n"))] : [];
    return split(lines).map((b) => node(lines, b, depth));
}

const linesOf = (text) => text.replaceAll("\r\n", "\n").replaceAll("\0", "\ufffd").split("\n");

export function render(text) {
    const fragment = document.createDocumentFragment();
    for (const one of blocks(linesOf(text), 0)) fragment.append(one);
    return fragment;
}

// A text that grows: what is above the block that changed keeps its nodes, and with them selection and focus.
export class Markdown {
    constructor(container) {
        this.container = container;
        this.shown = [];
    }

    update(text) {
        const lines = linesOf(text), now = split(lines);
        const sources = now.map((b) => b.kind + lines.slice(b.from, b.to).join("\n"));
        let same = 0;
        while (same < sources.length && sources[same] === this.shown[same]) same++;
        while (this.container.childNodes.length > same) this.container.lastChild.remove();
        for (let i = same; i < now.length; i++) this.container.append(node(lines, now[i], 0));
        this.shown = sources;
    }
}
