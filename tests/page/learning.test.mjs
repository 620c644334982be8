// SPDX-License-Identifier: Apache-2.0
// What is said of answers, and the view of what was learned: versions, going back, forgetting, memories.
import assert from "node:assert/strict";
import {mkdtempSync, rmSync} from "node:fs";
import {tmpdir} from "node:os";
import {join} from "node:path";
import {after, test} from "node:test";
import {Server, Visit, closeBrowser, tabTo, until} from "./lib.mjs";

const folders = [];
after(async () => {
    await closeBrowser();
    for (const f of folders) rmSync(f, {recursive: true, force: true});
});

const learner = (...more) => {
    folders.push(mkdtempSync(join(tmpdir(), "weft-page-")));
    return Server.fake("--learn", join(folders[folders.length - 1], "learned"), "--log-sync", "1", ...more);
};
const lines = (p) => p.locator(".said li").allInnerTexts();
const thumb = (p, which) => p.locator(`.assistant [aria-label='Thumb ${which}']`);
const told = (p, text) => until(async () => (await lines(p)).some((l) => l.includes(text)), text);

test("nothing can be said where nothing is kept", async () => {
    const server = await Server.fake();
    const v = await Visit.to(server), p = v.page;
    await v.ready();
    await v.say("[say One]");
    assert.equal(await p.locator(".feedback:visible").count(), 0);
    assert.ok(await p.isHidden("#learning-tab"));
    await p.goto(`${server.address}/#/learning`);
    await until(async () => (await p.innerText("#learning")).includes("--learn"), "what it would take");
    await v.end();
    await server.stop();
});

for (const [name, width] of [["wide", 1280], ["narrow", 320]])
    test(`thumbs, an edit and a correction are taken, told and kept, ${name}`, async () => {
        const server = await learner();
        const v = await Visit.to(server, {viewport: {width, height: 700}, colorScheme: width < 400 ? "dark" : "light"}), p = v.page;
        await v.say("Who is it?");
        await thumb(p, "up").click();
        await told(p, "Thumb up: kept");
        const id = v.last.request_id;
        assert.match(id, /^chatcmpl-/);
        assert.deepEqual(v.last, {request_id: id, index: 0, thumb: "up"});
        assert.equal(await thumb(p, "up").getAttribute("aria-pressed"), "true");
        await thumb(p, "up").click();
        await told(p, "said before, and counts once");
        await thumb(p, "down").click();
        await told(p, "Thumb down: kept");
        assert.equal(await thumb(p, "up").getAttribute("aria-pressed"), "false");
        await p.click("[aria-label='Say what is right']");
        assert.equal(await p.inputValue(".correct textarea"), "Hello, world!");
        await p.click(".correct >> text=Send");
        assert.match(await p.innerText(".correct .fault"), /answer as it is/);
        await v.fitsWidth("the box");
        await v.axe("the box");
        await v.shot(`feedback-box-${name}`);
        await p.fill(".correct textarea", "[say Mended]");
        await p.press(".correct textarea", "Control+Enter");
        await told(p, "Your edit: kept; it stands in your next prompts");
        assert.deepEqual(v.last, {request_id: id, index: 0, edit: "[say Mended]"});
        await p.click("[aria-label='Say what is right']");
        assert.equal(await p.inputValue(".correct textarea"), "[say Mended]");
        await p.click(".correct >> text=What is right, in short");
        assert.equal(await p.inputValue(".correct textarea"), "");
        await p.fill(".correct textarea", "long ".repeat(300));
        await p.press(".correct textarea", "Control+Enter");
        await told(p, "Your correction: kept; it does not enter prompts");
        assert.equal(v.last.correction, "long ".repeat(300).trim());
        await v.fitsWidth("what was said");
        await v.axe("what was said");
        await v.shot(`feedback-${name}`);
        const said = await lines(p);
        assert.equal(said.length, 3);
        await p.reload();
        await p.waitForSelector(".said li");
        assert.deepEqual(await lines(p), said);
        assert.equal(await thumb(p, "down").getAttribute("aria-pressed"), "true");
        await v.say("What is it?"); // the scripted model follows the edit in its prompt
        assert.deepEqual(await v.texts(), ["Hello, world!", "Mended"]);
        await v.end();
        await server.stop();
    });

