// SPDX-License-Identifier: Apache-2.0
// Tools and thoughts over the scripted server; adapters, two side by side, schemas, sampling over Alderbrook.
import assert from "node:assert/strict";
import {after, before, test} from "node:test";
import {Server, Visit, closeBrowser} from "./lib.mjs";

let fake, weft;
before(async () => {
    fake = await Server.fake("--template", "<think></think>");
    weft = await Server.weft("--adapter", "pirate=models/pirate.gguf", "--adapter", "poem=models/poem.gguf", "--slots", "4");
});
after(async () => {
    await closeBrowser();
    await fake.stop();
    await weft.stop();
});

async function set(v, label, value) {
    if (await v.page.isHidden("#settings")) await v.page.click("#settings-button");
    const field = v.page.getByLabel(label, {exact: true});
    if ((await field.evaluate((e) => e.tagName)) === "SELECT") await field.selectOption(value);
    else if (typeof value === "boolean") await field.setChecked(value);
    else await field.fill(value);
}

test("thoughts are folded", async () => {
    const v = await Visit.to(fake), p = v.page;
    await v.say("[say <think>I think of it</think>The answer]");
    assert.equal((await v.texts())[0], "The answer");
    assert.equal(await p.innerText(".assistant .reasoning summary"), "Thought for 4 words");
    assert.ok(await p.isHidden(".assistant .thoughts"));
    await p.click(".assistant .reasoning summary");
    assert.equal(await p.innerText(".assistant .thoughts"), "I think of it");
    await v.end();
});

test("a tool is called, and its result goes back", async () => {
    const v = await Visit.to(fake), p = v.page;
    await set(v, "Functions that the model may call, as JSON", "[{");
    assert.ok((await p.innerText("#settings-body")).includes("Tools: "));
    await p.fill("#say", "x");
    await p.press("#say", "Enter");
    await p.waitForSelector("#notice:not([hidden])");
    assert.equal(await p.inputValue("#say"), "x");
    assert.equal(v.bodies.length, 0);
    await set(v, "Functions that the model may call, as JSON", '[{"name": "weather", "parameters": {"type": "object"}}]');
    await v.say('[say {"name": "weather", "arguments": {"town": "Ulm"}}]');
    assert.deepEqual(v.last.tools, [{type: "function", function: {name: "weather", parameters: {type: "object"}}}]);
    assert.equal(await p.innerText(".call-name code"), "weather");
    assert.match(await p.innerText(".call pre"), /"town": "Ulm"/);
    await v.axe("a call");
    await v.shot("tool");
    await p.getByLabel("Result of weather").fill("rain");
    await p.click("text=Send results");
    await v.idle();
    const [user, call, tool] = v.last.messages;
    assert.deepEqual([user.role, call.role, tool.role, tool.content], ["user", "assistant", "tool", "rain"]);
    assert.equal(call.tool_calls[0].function.name, "weather");
    assert.equal(tool.tool_call_id, call.tool_calls[0].id);
    assert.equal(await p.locator(".message.tool").count(), 1);
    await v.end();
});

test("settings go with the request, empty ones do not", async () => {
    const v = await Visit.to(fake);
    await v.say("[say abcdef]");
    assert.deepEqual(Object.keys(v.last).sort(), ["logprobs", "messages", "model", "stream", "stream_options", "top_logprobs"].filter((k) => k in v.last).sort());
    assert.equal(v.last.temperature, undefined);
    for (const [label, value] of [["Temperature", "0.5"], ["Top k", "7"], ["Seed", "11"], ["Max tokens", "3"], ["Stop at", "END"],
        ["What the model is told first", "Be kind."], ["Ask for the probabilities of tokens", false]]) await set(v, label, value);
    await v.say("again");
    const {temperature, top_k: k, seed, max_tokens: n, stop, logprobs, messages} = v.last;
    assert.deepEqual({temperature, k, seed, n, stop, logprobs, system: messages[0].content},
        {temperature: 0.5, k: 7, seed: 11, n: 3, stop: ["END"], logprobs: undefined, system: "Be kind."});
    assert.match(await v.page.locator(".assistant .numbers").last().innerText(), /length reached/);
    await v.page.reload();
    await v.page.waitForSelector(".assistant .body");
    await v.page.click("#settings-button");
    assert.equal(await v.page.getByLabel("Temperature", {exact: true}).inputValue(), "0.5");
    await v.end();
});

