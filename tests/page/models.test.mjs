// SPDX-License-Identifier: Apache-2.0
// Which models are named and asked for, of what a key sees: the page's own modules, without a browser.
import assert from "node:assert/strict";
import {cpSync, mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, test} from "node:test";
import {pathToFileURL} from "node:url";

const folder = mkdtempSync(join(tmpdir(), "weft-page-"));
after(() => rmSync(folder, {recursive: true}));
cpSync("web", folder, {recursive: true});
writeFileSync(join(folder, "package.json"), '{"type": "module"}');
globalThis.sessionStorage = {getItem: () => ""};
const load = (name) => import(pathToFileURL(join(folder, name)));
const {DEFAULTS, requestOf} = await load("answer.js");
const {ServerView, standingOf, stateOf} = await load("server.js");

const plain = {id: "a"}, loaded = {id: "a", status: {value: "loaded"}}, unloaded = {id: "b", status: {value: "unloaded"}};
const preset = (id, parent) => ({id, parent, meta: {preset: true}}), lora = {id: "pirate", parent: "a", meta: {adapter_id: 0}};

test("a request names a model where one must be named", () => {
    const named = (models, settings = {}) => requestOf({settings: {...DEFAULTS, ...settings}, nodes: {}, head: null}, null, 0, models).model;
    assert.equal(named([plain]), undefined);
    assert.equal(named([plain, lora, preset("brief", "a")]), undefined);
    assert.equal(named([loaded, unloaded]), "a");
    assert.equal(named([preset("brief", "a"), preset("long", "a")]), "brief");
    assert.equal(named([preset("brief", "a")]), "brief");
    assert.equal(named([preset("brief", "a"), preset("long", "a")], {model: "long"}), "long");
    assert.equal(named([loaded, lora, unloaded], {adapter: "pirate"}), "a:pirate");
});

test("slots are asked for where they are, and what fails leaves the rest", async () => {
    const slots = async (models, refused = []) => {
        const asked = [];
        globalThis.fetch = async (url) => {
            const path = String(url).slice(String(url).lastIndexOf("/") + 1);
            asked.push(path);
            return refused.includes(path) ? new Response("{}", {status: 409}) : new Response("[1]", {status: 200});
        };
        const view = Object.create(ServerView.prototype, {models: {value: () => models}});
        return [asked, await view.askSlots()];
    };
    assert.deepEqual(await slots([plain, lora]), [["slots"], [["", [1]]]]);
    assert.deepEqual(await slots([unloaded]), [[], []]);
    assert.deepEqual(await slots([loaded]), [["slots?model=a"], [["", [1]]]]);
    assert.deepEqual(await slots([plain], ["slots"]), [["slots"], [["", []]]]);
    assert.deepEqual(await slots([loaded, unloaded], ["slots?model=a"]), [["slots?model=a"], [["a", []]]]);
    assert.deepEqual(await slots([preset("brief", "a")]), [["slots?model=brief"], [["", [1]]]]);
});

test("what is told of a model: its state, that it stays, why it failed", () => {
    assert.equal(standingOf({...loaded, pinned: true}), "loaded, pinned");
    assert.equal(standingOf({id: "a", status: {value: "unloaded", failed: true, message: "no such file"}}), "failed: no such file");
    assert.equal(stateOf({id: "a", status: {value: "loading", progress: 0.4}}), "loading 40 %");
});

test("what was said of an answer: in words, and as files bring it", async () => {
    const {wordsOf} = await load("feedback.js"), {saidOf, fromFile} = await load("tree.js");
    assert.equal(wordsOf("thumb", {value: "down", state: "kept", prompts: false}), "Thumb down: kept");
    assert.equal(wordsOf("edit", {value: "x", state: "kept", prompts: true}), "Your edit: kept; it stands in your next prompts");
    assert.equal(wordsOf("correction", {value: "x", state: "repeated", prompts: false}), "Your correction: said before, and counts once; it does not enter prompts");
    assert.equal(wordsOf("correction", {value: "x", state: "refused", words: "too much"}), "Your correction was refused: too much");
    assert.deepEqual(saidOf({thumb: {value: "up", state: "odd"}, edit: 5, reward: {value: "1", state: "kept"}}), {});
    assert.equal(saidOf({edit: {value: "x", state: "sending"}}).edit.state, "refused"); // nobody knows what became of it
    const request = {id: "chatcmpl-1", index: 1, part: true, more: {}};
    const [c] = fromFile(JSON.stringify({head: "a", nodes: {a: {id: "a", role: "assistant", content: "x", request, said: {thumb: {value: "up", state: "kept"}}}}}), DEFAULTS);
    assert.deepEqual(Object.values(c.nodes)[0].request, {id: "chatcmpl-1", index: 1, part: true});
    assert.equal(Object.values(c.nodes)[0].said.thumb.value, "up");
});