test("what the server refuses is told in its words, and stays", async () => {
    let server = await learner("--feedback-per-hour", "2");
    const v = await Visit.to(server), p = v.page;
    await v.say("[say One]");
    await thumb(p, "up").click();
    await told(p, "kept");
    await thumb(p, "down").click();
    await told(p, "Thumb down: kept");
    await thumb(p, "up").click();
    await told(p, "Thumb up was refused: 2 ");
    assert.match((await lines(p))[0], /within an hour.*try again in \d+ s/);
    assert.equal(await thumb(p, "up").getAttribute("aria-pressed"), "false");
    await fetch(`${server.address}/v1/learn/forget`, {method: "POST", body: "{}"});
    await p.click("[aria-label='Say what is right']");
    await p.click(".correct >> text=What is right, in short");
    await p.fill(".correct textarea", "Two");
    await p.click(".correct >> text=Send");
    await told(p, "Your correction was refused: ");
    assert.match((await lines(p))[1], /no answer/);
    await p.click("[aria-label='Say what is right']"); // what was refused is in the box again
    await p.click(".correct >> text=What is right, in short");
    assert.equal(await p.inputValue(".correct textarea"), "Two");
    await p.keyboard.press("Escape");
    assert.equal(await p.locator(".correct").count(), 0);
    await server.stop();
    server = await Server.fake("--port", server.port); // one that keeps nothing
    await thumb(p, "up").click();
    await told(p, "Thumb up was refused: this server keeps nothing to learn from");
    const said = await lines(p);
    await v.shot("feedback-refused");
    await v.axe("refused");
    await p.reload();
    await p.waitForSelector(".said li");
    assert.deepEqual(await lines(p), said);
    await p.waitForSelector(".model-name");
    assert.equal(await p.locator(".feedback:visible").count(), 0);
    await v.end();
    await server.stop();
});

test("answers that are not whole, or are the page's own, are not spoken of", async () => {
    const server = await learner();
    const v = await Visit.to(server), p = v.page;
    await v.say("[say One]");
    await p.waitForSelector(".feedback:visible");
    await p.click(".assistant [aria-label^='Edit as']");
    await p.fill("textarea.edit", "mended here");
    await p.click("text=Save");
    assert.deepEqual(await v.texts(), ["mended here"]);
    assert.equal(await p.locator(".feedback:visible").count(), 0);
    await p.click("#new");
    await p.fill("#say", "[loop word ][delay 5]");
    await p.press("#say", "Enter");
    await p.waitForFunction(() => document.querySelector(".assistant .body")?.innerText.includes("word word"));
    await p.click("#send");
    await v.idle();
    assert.equal(await p.locator(".feedback:visible").count(), 0);
    await v.end();
    await server.stop();
});

test("of two answers side by side each is spoken of by its own id; files bring what was said", async () => {
    const server = await learner();
    const v = await Visit.to(server), p = v.page;
    await v.ready();
    await p.click("[aria-label='Two answers side by side']");
    await v.say("[say One]");
    await thumb(p, "up").first().click();
    await told(p, "Thumb up: kept");
    await thumb(p, "down").last().click();
    await told(p, "Thumb down: kept");
    const [one, two] = v.bodies.filter((b) => b.thumb);
    assert.notEqual(one.request_id, two.request_id);
    const node = {id: "a", parent: null, role: "assistant", content: "x", finish: "stop", request: {id: "chatcmpl-nobody", index: 0},
        said: {thumb: {value: "up", state: "sending"}, edit: {value: 7}, correction: {value: "y", state: "kept", prompts: true, words: {}}, evil: {value: "z", state: "kept"}}};
    await p.setInputFiles("#import", {name: "c.json", mimeType: "application/json", buffer: Buffer.from(JSON.stringify({nodes: {a: node}, head: "a", settings: {}}))});
    await until(async () => (await v.texts()).join() === "x", "it is shown");
    const said = await lines(p);
    assert.equal(said.length, 2);
    assert.match(said[0], /Thumb up was refused: the page was left/);
    assert.match(said[1], /Your correction: kept; it stands/);
    await thumb(p, "up").click();
    await told(p, "no answer");
    await v.end();
    await server.stop();
});

