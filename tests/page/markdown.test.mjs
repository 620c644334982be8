// SPDX-License-Identifier: Apache-2.0
// The renderer of Markdown in the browser: what it draws, that hostile text makes no element beyond its list and no link
// but to http, https and mailto, whatever the text is, and that its work grows with the length of the text alone.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {Server, Visit, closeBrowser} from "./lib.mjs";

let server, v;
before(async () => {
    server = await Server.fake();
    v = await Visit.to(server);
    await v.page.evaluate(async () => {
        const {render, Markdown, ALLOWED} = await import("/page/markdown.js");
        window.draw = (text) => {
            const root = document.createElement("div");
            root.append(render(text));
            return root;
        };
        window.faultsOf = (root) => {
            const out = [];
            const fine = new Set(["class", "title", "href", "target", "rel", "start", "scope", "tabindex", "role", "aria-label", "type", "disabled",
                "viewBox", "aria-hidden", "focusable", "d", "checked"]);
            for (const e of root.querySelectorAll("*")) {
                if (!ALLOWED.has(e.tagName)) out.push(e.tagName);
                for (const a of e.attributes) if (!fine.has(a.name)) out.push(`${e.tagName} ${a.name}`);
                if (e.tagName === "A" && !["http:", "https:", "mailto:"].includes(e.protocol)) out.push(e.href);
                if (e.tagName === "A" && e.rel !== "noopener noreferrer nofollow") out.push(e.rel);
            }
            return out;
        };
        window.grown = (text, at) => {
            const root = document.createElement("div"), m = new Markdown(root);
            for (const n of at) m.update(text.slice(0, n));
            m.update(text);
            return root;
        };
        // the tree without ids and handlers
        window.shape = (root) => (root.normalize(), [...root.childNodes]).map((n) => (n.nodeType === 3 ? JSON.stringify(n.data)
            : `${n.tagName.toLowerCase()}(${window.shape(n)})`)).join(" ");
    });
});
after(async () => {
    await v.end();
    await closeBrowser();
    await server.stop();
});

const shape = (text) => v.page.evaluate((t) => window.shape(window.draw(t)), text);

test("what Markdown says is drawn", async () => {
    const table = {
        "a *b* **c** ***d***": 'p("a " em("b") " " strong("c") " " em(strong("d")))',
        "snake_case_name and _it_": 'p("snake_case_name and " em("it"))',
        "2 * 3 * 4": 'p("2 * 3 * 4")',
        "~~gone~~ ~one~": 'p(del("gone") " ~one~")',
        "`a *b*` ``c ` d``": 'p(code("a *b*") " " code("c ` d"))',
        "[x](https://a.b/c_d_e) \\[y\\]": 'p(a("x") " [y]")',
        "[**b**](https://a.b)": "p(a(strong(\"b\")))",
        "see https://a.b/c, or <mailto:x@y.z>.": 'p("see " a("https://a.b/c") ", or " a("mailto:x@y.z") ".")',
        "![alt](https://a.b/c.png)": 'p(a("image: alt"))',
        "# One\ntext": 'h3("One") p("text")',
        "One\n===\n\nTwo\n---": 'h3("One") h4("Two")',
        "a\nb  \nc": 'p("a" br() "b" br() "c")',
        "- a\n- b\n  - c\n\n1. d\n2. e": 'ul(li("a") li("b" ul(li("c")))) ol(li("d") li("e"))',
        "- two\n  1. deeper\n- three": 'ul(li("two" ol(li("deeper"))) li("three"))',
        "1. a\n\n   b\n2. c": 'ol(li(p("a") p("b")) li(p("c")))',
        "- a\n  ```\n  - x\n  ```\n- b": 'ul(li("a" div(div(span("text") button(svg(path()))) pre(code("- x")))) li("b"))',
        "3. x\n4. y": 'ol(li("x") li("y"))',
        "- [x] done\n- [ ] open": 'ul(li(input() "done") li(input() "open"))',
        "> a\n> b\n\nc": 'blockquote(p("a" br() "b")) p("c")',
        "---": "hr()",
        "<b>x</b> & <script>y</script>": 'p("<b>x</b> & <script>y</script>")',
        "| a | b |\n|---|--:|\n| 1 | `x|y` |\n\nz": 'div(table(thead(tr(th("a") th("b"))) tbody(tr(td("1") td(code("x|y")))))) p("z")',
    };
    for (const [text, want] of Object.entries(table)) assert.equal(await shape(text), want, text);
    const code = await v.page.evaluate(() => {
        const root = window.draw("```js\nlet x = \"<img>\"; // <b>\n```\nafter");
        return [root.querySelector(".block-code").textContent, [...root.querySelectorAll(".block-code span")].map((s) => `${s.className} ${s.textContent}`),
            root.lastChild.textContent];
    });
    assert.equal(code[0], 'let x = "<img>"; // <b>');
    assert.ok(code[1].includes("hl-word let") && code[1].includes('hl-string "<img>"') && code[1].includes("hl-comment // <b>"), code[1].join());
    assert.equal(code[2], "after");
});

