// SPDX-License-Identifier: Apache-2.0
// highlight.js: colours of code, by families of languages: comments, strings, numbers, words of the language, names that
// are called. One pass, each expression anchored where it stands; what is long stays plain.
import {el} from "./dom.js";

const LONG = 60000;
const words = (text) => new Set(text.split(" "));

const C_LIKE = "auto break case char const continue default do double else enum extern float for goto if inline int long " +
    "register restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true " +
    "false NULL nullptr class public private protected virtual override template typename namespace using new delete this " +
    "throw try catch constexpr noexcept operator friend explicit mutable import package final extends implements interface " +
    "abstract synchronized instanceof super boolean byte null record var sealed async await foreach string object params " +
    "internal readonly out ref size_t int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t";
const JS = "async await break case catch class const continue debugger default delete do else export extends false finally for " +
    "function if import in instanceof let new null of return static super switch this throw true try typeof undefined var " +
    "void while with yield type interface enum implements namespace declare readonly abstract as keyof string number boolean " +
    "any unknown never satisfies";
const PYTHON = "False None True and as assert async await break class continue def del elif else except finally for from global if " +
    "import in is lambda nonlocal not or pass raise return try while with yield match case self";
const RUST = "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut " +
    "pub ref return self Self static struct super trait true type unsafe use where while i8 i16 i32 i64 u8 u16 u32 u64 usize " +
    "isize f32 f64 bool char str String Vec Option Result Some None Ok Err";
const GO = "break case chan const continue default defer else fallthrough for func go goto if import interface map package range " +
    "return select struct switch type var nil true false string int int64 uint64 float64 bool byte rune error make len append";
const SHELL = "if then else elif fi for while until do done case esac in function return export local readonly set unset echo cd " +
    "exit source alias test eval exec trap shift";
const SQL = "select from where and or not insert into values update set delete create table drop alter add join left right inner " +
    "outer on as group by order having limit offset union all distinct null is in like between exists primary key foreign " +
    "references index view with case when then else end count sum avg min max int integer text varchar boolean default";

const LINE = "\\/\\/[^\\n]*", BLOCK = "\\/\\*[^]*?(?:\\*\\/|$)", HASH = "#[^\\n]*";
const DOUBLE = '"(?:\\\\[^]|[^"\\\\\\n])*"?', SINGLE = "'(?:\\\\[^]|[^'\\\\\\n])*'?", TICK = "`(?:\\\\[^]|[^`\\\\])*`?";
const TRIPLE = '"""[^]*?(?:"""|$)|\'\'\'[^]*?(?:\'\'\'|$)';

function family(comments, strings, keywords, more = {}) {
    return {rule: new RegExp(`(${comments || "(?!)"})|(${strings})|(\\b(?:0[xX][\\da-fA-F_]+|\\d[\\d_]*(?:\\.\\d+)?(?:[eE][+-]?\\d+)?)\\w*)|` +
        `(${more.word || "[A-Za-z_$][\\w$]*"})|(${more.sign || "[{}()\\[\\];,.<>=+\\-*/%&|^!~?:]+"})`, "y"),
    words: words(keywords), anyCase: more.anyCase, noCalls: more.noCalls};
}

const FAMILIES = {
    c: family(`${LINE}|${BLOCK}`, `${DOUBLE}|${SINGLE}`, C_LIKE),
    js: family(`${LINE}|${BLOCK}`, `${DOUBLE}|${SINGLE}|${TICK}`, JS),
    python: family(HASH, `${TRIPLE}|${DOUBLE}|${SINGLE}`, PYTHON),
    rust: family(`${LINE}|${BLOCK}`, `${DOUBLE}|'(?:\\\\.|[^'\\\\])'`, RUST),
    go: family(`${LINE}|${BLOCK}`, `${DOUBLE}|${SINGLE}|${TICK}`, GO),
    shell: family(HASH, `${DOUBLE}|'[^']*'?`, SHELL, {word: "\\$?[A-Za-z_][\\w-]*", noCalls: true}),
    sql: family(`--[^\\n]*|${BLOCK}`, `'(?:''|[^'])*'?|${DOUBLE}`, SQL, {anyCase: true}),
    json: family("", DOUBLE, "true false null", {noCalls: true}),
    yaml: family(HASH, `${DOUBLE}|${SINGLE}`, "true false null yes no", {noCalls: true}),
    css: family(BLOCK, `${DOUBLE}|${SINGLE}`, "important", {word: "[@#.]?[A-Za-z_-][\\w-]*", noCalls: true}),
    html: family("<!--[^]*?(?:-->|$)", `${DOUBLE}|${SINGLE}`, "", {word: "<\\/?[A-Za-z][\\w-]*|[A-Za-z_][\\w-]*", noCalls: true}),
};

const NAMES = {c: "c h cc cpp cxx hpp c++ java cs csharp kotlin kt swift scala php dart cuda glsl", js: "js javascript jsx ts typescript tsx mjs",
    python: "python py python3 ruby rb", rust: "rust rs", go: "go golang", shell: "sh bash shell zsh fish console make makefile dockerfile cmake",
    sql: "sql sqlite postgres mysql", json: "json json5 jsonc jsonl", yaml: "yaml yml toml ini conf", css: "css scss less",
    html: "html xml svg vue"};
const BY_NAME = new Map(Object.entries(NAMES).flatMap(([f, all]) => all.split(" ").map((name) => [name, FAMILIES[f]])));
const CLASSES = ["", "hl-comment", "hl-string", "hl-number", "", "hl-sign"];

function diff(code, parent) {
    for (const line of code.split(/(?<=\n)/)) {
        const kind = line.startsWith("+") ? "hl-added" : line.startsWith("-") ? "hl-removed" : line.startsWith("@@") ? "hl-comment" : "";
        parent.append(kind ? el("span", {class: kind}, line) : line);
    }
}

function classOf(found, own, code, end) {
    let kind = 1;
    while (found[kind] === undefined) kind++;
    if (kind !== 4) return CLASSES[kind];
    const word = found[0];
    if (own.words.has(own.anyCase ? word.toLowerCase() : word) || word[0] === "<") return "hl-word";
    return !own.noCalls && code[end] === "(" ? "hl-call" : "";
}

export function highlight(code, language, parent) {
    const name = language.toLowerCase(), own = BY_NAME.get(name);
    if (code.length > LONG) parent.append(code);
    else if (name === "diff" || name === "patch") diff(code, parent);
    else if (!own) parent.append(code);
    else {
        let plain = "";
        for (let at = 0; at < code.length;) {
            own.rule.lastIndex = at;
            const found = own.rule.exec(code);
            const text = found && found[0] ? found[0] : code[at];
            const kind = found && found[0] ? classOf(found, own, code, at + text.length) : "";
            if (kind) {
                if (plain) parent.append(plain);
                plain = "";
                parent.append(el("span", {class: kind}, text));
            } else plain += text;
            at += text.length;
        }
        if (plain) parent.append(plain);
    }
}
