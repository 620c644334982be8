// SPDX-License-Identifier: Apache-2.0
// Keys, a server that goes away and comes back, and the view of the server.
import assert from "node:assert/strict";
import {copyFileSync, mkdtempSync, rmSync, writeFileSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, test} from "node:test";
import {Server, Visit, closeBrowser, until} from "./lib.mjs";

after(closeBrowser);

test("a wrong key is told, a right one works, and it ends with the tab", async () => {
    const server = await Server.fake("--api-key", "key-of-someone");
    const v = await Visit.to(server), p = v.page;
    await p.waitForSelector("#key-dialog[open]");
    await v.shot("key");
    await v.axe("key");
    await p.fill("#key-box", "key-that-is-wrong");
    await p.keyboard.press("Enter");
    await p.waitForFunction(() => document.querySelector("#key-fault").textContent.includes("not one of"));
    await p.fill("#key-box", "key-of-someone");
    await p.keyboard.press("Enter");
    await v.ready();
    await v.say("[say let in]");
    assert.equal((await v.texts())[0], "let in");
    await p.reload();
    await p.waitForSelector(".assistant .body");
    assert.equal(await p.locator("#key-dialog[open]").count(), 0);
    const kept = await p.evaluate(async () => {
        const databases = [];
        for (const {name} of await indexedDB.databases()) {
            const db = await new Promise((done) => (indexedDB.open(name).onsuccess = (e) => done(e.target.result)));
            for (const store of db.objectStoreNames)
                databases.push(await new Promise((done) => (db.transaction(store).objectStore(store).getAll().onsuccess = (e) => done(e.target.result))));
        }
        return JSON.stringify([{...localStorage}, document.cookie, databases]);
    });
    assert.ok(kept.includes("let in") && !kept.includes("key-of-someone"));
    const other = await v.tab();
    await other.waitForSelector("#key-dialog[open]");
    await other.keyboard.press("Escape");
    await p.click("#key");
    await p.click("#key-dialog button[value=forget]");
    await p.waitForSelector("#key-dialog[open]");
    assert.equal(await p.evaluate(() => sessionStorage.length), 0);
    await v.end();
    await server.stop();
});

test("the server goes away within an answer, and comes back", async () => {
    let server = await Server.fake();
    const v = await Visit.to(server), p = v.page;
    await p.fill("#say", "[loop word ][delay 5]");
    await p.press("#say", "Enter");
    await p.waitForFunction(() => document.querySelector(".assistant .body")?.innerText.includes("word word"));
    await server.stop("SIGKILL");
    await p.waitForSelector("#away:not([hidden])");
    await v.idle();
    assert.match((await v.texts())[0], /^word word/);
    assert.match(await p.innerText(".assistant .error"), /lost/);
    await v.shot("away");
    await p.fill("#say", "[say still here]");
    await p.press("#say", "Enter");
    await p.waitForFunction(() => document.querySelectorAll(".assistant .error:not([hidden])").length === 2);
    server = await Server.fake("--port", server.port);
    await p.waitForSelector("#away[hidden]", {state: "attached"});
    await p.locator(".assistant [aria-label='Answer again']").last().click();
    await p.waitForFunction(() => [...document.querySelectorAll(".assistant .body")].pop()?.innerText.startsWith("still here"));
    await p.click("#send");
    await v.idle();
    await server.stop("SIGKILL"); // now while nothing is asked
    await p.fill("#say", "x");
    await p.press("#say", "Enter");
    await p.waitForSelector("#away:not([hidden])");
    await v.end();
});