test("adapters: another one answers, two side by side, one is gone on with", async () => {
    const v = await Visit.to(weft), p = v.page;
    await v.ready();
    assert.match(await p.innerText("#facts"), /pirate, poem/);
    await set(v, "Temperature", "0");
    await set(v, "Max tokens", "24");
    await p.click("#settings-close");
    await v.say("Tell me a story.");
    const [base] = await v.texts();
    await p.selectOption("[aria-label=adapter]", "pirate");
    await p.click(".assistant [aria-label='Answer again']");
    await v.idle();
    const [pirate] = await v.texts();
    assert.equal(v.last.model, "pirate");
    assert.notEqual(pirate, base);
    assert.equal(await p.innerText(".assistant .who"), "alderbrook + pirate");
    await p.fill("[aria-label='scale of the adapter']", "0.5");
    await p.press("[aria-label='scale of the adapter']", "Enter");
    await p.click(".assistant [aria-label='Answer again']");
    await v.idle();
    assert.deepEqual(v.last.lora, [{id: 0, scale: 0.5}]);
    await p.fill("[aria-label='scale of the adapter']", "1");
    await p.press("[aria-label='scale of the adapter']", "Enter");
    await p.click("[aria-label='Two answers side by side']");
    await p.selectOption("[aria-label='second adapter']", "poem");
    await p.click("#new");
    await v.say("Tell me a story.");
    const both = await v.texts();
    const words = (s) => s.split(/\s+/).join(" ");
    assert.equal(both.length, 2);
    assert.equal(both[0], pirate);
    assert.notEqual(both[1], both[0]);
    assert.deepEqual(await p.locator(".pair .who").allInnerTexts(), ["alderbrook + pirate", "alderbrook + poem"]);
    const tops = await p.evaluate(() => [...document.querySelectorAll(".pair article")].map((a) => Math.round(a.getBoundingClientRect().top)));
    assert.equal(tops[0], tops[1]);
    await v.shot("pair");
    await v.axe("pair");
    await p.click("text=Go on with this one");
    await p.click("[aria-label='Two answers side by side']");
    await v.say("And then?");
    assert.equal(words(v.last.messages[1].content), words(both[1]));
    await p.reload();
    await p.waitForSelector(".pair");
    assert.deepEqual((await v.texts()).slice(0, 2), both);
    await v.end();
});

test("an answer is held to a schema, to a list, to an expression", async () => {
    const v = await Visit.to(weft), p = v.page;
    await set(v, "Form", "schema");
    await set(v, "It is held to", '{"type": "object"');
    await p.waitForSelector("#settings-body .fault:not(:empty)");
    await set(v, "It is held to", '{"type": "object", "properties": {"good": {"type": "boolean"}, "n": {"type": "integer", "minimum": 3, "maximum": 5}}, "required": ["good", "n"]}');
    await v.say("Tell me a story.");
    const value = JSON.parse((await v.texts())[0]);
    assert.ok(typeof value.good === "boolean" && value.n >= 3 && value.n <= 5, JSON.stringify(value));
    assert.ok((await p.locator(".assistant .hl-word, .assistant .hl-number").count()) >= 1);
    await v.shot("schema");
    await set(v, "Form", "choice");
    await set(v, "It is held to", "red\nblue");
    await v.say("A colour?");
    assert.match((await v.texts())[1], /^(red|blue)$/);
    await set(v, "Form", "regex");
    await set(v, "It is held to", "[0-9]{4}");
    await v.say("A year?");
    assert.match((await v.texts())[2], /^\d{4}$/);
    await v.end();
});

test("tokens show how likely they and others were", async () => {
    const v = await Visit.to(weft), p = v.page;
    await set(v, "Temperature", "0");
    await set(v, "Max tokens", "12");
    await v.say("Tell me a story.");
    const [text] = await v.texts();
    await p.click("[aria-label^='Tokens and']");
    const tokens = await p.locator(".token").allInnerTexts();
    assert.equal(tokens.join("").replace(/[⏎\s]/g, ""), text.replace(/\s/g, ""));
    await p.hover(".token >> nth=2");
    const rows = await p.locator(".token-tip tr").allInnerTexts();
    assert.ok(rows.length >= 5, rows.join());
    assert.match(await p.innerText(".token-tip tr >> nth=0"), /%/);
    assert.ok(await p.locator(".token-tip tr >> nth=0").evaluate((e) => e.classList.contains("chosen")), "the likeliest was taken");
    await v.end();
});