const day = 86400000, HISTORY = {object: "learning", on: true, name: "learned-3", current: 4, waiting: 0, counts: {answers: 31, events: 6, memories: 1, versions: 5}, versions: [
    {version: 5, what: "rejected", parent: 4, content: "", reason: "neighbours", first_event: 6, last_event: 6, time_ms: Date.now()},
    {version: 4, what: "published", parent: 2, content: "0123456789abcdef0123456789abcdef", reason: "", first_event: 5, last_event: 5, time_ms: Date.now() - day, kl: 0.0123},
    {version: 2, what: "rolled_back", parent: 0, content: "", reason: "", first_event: 0, last_event: 0, time_ms: Date.now() - 2 * day},
    {version: 3, what: "published", parent: 2, content: "1123456789abcdef0123456789abcdef", reason: "", first_event: 4, last_event: 4, time_ms: Date.now() - 3 * day, kl: 0.008},
    {version: 2, what: "published", parent: 0, content: "2123456789abcdef0123456789abcdef", reason: "", first_event: 2, last_event: 3, time_ms: Date.now() - 5 * day, kl: 0.004},
    {version: 1, what: "rejected", parent: 0, content: "", reason: "odd-reason", first_event: 1, last_event: 1, time_ms: Date.now() - 6 * day}]};

// What the view does with any answer of /v1/learn. With servers that learn: the tests below.
for (const colorScheme of ["light", "dark"])
    for (const [name, width] of [["wide", 1280], ["narrow", 320]])
        test(`versions and what became of them, ${colorScheme}, ${name}`, async () => {
            const server = await learner("--memories", "1"), history = structuredClone(HISTORY), asked = [];
            const v = await Visit.to(server, {colorScheme, viewport: {width, height: 800}}), p = v.page;
            await v.context.route("**/v1/learn", (route) => route.fulfill({json: history}));
            await v.context.route("**/v1/learn/rollback", (route) => {
                const body = route.request().postDataJSON();
                asked.push(body);
                if (body.to === 3) return route.fulfill({status: 409, json: {error: {message: "there is none before it"}}});
                history.current = body.to ?? 3;
                return route.fulfill({json: {object: "learning.rollback", name: "learned-3", current: history.current}});
            });
            await v.context.route("**/v1/learn/consolidate", (route) => route.fulfill({status: 202, json: {object: "learning.consolidate", waiting: 1}}));
            await p.click("#learning-tab");
            await p.waitForSelector(".versions li");
            const rows = await p.locator(".versions li").allInnerTexts();
            assert.equal(rows.length, 7);
            assert.match(rows[0], /Version 5\s+refused by the gate: other answers would have changed \(neighbours\)/);
            assert.match(rows[1], /Version 4\s+answers now\s+published[^]*on version 2 · from what you said no\. 5 · KL 0\.012 · content 0123456789ab/);
            assert.match(rows[2], /Went back\s+gone back to version 2/);
            assert.match(rows[4], /on the base alone · from what you said no\. 2 to 3/);
            assert.match(rows[5], /odd-reason/);
            assert.match(rows[6], /The base alone/);
            assert.deepEqual(await p.locator(".versions [aria-current=true] strong").allInnerTexts(), ["Version 4"]);
            assert.match(await p.getAttribute("#learning .chart svg >> nth=0", "aria-label"), /Versions from .* to .*: published 3, refused 2/);
            assert.match(await p.getAttribute("#learning .chart svg >> nth=1", "aria-label"), /KL.*0\.012/);
            assert.match(await p.getAttribute("#learning .chart .line.a >> nth=0", "d"), /^M0 .*V.*V.*V/);
            await v.fitsWidth("learning");
            await v.axe("learning");
            await v.shot(`learning-${name}-${colorScheme}`);
            await p.click("text=Go back to version 2");
            await p.waitForSelector("#sure[open]");
            await v.axe("sure");
            await v.shot(`learning-sure-${name}-${colorScheme}`);
            await p.keyboard.press("Escape");
            assert.deepEqual(asked, []);
            await p.click("text=Go back to version 2");
            await p.click("#sure button[value=yes]");
            await until(async () => (await p.innerText("#learning")).includes("Now answers: version 2"), "it went back");
            assert.deepEqual(asked, [{to: 2}]);
            await until(async () => (await p.locator(".versions [aria-current=true] strong").allInnerTexts()).join() === "Version 2", "it is the current one");
            assert.ok(await p.evaluate(() => document.querySelector("#learning").contains(document.activeElement)), "the focus is lost");
            await p.click("text=Go back to the base");
            await p.click("#sure button[value=yes]");
            await until(async () => (await p.innerText("#learning")).includes("Now answers: the base alone"), "to the base");
            assert.deepEqual(asked[1], {to: 0});
            await p.waitForSelector("[data-do=back]:disabled");
            await p.click("text=Take version 3");
            await p.click("#sure button[value=yes]");
            await until(async () => (await p.innerText("#learning .error")).includes("there is none before it"), "why not");
            history.current = 4;
            history.waiting = 2;
            await p.reload();
            await until(async () => (await p.innerText("#learning .tile:nth-child(2)")).includes("2"), "what waits");
            await p.click("text=Learn it all anew");
            await until(async () => (await p.innerText("#learning")).includes("anew from the base"), "it waits");
            history.waiting = 0; // it looks again by itself
            await until(async () => (await p.innerText("#learning .tile:nth-child(2)")).includes("0"), "nothing waits");
            await v.end();
            await server.stop();
        });