test("the server as it lives; a key sees its own and the totals", async () => {
    const server = await Server.fake("--api-key", "key-of-someone", "--api-key", "key-of-another", "--admin-key", "key-of-admin");
    const busy = new AbortController();
    const stream = await fetch(`${server.address}/completion`, {method: "POST", signal: busy.signal, headers: {"X-Api-Key": "key-of-another"},
        body: JSON.stringify({prompt: "[loop abc ][delay 20]", stream: true, n_predict: 100000})});
    const look = async (key) => {
        const v = await Visit.to(server, {}, "/#/server"), p = v.page;
        await p.waitForSelector("#key-dialog[open]");
        await p.fill("#key-box", key);
        await p.keyboard.press("Enter");
        await p.waitForSelector(".slots .busy");
        await until(async () => /^[1-9]/.test(await p.innerText(".tile:nth-child(3) dd")), "tokens per second");
        await until(async () => ((await p.getAttribute(".chart .line", "d")) || "").includes("L"), "a line of the chart");
        const seen = {slots: await p.locator(".slots .busy .slot-words").allInnerTexts(), running: await p.innerText(".tile dd"),
            use: await p.innerText("#server > div:last-child"), label: await p.getAttribute(".chart svg", "aria-label")};
        await v.shot(`server-${key}`);
        await v.axe("server");
        await v.end();
        return seen;
    };
    const own = await look("key-of-someone"), admin = await look("key-of-admin"), itself = await look("key-of-another");
    assert.deepEqual(own.slots, ["another key's request"]);
    assert.match(own.running, /^1 of/);
    assert.match(own.use, /No requests yet/);
    assert.match(own.label, /Tokens per second: written \d/);
    for (const seen of [admin, itself]) assert.match(seen.slots[0], /^\d+ \+ \d+ tokens$/);
    busy.abort();
    await stream.body.cancel().catch(() => {});
    await server.stop();
});

test("models that are loaded when asked for: their states are shown", async () => {
    const server = await Server.fake();
    const v = await Visit.to(server), p = v.page;
    const meta = {n_params: 1e9, n_ctx: 4096, size: 5e8};
    let states = [{value: "loaded"}, {value: "unloaded"}], aliases;
    await v.context.route("**/v1/models", (route) => route.fulfill({json: {object: "list", data: [{id: "one", meta, status: states[0], pinned: true}, {id: "two", meta, status: states[1], aliases},
        {id: "one-lora", parent: "one", meta: {adapter_id: 0}}, {id: "two-lora", parent: "two", meta: {adapter_id: 0}}, {id: "brief", parent: "two"}]}}));
    await p.reload();
    await v.ready();
    const options = (label) => p.locator(`[aria-label="${label}"] option`).allInnerTexts();
    assert.deepEqual(await options("model"), ["one", "two (unloaded)"]);
    assert.deepEqual(await options("adapter"), ["no adapter", "one-lora"]);
    await p.selectOption("[aria-label=model]", "two");
    assert.deepEqual(await options("adapter"), ["no adapter", "two-lora", "brief (preset)"]);
    assert.match(await p.innerText("#facts"), /Presets\s+brief/);
    states = [{value: "loaded"}, {value: "loading", progress: 0.4}];
    await v.page.fill("#say", "[say x]");
    await v.page.press("#say", "Enter");
    await until(async () => (await options("model")).join() === "one,two (loading 40 %)", "it is loading");
    assert.equal(v.last.model, "two");
    await p.focus("[aria-label=model]"); // nothing changes under who chooses
    states = [{value: "unloaded"}, {value: "loaded"}];
    aliases = ["deux"];
    await until(async () => (await p.locator("#facts").textContent()).includes("also deux"), "models were read again");
    assert.deepEqual(await options("model"), ["one", "two (loading 40 %)"]);
    await p.focus("#say");
    await until(async () => (await options("model")).join() === "one (unloaded),two", "it is loaded");
    await p.click("#server-tab");
    await until(async () => (await p.innerText("#server")).includes("unloaded"), "the view of the server has the states");
    assert.ok((await p.innerText("#server")).includes("unloaded, pinned"));
    states = [{value: "unloaded", failed: true, message: "no such file"}, {value: "loaded"}];
    await until(async () => (await p.innerText("#server")).includes("failed, pinned: no such file"), "why it failed");
    await v.context.unroute("**/v1/models");
    await v.end();
    await server.stop();
});

