// SPDX-License-Identifier: Apache-2.0
// charts.js: small charts of what passes: lines over the last minutes, in SVG. Each says its numbers in words as well.
import {el, short, svg} from "./dom.js";

export const LENGTH = 150; // points
const WIDTH = 300, HEIGHT = 64;

// A scale that ends at 1, 2 or 5 of a power of ten.
function niceTop(value) {
    if (!(value > 0)) return 1;
    const power = 10 ** Math.floor(Math.log10(value));
    return power * [1, 2, 5, 10].find((f) => f * power >= value * 0.999);
}

/* lines: [{name, kind: "a" | "b" | "c"}]; top: what the scale ends at, or null: what was seen */
export class Chart {
    constructor(title, lines, {show = short, top = null} = {}) {
        this.title = title;
        this.lines = lines.map((l) => ({...l, values: [], path: svg("path", {class: `line ${l.kind}`}), area: svg("path", {class: `area ${l.kind}`})}));
        this.show = show;
        this.top = top;
        this.now = el("span", {class: "chart-now"});
        this.scale = el("span", {class: "chart-scale"});
        this.picture = svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img"},
            svg("path", {class: "rule", d: `M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`}),
            ...this.lines.map((l) => l.area), ...this.lines.map((l) => l.path));
        const legend = lines.length > 1 && el("span", {class: "legend"}, lines.map((l) => el("span", {class: `key ${l.kind}`}, l.name)));
        this.element = el("figure", {class: "chart"},
            el("figcaption", null, el("span", {class: "chart-title"}, title), this.now), el("div", {class: "plot"}, this.picture, this.scale), legend);
    }

    push(...values) {
        this.lines.forEach((l, i) => {
            l.values.push(Number.isFinite(values[i]) ? values[i] : null);
            if (l.values.length > LENGTH) l.values.shift();
        });
        this.draw();
    }

    draw() {
        const most = Math.max(0, ...this.lines.flatMap((l) => l.values.filter((v) => v !== null)));
        const top = this.top === null ? niceTop(most) : Math.max(this.top, most) || 1;
        for (const l of this.lines) {
            const step = WIDTH / (LENGTH - 1), first = WIDTH - (l.values.length - 1) * step;
            let line = "", area = "", open = false, x = first;
            for (const v of l.values) {
                const y = v === null ? 0 : HEIGHT - 1 - (v / top) * (HEIGHT - 3);
                if (v !== null) {
                    line += `${open ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`;
                    area += open ? `L${x.toFixed(1)} ${y.toFixed(1)}` : `M${x.toFixed(1)} ${HEIGHT}L${x.toFixed(1)} ${y.toFixed(1)}`;
                } else if (open) area += `L${(x - step).toFixed(1)} ${HEIGHT}Z`;
                open = v !== null;
                x += step;
            }
            if (open) area += `L${WIDTH} ${HEIGHT}Z`;
            l.path.setAttribute("d", line);
            l.area.setAttribute("d", area);
        }
        const last = this.lines.map((l) => l.values[l.values.length - 1]);
        const words = last.map((v) => (v === null || v === undefined ? "–" : this.show(v)));
        this.now.textContent = words.join(" · ");
        this.scale.textContent = this.show(top);
        this.picture.setAttribute("aria-label", `${this.title}: ${this.lines.map((l, i) => `${l.name} ${words[i]}`).join(", ")} now; the scale ends at ${this.show(top)}`);
    }
}

// The versions' rows, the newest first, as points [time, value]: how many were published and refused by then, and the KL of each.
export function historyOf(rows) {
    const out = {published: [], rejected: [], kl: []};
    for (const v of rows.slice().reverse()) {
        const own = v.what === "published" || v.what === "rejected" ? out[v.what] : null;
        if (own) own.push([v.time_ms, own.length + 1]);
        if (v.what === "published" && Number.isFinite(v.kl)) out.kl.push([v.time_ms, v.kl]);
    }
    return out;
}

/* lines: [{name, kind, points: [[time in ms, value], ...]}], drawn over time, in steps or (joined) from point to point */
export function stepsChart(title, lines, {show = short, joined = false} = {}) {
    const all = lines.flatMap((l) => l.points), times = all.map(([t]) => t), first = Math.min(...times), last = Math.max(...times);
    const top = niceTop(Math.max(0, ...all.map(([, v]) => v))), x = (t) => (last > first ? 4 + ((t - first) / (last - first)) * (WIDTH - 8) : WIDTH / 2).toFixed(1);
    const y = (v) => (HEIGHT - 2 - (v / top) * (HEIGHT - 6)).toFixed(1), words = lines.map((l) => `${l.name} ${l.points.length ? show(l.points[l.points.length - 1][1]) : 0}`);
    const paths = lines.flatMap((l) => {
        const line = l.points.map(([t, v], i) => (i ? (joined ? `L${x(t)} ${y(v)}` : `H${x(t)}V${y(v)}`) : joined ? `M${x(t)} ${y(v)}` : `M0 ${y(0)}H${x(t)}V${y(v)}`)).join("");
        return [svg("path", {class: `line ${l.kind}`, d: line && !joined ? `${line}H${WIDTH}` : line}), svg("path", {class: `line dots ${l.kind}`, d: l.points.map(([t, v]) => `M${x(t)} ${y(v)}h0`).join("")})];
    });
    const date = (t) => new Date(t).toLocaleString(undefined, last - first < 2 * 86400000 ? {dateStyle: "medium", timeStyle: "short"} : {dateStyle: "medium"});
    return el("figure", {class: "chart"}, el("figcaption", null, el("span", {class: "chart-title"}, title), el("span", {class: "chart-now"}, words.join(" · "))),
        el("div", {class: "plot"}, svg("svg", {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": `${title} from ${date(first)} to ${date(last)}: ${words.join(", ")}; the scale ends at ${show(top)}`},
            svg("path", {class: "rule", d: `M0 .5H${WIDTH}M0 ${HEIGHT / 2}H${WIDTH}M0 ${HEIGHT - 0.5}H${WIDTH}`}), paths), el("span", {class: "chart-scale"}, show(top))),
        el("div", {class: "span quiet"}, el("span", null, date(first)), last > first && el("span", null, date(last))),
        lines.length > 1 && el("span", {class: "legend"}, lines.map((l) => el("span", {class: `key ${l.kind}`}, l.name))));
}