test("memories are added, found, corrected and deleted; all is forgotten for a word", async () => {
    const server = await learner("--memories", "1");
    const v = await Visit.to(server, {viewport: {width: 320, height: 700}}), p = v.page;
    await v.say("[say mill] Where is Mira?");
    await p.click("[aria-label='Say what is right']");
    await p.click(".correct >> text=What is right, in short");
    await p.fill(".correct textarea", "In the inn.");
    await p.press(".correct textarea", "Control+Enter");
    await told(p, "kept");
    await p.click("#learning-tab");
    const texts = () => p.locator(".memories .memory-text").allInnerTexts();
    await until(async () => (await texts()).length === 1, "the correction is one");
    assert.match((await texts())[0], /Where is Mira\?\s+In the inn\./);
    assert.match(await p.innerText(".memories .quiet"), /fact · from an answer · since/);
    const add = p.locator("form[aria-label='Add a memory']");
    await add.locator("input").fill("owls");
    await add.locator("textarea").fill("<b>They</b> are wise.");
    await add.locator("text=Add").click();
    await until(async () => (await texts()).length === 2, "one more");
    assert.match((await texts())[0], /owls\s+<b>They<\/b> are wise\./);
    await v.fitsWidth("memories");
    await v.axe("memories");
    await p.click("[aria-label='Correct owls']");
    const mend = p.locator("form[aria-label='Correct the memory']");
    await v.axe("a memory that is corrected");
    await mend.locator("textarea").fill("They are old.");
    await mend.locator("text=Save").click();
    await until(async () => (await texts()).some((t) => t.includes("They are old.")), "it is corrected");
    await p.fill("#learning input[type=search]", "mira");
    assert.equal((await texts()).length, 1);
    await p.fill("#learning input[type=search]", "");
    await v.shot("memories-narrow");
    await p.click("[aria-label='Delete owls']");
    await p.click("#sure button[value=yes]");
    await until(async () => (await texts()).length === 1, "it is gone");
    const kept = await (await fetch(`${server.address}/v1/memories`)).json();
    assert.deepEqual(kept.data.map((m) => m.text), ["In the inn."]);
    await p.click("[data-do=forget]");
    assert.ok(await p.isDisabled("#sure button[value=yes]"));
    await p.keyboard.type("forget it");
    await p.keyboard.press("Enter");
    assert.ok(await p.isVisible("#sure"));
    await p.fill("#sure input", "forget");
    await v.shot("forget-narrow");
    await p.keyboard.press("Enter");
    await until(async () => (await p.innerText("#learning")).includes("Forgotten: 1 answers, 1 things said of them, 1 memories"), "all is forgotten");
    await until(async () => (await texts()).length === 0, "memories too");
    await v.end();
    await server.stop();
});