test("of several models, none of them the first, each is asked by its name", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weft-page-"));
    copyFileSync("models/pirate.gguf", join(folder, "pirate.gguf"));
    const server = await Server.start("build/weft", ["serve", "--model", "one=models/alderbrook.gguf", "--model", "two=models/alderbrook.gguf",
        "--adapter-dir", folder, "--threads", "2", "--port", "-1"]);
    const v = await Visit.to(server), p = v.page;
    const options = (label) => p.locator(`[aria-label="${label}"] option`).allInnerTexts();
    await v.ready();
    assert.deepEqual(await options("model"), ["one (unloaded)", "two (unloaded)"]);
    await v.say("Hello");
    assert.equal(v.last.model, "one");
    assert.match((await v.texts())[0], /\w/);
    await until(async () => (await options("model"))[0] === "one", "the first is loaded, and no other");
    assert.deepEqual(await options("model"), ["one", "two (unloaded)"]);
    await p.selectOption("[aria-label=model]", "two");
    await v.say("Hello again");
    assert.equal(v.last.model, "two");
    await until(async () => (await options("adapter")).join() === "no adapter,pirate", "it is loaded, with its adapters");
    await p.selectOption("[aria-label=adapter]", "pirate");
    await v.say("And once more");
    assert.equal(v.last.model, "two:pirate"); // the other has one of that name, too
    await p.click("[aria-label='Two answers side by side']");
    await p.selectOption("[aria-label='second model']", "one");
    await v.say("Both");
    assert.deepEqual(v.bodies.slice(-2).map((b) => b.model), ["two:pirate", "one"]);
    assert.equal(await p.locator(".message.assistant .error:visible").count(), 0);
    await p.click("#server-tab");
    await until(async () => (await p.locator("#server h4").allInnerTexts()).join() === "one,two", "slots of both");
    assert.equal(await p.locator(".memory .legend li").count(), 4); // by owner, not by model
    await v.shot("two-models");
    await v.fitsWidth("two models");
    await v.axe("two models");
    await v.end();
    await server.stop();
    rmSync(folder, {recursive: true});
});

test("many models, pinned ones, presets and one that is broken", async () => {
    const folder = mkdtempSync(join(tmpdir(), "weft-page-")), bad = join(folder, "broken.gguf"), file = join(folder, "weft.yaml");
    writeFileSync(bad, "no model");
    const model = (name, more = "") => `  ${name}: {path: models/alderbrook.gguf${more}}\n`;
    writeFileSync(file, `models:\n${model("main")}${model("spare", ", adapters: {pirate: models/pirate.gguf}")}${model("kept")}  broken: {path: "${bad}"}\n` +
        Array.from({length: 12}, (_, i) => model(`further-model-with-a-long-name-${i}`)).join("") +
        "presets:\n  brief: {base: spare, system: Be brief., sampling: {temperature: 0, max_tokens: 12}}\n  captain: {base: spare, adapters: {pirate: 0.9}}\n");
    const server = await Server.start("build/weft", ["serve", "--config", file, "--pin", "kept", "--slots", "2", "--threads", "2", "--port", "-1"]);
    for (const [width, height, name] of [[1280, 800, "wide"], [320, 640, "narrow"]]) {
        const v = await Visit.to(server, {viewport: {width, height}}), p = v.page;
        const options = (label) => p.locator(`[aria-label="${label}"] option`).allInnerTexts();
        const state = async (id) => {
            for (const row of await p.locator("#server tr").allInnerTexts()) {
                const [is, what, told] = row.split("\t");
                if (is === id) return `${what}: ${told}`;
            }
            return "";
        };
        await v.ready();
        assert.deepEqual((await options("model")).length, 16);
        await p.selectOption("[aria-label=model]", "spare");
        assert.deepEqual((await options("adapter")).filter((text) => text.includes("preset")), ["brief (preset)", "captain (preset)"]);
        await p.selectOption("[aria-label=adapter]", "brief");
        await v.say("Hello");
        assert.equal(v.last.model, "brief");
        assert.equal(await p.locator(".message.assistant .error:visible").count(), 0);
        await p.selectOption("[aria-label=model]", "broken");
        await v.say("Hello?");
        assert.match(await p.locator(".message.assistant .error:visible").last().innerText(), /broken/);
        await p.click("#server-tab");
        await until(async () => /^model|also|param/.test(await state("main")), "the table of what is served");
        assert.match(await state("main"), /: loaded, pinned$/);
        await until(async () => /: loaded, pinned$/.test(await state("kept")), "the pinned one is loaded");
        assert.match(await state("spare"), /: loaded$/);
        assert.match(await state("brief"), /^preset over spare: served$/);
        assert.match(await state("broken"), /^loaded when it is asked: failed: .*broken\.gguf/);
        assert.match(await state("further-model-with-a-long-name-11"), /: unloaded$/);
        assert.deepEqual((await p.locator("#server h4").allInnerTexts()).sort(), ["kept", "main", "spare"]);
        await v.fitsWidth(`many models, ${name}`);
        await v.axe(`many models, ${name}`);
        await v.shot(`many-models-${name}`);
        await p.locator("#server tr").last().scrollIntoViewIfNeeded();
        await v.shot(`many-models-table-${name}`);
        await v.end();
    }
    await server.stop();
    rmSync(folder, {recursive: true});
});