test("each time that something is said has a key, which what was not answered keeps", async () => {
    globalThis.document = {getElementById: () => null};
    globalThis.BroadcastChannel = undefined; // which would keep the test from ending
    const {Chat} = await load("chat.js"), {saidOf} = await load("tree.js");
    const answers = [], keys = [];
    globalThis.fetch = async (url, {headers, body}) => {
        keys.push(headers["Idempotency-Key"]);
        assert.equal(headers["Content-Type"], "application/json");
        assert.equal(JSON.parse(body).request_id, "chatcmpl-1");
        const status = answers.shift();
        if (!status) throw new TypeError("the connection was reset");
        return new Response(status === 200 ? '{"repeated": false, "in_prompts": false}' : "{}", {status});
    };
    const c = {id: "c", nodes: {a: {id: "a", role: "assistant", request: {id: "chatcmpl-1", index: 0}}}};
    const chat = Object.assign(Object.create(Chat.prototype), {c, running: new Map(), refresh() {}, keep: async () => {}});
    const say = async (value, status) => {
        answers.push(status);
        await chat.tell(c.nodes.a, "thumb", value);
        assert.match(keys.at(-1), /^"[0-9a-f]{24}"$/);
        c.nodes.a.said = saidOf(c.nodes.a.said); // as the database brings it
        return [keys.at(-1), c.nodes.a.said.thumb.state];
    };
    const [lost] = await say("up", 0);
    assert.deepEqual(await say("up", 502), [lost, "refused"]);
    assert.deepEqual(await say("up", 200), [lost, "kept"]);
    const others = [await say("up", 200), await say("down", 0), await say("up", 429), await say("up", 200)].map(([key]) => key);
    assert.equal(new Set([lost, ...others]).size, 5); // other words, and what was answered, begin anew
});

test("what became of versions: in words, and over time", async () => {
    const {fateOf} = await load("learning.js"), {historyOf} = await load("charts.js");
    assert.equal(fateOf({what: "rejected", reason: "kl"}), "refused by the gate: it would have spoken too differently from the base (kl)");
    assert.equal(fateOf({what: "rejected", reason: "new-one"}), "refused by the gate: new-one");
    assert.equal(fateOf({what: "rolled_back", version: 0}), "gone back to the base alone");
    assert.match(fateOf({what: "published", other_model: true}), /another model/);
    const rows = [{what: "rejected", time_ms: 40}, {what: "rolled_back", time_ms: 35}, {what: "published", time_ms: 30, kl: 0.5}, {what: "rejected", time_ms: 20, kl: 9}, {what: "published", time_ms: 10}];
    assert.deepEqual(historyOf(rows), {published: [[10, 1], [30, 2]], rejected: [[20, 1], [40, 2]], kl: [[30, 0.5]]});
});

test("an answer is known by its request's id; one that goes on is a part", async () => {
    const {run} = await load("answer.js");
    const event = (id) => `data: ${JSON.stringify({id, model: "m", choices: [{index: 0, delta: {content: "x"}, finish_reason: "stop"}]})}\n\ndata: [DONE]\n\n`;
    const node = {content: "", role: "assistant"}, signal = new AbortController().signal;
    globalThis.fetch = async () => new Response(event("one"));
    await run(node, {}, signal, () => {});
    assert.deepEqual(node.request, {id: "one", index: 0});
    node.said = {thumb: {value: "up", state: "kept"}};
    globalThis.fetch = async () => new Response(event("two"));
    await run(node, {}, signal, () => {});
    assert.deepEqual([node.request, node.said], [{id: "two", index: 0, part: true}, undefined]);
});