test("by keyboard alone: a thumb, a correction, a memory", async () => {
    const server = await learner("--memories", "1");
    const v = await Visit.to(server), p = v.page;
    await v.say("[say One]");
    await p.waitForSelector(".feedback:visible");
    await tabTo(p, "[aria-label='Thumb up']", "Shift+Tab");
    await p.keyboard.press("Enter");
    await told(p, "Thumb up: kept");
    assert.equal(await p.evaluate(() => document.activeElement.getAttribute("aria-label")), "Thumb up"); // the focus stays
    assert.match(await p.innerText("#said"), /Thumb up: kept/);
    await tabTo(p, "[aria-label='Say what is right']");
    await p.keyboard.press("Enter");
    assert.equal(await p.evaluate(() => document.activeElement.tagName), "TEXTAREA");
    await tabTo(p, ".correct input", "Shift+Tab");
    await p.keyboard.press("ArrowDown");
    await tabTo(p, ".correct textarea");
    await p.keyboard.type("Two");
    await tabTo(p, ".correct .strong");
    await p.keyboard.press("Enter");
    await told(p, "Your correction: kept");
    assert.equal(v.last.correction, "Two");
    assert.equal(await p.evaluate(() => document.activeElement.getAttribute("aria-label")), "Say what is right");
    await tabTo(p, "#learning-tab", "Shift+Tab");
    await p.keyboard.press("Enter");
    await p.waitForSelector(".memories li");
    await tabTo(p, ".memory textarea");
    await p.keyboard.type("Owls are wise.");
    await tabTo(p, ".memory .button");
    await p.keyboard.press("Enter");
    await p.waitForFunction(() => document.querySelectorAll(".memories li").length === 3);
    await tabTo(p, "[aria-label^='Delete Owls']");
    await p.keyboard.press("Enter");
    await p.waitForSelector("#sure[open]");
    await p.keyboard.press("Enter");
    await p.waitForFunction(() => document.querySelectorAll(".memories li").length === 2);
    await v.end();
    await server.stop();
});

