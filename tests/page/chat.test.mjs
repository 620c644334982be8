// SPDX-License-Identifier: Apache-2.0
// A conversation over the scripted server: opening, chatting, stopping, branches, what is kept, files.
import assert from "node:assert/strict";
import {readFileSync} from "node:fs";
import {after, before, test} from "node:test";
import {Server, Visit, closeBrowser, until} from "./lib.mjs";

let server;
before(async () => (server = await Server.fake()));
after(async () => {
    await closeBrowser();
    await server.stop();
});

test("an empty page says what is served", async () => {
    const v = await Visit.to(server);
    await v.ready();
    assert.equal(await v.page.innerText("#served"), "fake");
    assert.match(await v.page.innerText("#facts"), /Model\s+1 k parameters[^]*At once\s+8 requests/);
    assert.equal(await v.page.evaluate(() => document.activeElement.id), "say");
    await v.axe("empty");
    await v.shot("empty");
    await v.end();
});

test("an answer streams, is drawn, and has its numbers", async () => {
    const v = await Visit.to(server);
    await v.page.fill("#say", "[say Some **bold** text, `code`.][delay 50]");
    await v.page.press("#say", "Enter");
    await v.page.waitForSelector(".message.running .body p");
    const early = (await v.texts())[0];
    assert.equal(await v.page.getAttribute("#send", "aria-label"), "Stop");
    await v.idle();
    const [text] = await v.texts();
    assert.equal(text, "Some bold text, code.");
    assert.ok(early.length < text.length, `${early}: it came at once`);
    assert.deepEqual(await v.page.locator(".assistant strong, .assistant code").allInnerTexts(), ["bold", "code"]);
    const numbers = await v.page.innerText(".assistant .numbers");
    assert.match(numbers, /\d tok\/s/);
    assert.match(numbers, /first after \d+ ms|first after \d\.\d+ s/);
    assert.match(numbers, /27 tokens/);
    assert.equal(v.last.stream, true);
    assert.deepEqual(v.last.messages, [{role: "user", content: "[say Some **bold** text, `code`.][delay 50]"}]);
    await v.end();
});

test("an answer can be stopped, by button and by key, and goes on", async () => {
    const v = await Visit.to(server);
    const cancelled = await server.metric('weft_requests_total{finish="cancelled"}');
    await v.page.fill("#say", "[loop word ][delay 5]");
    await v.page.press("#say", "Enter");
    await v.page.waitForFunction(() => document.querySelector(".assistant .body")?.innerText.includes("word word"));
    await v.page.click("#send");
    await v.idle();
    const [text] = await v.texts();
    assert.match(await v.page.innerText(".assistant .numbers"), /stopped/);
    await v.page.click("[aria-label='Go on with this answer']");
    await v.page.waitForFunction((n) => document.querySelector(".assistant .body").innerText.length > n + 10, text.length);
    assert.deepEqual(v.last.messages.map((m) => m.role), ["user", "assistant"]);
    assert.ok(v.last.messages[1].content.startsWith(text.trim()));
    await v.page.keyboard.press("Escape");
    await v.idle();
    assert.ok((await v.texts())[0].startsWith(text.trim()));
    assert.equal((await v.texts()).length, 1);
    await until(async () => (await server.metric('weft_requests_total{finish="cancelled"}')) === cancelled + 2, "the server lets both go");
    await v.end();
});

test("a failure is told, and what came before it stays", async () => {
    const v = await Visit.to(server);
    await v.say("[say abcdef][fail 3]");
    assert.equal((await v.texts())[0], "abc");
    assert.ok((await v.page.innerText(".assistant .error")).length > 5);
    assert.match(await v.page.innerText(".assistant .numbers"), /failed/);
    await v.say("[reject]");
    await v.end();
});

test("edits and new answers are branches, which a reload keeps", async () => {
    const v = await Visit.to(server), p = v.page;
    await v.say("[say first]");
    await p.click(".user [aria-label^=Edit]");
    await p.fill("textarea.edit", "[say second]");
    await p.press("textarea.edit", "Control+Enter");
    await v.idle();
    await p.waitForFunction(() => document.querySelector(".assistant .body")?.innerText === "second");
    assert.equal(await p.textContent(".user .branch"), "branch 2/2");
    assert.equal(v.last.messages.length, 1);
    await p.click(".assistant [aria-label='Answer again']");
    await v.idle();
    await p.waitForFunction(() => document.querySelector(".assistant .branch")?.innerText.includes("2/2"));
    await p.click(".user [aria-label='Branch before']");
    assert.equal((await v.texts())[0], "first");
    await p.reload();
    await p.waitForSelector(".assistant .body");
    assert.deepEqual([await v.texts("user"), await v.texts()], [["[say first]"], ["first"]]);
    await p.click(".user [aria-label='Branch after']");
    assert.equal((await v.texts())[0], "second");
    assert.match(await p.innerText(".assistant .branch"), /\/2/);
    // an answer that is edited is a branch, too, and is what the next question is asked after
    await p.click(".assistant [aria-label^=Edit]");
    await p.fill("textarea.edit", "mended");
    await p.click("text=Save");
    assert.match(await p.innerText(".assistant .branch"), /3\/3/);
    await v.say("and then?");
    assert.deepEqual(v.last.messages.map((m) => m.content), ["[say second]", "mended", "and then?"]);
    await p.locator(".user [aria-label^=Delete]").last().click();
    assert.deepEqual(await v.texts(), ["mended"]);
    await v.end();
});

