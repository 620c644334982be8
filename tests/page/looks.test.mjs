// SPDX-License-Identifier: Apache-2.0
// How the page looks and is used: narrow, dark, by keyboard alone, and to axe-core.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {Server, Visit, closeBrowser, tabTo} from "./lib.mjs";

const TEXT = "[say ## Title\n\nText with `code`, **bold** and a list:\n\n- one\n- two\n  1. deeper\n\n| name | value |\n| --- | ---: |\n| alpha | 1 |\n| beta | 22 |\n\n" +
    "```python\ndef f(x):  # a comment\n    return x + 1.5, \"text\"\n```\n\n> quoted\n\nThe end of a rather long answer.";

let server;
before(async () => (server = await Server.fake("--template", "<think></think>")));
after(async () => {
    await closeBrowser();
    await server.stop();
});

for (const colorScheme of ["light", "dark"])
    for (const [name, width] of [["narrow", 320], ["middle", 800], ["wide", 1280]])
        test(`${colorScheme}, ${width} pixels wide`, async () => {
            const v = await Visit.to(server, {colorScheme, viewport: {width, height: name === "narrow" ? 640 : 800}}), p = v.page;
            const shot = (what) => v.shot(`${name}-${colorScheme}-${what}`);
            await v.ready();
            await v.fitsWidth("empty");
            await shot("empty");
            await v.say(TEXT);
            await v.fitsWidth("chat");
            await v.axe("chat");
            await shot("chat");
            await p.click(".assistant [aria-label^='Tokens and']");
            await p.hover(".token >> nth=3");
            await shot("tokens");
            await v.axe("tokens");
            await p.click("#settings-button");
            await v.fitsWidth("settings");
            await v.axe("settings");
            await shot("settings");
            await p.click("#settings-close");
            if (width < 760) {
                await p.click("#menu");
                await v.axe("conversations");
                await shot("conversations");
                await p.keyboard.press("Escape");
            }
            await p.click("#server-tab");
            await p.waitForFunction(() => document.querySelectorAll(".slots li").length);
            await v.fitsWidth("server");
            await v.axe("server");
            await shot("server");
            await v.end();
        });

test("the switch of colours wins over the system and is kept", async () => {
    const v = await Visit.to(server, {colorScheme: "light"}), p = v.page;
    const ground = () => p.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await ground();
    await p.click("#theme");
    assert.equal(await ground(), light);
    await p.click("#theme");
    const dark = await ground();
    assert.notEqual(dark, light);
    await p.reload();
    assert.equal(await ground(), dark);
    await p.click("#theme");
    assert.equal(await ground(), light);
    await v.end();
});

test("by keyboard alone", async () => {
    const v = await Visit.to(server), p = v.page;
    await v.ready();
    await p.evaluate(() => document.activeElement.blur());
    await tabTo(p, ".skip");
    await p.keyboard.press("Enter");
    assert.equal(await p.evaluate(() => document.activeElement.id), "say");
    await p.keyboard.type("[say one two three]");
    await p.keyboard.press("Shift+Enter");
    await p.keyboard.type("second line");
    await p.keyboard.press("Enter");
    await p.waitForSelector(".message.assistant");
    await v.idle();
    assert.equal(v.last.messages[0].content, "[say one two three]\nsecond line");
    await tabTo(p, ".assistant [aria-label^='Tokens and']", "Shift+Tab");
    await p.keyboard.press("Enter");
    await tabTo(p, ".token", "Shift+Tab");
    await p.keyboard.press("ArrowRight");
    assert.equal(await p.evaluate(() => document.activeElement.dataset.at), "1");
    assert.ok(await p.isVisible(".token-tip"));
    await tabTo(p, ".user [aria-label^=Edit]", "Shift+Tab");
    await p.keyboard.press("Enter");
    await p.keyboard.press("Control+A");
    await p.keyboard.type("[say other]");
    await p.keyboard.press("Control+Enter");
    await v.idle();
    await p.waitForFunction(() => document.querySelector(".assistant .body")?.innerText === "other");
    await tabTo(p, "[aria-label='Branch before']", "Shift+Tab");
    await p.keyboard.press("Enter");
    await p.waitForFunction(() => document.querySelector(".assistant .body")?.innerText.includes("one two"));
    await tabTo(p, "#settings-button", "Shift+Tab");
    await p.keyboard.press("Enter");
    await tabTo(p, "#system");
    await p.keyboard.type("Be brief.");
    await p.keyboard.press("Escape");
    assert.equal(await p.evaluate(() => document.activeElement.id), "settings-button");
    await tabTo(p, "#server-tab", "Shift+Tab");
    await p.keyboard.press("Enter");
    await p.waitForSelector(".slots li");
    await tabTo(p, "#chat-tab", "Shift+Tab");
    await p.keyboard.press("Enter");
    await p.waitForSelector(".message.assistant");
    await p.keyboard.press("Control+k");
    assert.equal(await p.evaluate(() => document.activeElement.id), "search");
    await tabTo(p, "#files");
    await p.keyboard.press("Enter");
    await tabTo(p, ".menu button");
    await p.keyboard.press("Escape");
    assert.equal(await p.evaluate(() => document.activeElement.id), "files");
    await p.keyboard.press("Alt+n");
    assert.equal(await p.locator(".message").count(), 0);
    await v.say("[say three]");
    assert.deepEqual(v.last.messages[0], {role: "system", content: "Be brief."});
    await v.end();
});

test("a screen reader is told where things are, and when an answer is there", async () => {
    const v = await Visit.to(server), p = v.page;
    await v.say("[say the whole answer]");
    assert.match(await p.innerText("#said"), /complete: the whole answer/);
    const roles = await p.evaluate(() => ({main: [...document.querySelectorAll("main")].filter((m) => m.checkVisibility()).length,
        navs: [...document.querySelectorAll("nav")].every((n) => n.getAttribute("aria-label")), articles: [...document.querySelectorAll("article")].map((a) => a.getAttribute("aria-label")),
        nameless: [...document.querySelectorAll("button, input, select, textarea, a")].filter((e) => e.checkVisibility() && !(e.getAttribute("aria-label") ||
            e.labels?.length || e.textContent.trim())).map((e) => e.outerHTML.slice(0, 100))}));
    assert.deepEqual(roles, {main: 1, navs: true, articles: ["You", "fake"], nameless: []});
    await v.end();
});