test("hostile text makes nothing else", async () => {
    const hostile = ["<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))", "[x](java\nscript:alert(1))",
        "[x]( javascript:alert(1))", "[x](<javascript:alert(1)>)", "[x](&#106;avascript:alert(1))", "[x](data:text/html,<script>alert(1)</script>)", "[x](vbscript:x)",
        "[x](\u0001javascript:alert(1))", "<javascript:alert(1)>", "![x](javascript:alert(1))", "[x](//evil.example/x)", "[x](file:///etc/passwd)", "[x](blob:x)",
        "[x](https://a.b \"onmouseover=alert(1)\")", "```\"><script>alert(1)</script>\nx\n```", "```js onload=x\n</code></pre><script>alert(1)</script>\n```",
        "| <img src=x> |\n| --- |\n| <svg onload=x> |", "<a href=\"javascript:x\">y</a>", "<iframe src=//evil.example>", "<style>*{}</style>", "[a]: javascript:x\n\n[a]",
        "<svg><script>x</script></svg>", "<math><mi xlink:href='javascript:x'>", "\0<scr\0ipt>", "https://a.b/\"onclick=x", "[<img src=x onerror=x>](https://a.b)",
        "<https://a.b/\"><img src=x>", "# <script>\n> <script>\n- <script>", "<!--><script>x</script>-->", "[x](https://user:pass@evil.example)"];
    for (const text of hostile) {
        const [faults, links] = await v.page.evaluate((t) => {
            const root = window.draw(t);
            return [window.faultsOf(root), [...root.querySelectorAll("a")].map((a) => a.href)];
        }, text);
        assert.deepEqual(faults, [], text);
        assert.ok(links.every((l) => /^(https?:|mailto:)/.test(l)), `${text}: ${links}`);
    }
    assert.equal(await v.page.evaluate(() => document.querySelectorAll("script").length), 2);
});

test("random text, whole and as it grows", async () => {
    const seed = Number(process.env.WEFT_SEED || 1) | 0, rounds = process.env.WEFT_SWEEPS === "1" ? 20000 : 4000;
    const found = await v.page.evaluate(([seed, rounds]) => {
        const parts = ["*", "**", "_", "__", "~~", "`", "``", "```", "```js\n", "\n", "\n\n", " ", "    ", "\t", "# ", "## ", "> ", "- ", "* ", "1. ", "2) ", "[", "]", "(", ")", "](",
            "](https://a.b", "](javascript:", "!", "![", "<", ">", "<b>", "</b>", "<script>", "<img src=x onerror=y>", "|", "\n|---|---|\n", "| a | b |\n", "\\", "\\[", "&lt;", "&#x6a;",
            "https://a.b/c", "javascript:x", "data:text/html,x", "mailto:x@y", "a", "word", "é", "😀", "\u202e", "\0", "\r\n", "---", "===", "[x] ", ":", "\"", "'", "$", "{", "}", "//x", "/*"];
        let state = seed;
        const next = (n) => {
            state = (Math.imul(state, 1664525) + 1013904223) | 0;
            return (state >>> 8) % n;
        };
        for (let i = 0; i < rounds; i++) {
            let text = "";
            for (let n = next(40); n >= 0; n--) text += parts[next(parts.length)];
            const root = window.draw(text), faults = window.faultsOf(root);
            if (faults.length) return [text, faults.join()];
            const cuts = [next(text.length + 1), next(text.length + 1)].sort((a, b) => a - b);
            if (window.shape(window.grown(text, cuts)) !== window.shape(root)) return [text, "differs as it grows", cuts.join()];
        }
        return null;
    }, [seed, rounds]);
    assert.equal(found, null, `WEFT_SEED=${seed}: ${JSON.stringify(found)}`);
});

test("the work grows with the length alone", async () => {
    const pieces = ["*a ", "**a _b ", "[", "[](", "![a](", "`", "``a`", "<", "> ", "- ", "| a ", "# ", "\n- a\n  ", "~~a ", "\\", "https://", "_a_", "a*b*", "```\n", "1. a\n", "| a |\n|-|\n", "(\"", "[a](b \"", "\n>"];
    for (const piece of pieces) {
        const times = await v.page.evaluate((p) => [20000, 160000].map((n) => {
            const text = p.repeat(Math.ceil(n / p.length)), began = performance.now();
            window.draw(text);
            return performance.now() - began;
        }), piece);
        // eight times the length; the square of that would be 64 times the work
        assert.ok(times[1] < 30 * Math.max(times[0], 8), `${JSON.stringify(piece)}: ${times.map((t) => t.toFixed(0))} ms`);
    }
});
