// SPDX-License-Identifier: Apache-2.0
// metrics.js: Prometheus' text format, as /metrics has it, to numbers.

const LINE = /^([A-Za-z_:][\w:]*)(?:\{([^}]*)\})? (\S+)$/;

// Map: name -> [{labels, value}]
export function parseMetrics(text) {
    const out = new Map();
    for (const line of text.split("\n")) {
        const found = line[0] === "#" ? null : LINE.exec(line);
        if (!found) continue;
        const labels = {};
        for (const [, name, value] of (found[2] || "").matchAll(/(\w+)="([^"]*)"/g)) labels[name] = value;
        if (!out.has(found[1])) out.set(found[1], []);
        out.get(found[1]).push({labels, value: Number(found[3])});
    }
    return out;
}

// The sum of a name's samples, of those alone whose labels are these.
export function total(metrics, name, labels = {}) {
    let sum = 0;
    for (const s of metrics.get(name) || [])
        if (Object.entries(labels).every(([k, v]) => s.labels[k] === v)) sum += s.value;
    return sum;
}

// What share q of what a histogram gained between two looks stayed below; NaN where it gained nothing.
export function quantile(before, now, name, q) {
    const buckets = (m) => {
        const sums = new Map(); // over other labels
        for (const {labels, value} of m.get(`${name}_bucket`) || []) sums.set(labels.le, (sums.get(labels.le) || 0) + value);
        return sums;
    };
    const old = buckets(before), all = [...buckets(now)].map(([le, v]) => [le === "+Inf" ? Infinity : Number(le), v - (old.get(le) || 0)]);
    all.sort((a, b) => a[0] - b[0]);
    const n = all.length ? all[all.length - 1][1] : 0;
    if (!(n > 0)) return NaN;
    let below = 0, from = 0;
    for (const [to, count] of all) {
        if (count >= q * n) return Number.isFinite(to) ? from + ((to - from) * (q * n - below)) / Math.max(1, count - below) : from;
        below = count;
        from = to;
    }
    return from;
}
