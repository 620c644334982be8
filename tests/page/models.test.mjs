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