test("several conversations: list, search, title, another tab, deleting", async () => {
    const v = await Visit.to(server), p = v.page;
    await v.say("[say about foxes]");
    await p.fill("#title", "On animals");
    await p.press("#title", "Enter");
    await p.click("#new");
    assert.equal(await p.locator(".message").count(), 0);
    await v.say("[say about ships]");
    const names = () => p.locator("#conversations a").allInnerTexts();
    await until(async () => (await names()).length === 2, "both in the list");
    assert.deepEqual((await names()).sort(), ["On animals", "[say about ships]"]);
    await p.fill("#search", "foxes");
    await until(async () => (await names()).join() === "On animals", "what was searched");
    await p.click("#conversations a");
    await p.waitForFunction(() => document.querySelector(".assistant .body")?.innerText === "about foxes");
    await p.fill("#search", "nothing like it");
    await until(async () => (await names()).length === 0, "nothing found");
    await p.fill("#search", "");
    const other = await v.tab();
    await other.waitForFunction(() => document.querySelectorAll("#conversations a").length === 2);
    await p.hover("#conversations li >> nth=0");
    await p.click("[aria-label='Delete On animals']");
    await v.shot("delete");
    await p.click("#sure button[value=yes]");
    await until(async () => (await names()).length === 1, "one is gone");
    await other.waitForFunction(() => document.querySelectorAll("#conversations a").length === 1);
    await v.end();
});

test("conversations leave as files and come back", async () => {
    const v = await Visit.to(server), p = v.page;
    await v.say("[say kept text]");
    const files = async (label) => {
        await p.click("#files");
        const [download] = await Promise.all([p.waitForEvent("download"), p.click(`text=${label}`)]);
        return readFileSync(await download.path(), "utf8");
    };
    assert.match(await files("Export it as Markdown"), /## You\n\n\[say kept text\]\n\n## Answer\n\nkept text/);
    const saved = await files("Export all conversations");
    assert.equal(JSON.parse(saved).conversations.length, 1);
    const load = (name, text) => p.setInputFiles("#import", {name, mimeType: "application/json", buffer: Buffer.from(text)});
    await load("all.json", saved);
    await until(async () => (await p.locator("#conversations a").count()) === 2, "it was imported");
    await until(async () => (await v.texts()).join() === "kept text", "it is shown");
    await load("chat.jsonl", '{"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "hi"}, {"role": "assistant", "content": "<b>x</b>"}]}\n');
    await until(async () => (await v.texts()).join() === "<b>x</b>", "as weft chat saves it");
    assert.equal(await p.inputValue("#system"), "S");
    assert.equal(await p.locator(".assistant .body b").count(), 0);
    await load("bad.json", '{"nodes": 5}');
    await p.waitForSelector("#notice:not([hidden])");
    assert.match(await p.innerText("#notice"), /bad\.json/);
    // what is hostile in a file: circles, wrong types, a prototype
    await load("hostile.json", JSON.stringify({conversations: [{title: {}, settings: {temperature: {}, system: 5, __proto__: null}, head: "b", nodes: {
        a: {id: "a", parent: "b", role: "user", content: {}, created: "x"}, b: {id: "b", parent: "a", role: "assistant", content: "circle",
            calls: [{name: 5}], tokens: [["a", "b"], 7], stats: {rate: "x"}}, c: {id: "c", parent: "zz", role: "evil", content: "no"}}}]}));
    await until(async () => (await v.texts()).join() === "circle", "it is shown without its circle");
    await v.end();
});

test("a conversation that is deleted while its answer comes does not come back", async () => {
    const v = await Visit.to(server), p = v.page;
    const cancelled = await server.metric('weft_requests_total{finish="cancelled"}');
    await p.fill("#say", "[loop word ][delay 5]");
    await p.press("#say", "Enter");
    await p.waitForFunction(() => document.querySelector(".assistant .body")?.innerText.includes("word word"));
    await p.hover("#conversations li");
    await p.click("#conversations [aria-label^=Delete]");
    await p.click("#sure button[value=yes]");
    await until(async () => (await server.metric('weft_requests_total{finish="cancelled"}')) === cancelled + 1, "its answer ends");
    assert.equal(await p.locator(".message").count(), 0);
    await p.reload();
    await v.ready();
    assert.equal(await p.locator("#conversations a").count(), 0);
    await v.end();
});

test("what one tab does another shows", async () => {
    const v = await Visit.to(server), p = v.page;
    await v.say("[say one]");
    const other = await v.tab(`/${new URL(p.url()).hash}`);
    await other.waitForSelector(".assistant .body");
    await v.say("and again?");
    await other.waitForFunction(() => document.querySelectorAll(".assistant").length === 2);
    await v.end();
});