test("a correction becomes a version that answers; what was refused, going back, learning anew, forgetting", async () => {
    const server = await learner("--learn-share", "1", "--memories", "1");
    const v = await Visit.to(server), p = v.page;
    const who = () => p.locator(".assistant .who").allInnerTexts(), rows = () => p.locator(".versions li").allInnerTexts();
    const correct = async (text) => {
        await p.click("#chat-tab");
        await p.locator("[aria-label='Say what is right']").first().click();
        await p.click(".correct >> text=What is right, in short");
        await p.fill(".correct textarea", text);
        await p.press(".correct textarea", "Control+Enter");
        await p.waitForSelector(".correct", {state: "detached"});
        await p.click("#learning-tab");
    };
    await v.say("Who is it?");
    assert.deepEqual(await who(), ["fake"]);
    await p.click("#learning-tab");
    await until(async () => (await p.innerText("#learning")).includes("Nothing was learned yet"), "nothing is there");
    await v.axe("nothing was learned");
    await correct("Mira.");
    await until(async () => /^Version 1\s+answers now\s+published/.test((await rows())[0]), "version 1");
    await correct("[reject neighbours]");
    await until(async () => /^Version 2\s+refused by the gate: other answers would have changed/.test((await rows())[0]), "2 is refused");
    await correct("Mira Bell.");
    await until(async () => /^Version 3\s+answers now/.test((await rows())[0]), "version 3");
    assert.match((await rows())[0], /on version 1 · from what you said no\. \d+ · KL 0\.0040 · content [0-9a-f]{12} · \w/);
    assert.match(await p.getAttribute("#learning .chart svg >> nth=0", "aria-label"), /published 2, refused 1/);
    await v.shot("learned");
    await p.click("#chat-tab");
    await v.say("Who?");
    assert.deepEqual(await who(), ["fake", "fake@3"]);
    await until(async () => (await p.locator("[aria-label=adapter] option").allInnerTexts()).includes("fake@3 (learned)"), "it may be chosen");
    await p.click("#learning-tab");
    await p.click("text=Go back to the version before");
    await p.click("#sure button[value=yes]");
    await until(async () => (await p.innerText("#learning")).includes("Now answers: version 1"), "it went back");
    await until(async () => /^Went back\s+gone back to version 1/.test((await rows())[0]), "the history has it");
    assert.equal((await (await fetch(`${server.address}/v1/learn`)).json()).current, 1);
    await p.click("#chat-tab");
    await v.say("Who now?");
    assert.equal((await who())[2], "fake@1");
    await p.click("#learning-tab");
    await p.click("text=Take version 3");
    await p.click("#sure button[value=yes]");
    await until(async () => (await p.locator(".versions [aria-current=true] strong").allInnerTexts()).join() === "Version 3", "to version 3");
    await p.click("text=Learn it all anew");
    await until(async () => /^Version 4\s+answers now\s+published\s+on the base alone/.test((await rows())[0]), "version 4");
    await p.click("[data-do=forget]");
    await p.fill("#sure input", "forget");
    await p.click("#sure button[value=yes]");
    await until(async () => (await p.innerText("#learning")).includes("Nothing was learned yet"), "all is forgotten");
    assert.match(await p.innerText("#learning"), /Forgotten: 3 answers, 3 things said of them/);
    await p.click("#chat-tab");
    await v.say("And now?");
    assert.equal((await who())[3], "fake");
    await v.end();
    await server.stop();
});

test("a model learns a correction, and the page says what became of it", async () => {
    folders.push(mkdtempSync(join(tmpdir(), "weft-page-")));
    const server = await Server.weft("--learn", join(folders[folders.length - 1], "learned"), "--learn-share", "1", "--log-sync", "batch");
    const v = await Visit.to(server), p = v.page;
    await v.ready();
    await p.click("#settings-button");
    await p.fill("[placeholder=context]", "24"); // tokens of the answer
    await v.say("Where does Mira live?");
    await p.click("[aria-label='Say what is right']");
    await p.click(".correct >> text=What is right, in short");
    await p.fill(".correct textarea", "Mira lives in the old mill.");
    await p.press(".correct textarea", "Control+Enter");
    await told(p, "Your correction: kept; it stands in your next prompts");
    await p.click("#learning-tab");
    await until(async () => /^Version 1\s+(answers now\s+published|refused by the gate)/.test((await p.locator(".versions li").allInnerTexts())[0] || ""), "a version");
    await v.axe("what a model has learned");
    await v.shot("learned-by-a-model");
    await v.end();
    await server.stop();
});

test("a chat has memories in its prompt where its settings say so", async () => {
    const server = await learner("--memories", "1");
    await fetch(`${server.address}/v1/memories`, {method: "POST", body: JSON.stringify({kind: "semantic", key: "owls", text: "[pick wise]"})});
    const v = await Visit.to(server), p = v.page;
    await v.ready();
    await v.say("[say nothing] of owls");
    assert.equal(v.last.memory, undefined);
    await p.click("#settings-button");
    await p.click("text=Memories that fit the first message");
    await v.axe("settings with memories");
    await p.click("#new");
    await v.say("[say nothing] of owls");
    assert.equal(v.last.memory, true);
    assert.deepEqual(await v.texts(), ["wise"]);
    await v.end();
    await server.stop();
});
