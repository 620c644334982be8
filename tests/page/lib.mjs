// SPDX-License-Identifier: Apache-2.0
// lib.mjs: what the tests of the page share: servers as processes, a browser, and what every visit has to hold: no request
// leaves the origin, nothing fails in the console, and axe-core finds nothing serious.
import {spawn} from "node:child_process";
import {once} from "node:events";
import {readFileSync} from "node:fs";
import {createRequire} from "node:module";
import assert from "node:assert/strict";

const folder = process.env.PAGE_FOLDER;
const require = createRequire(`${folder}/`);
const {chromium} = require("playwright-core");
const AXE = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
export const PATIENCE = Number(process.env.WEFT_PATIENCE || 60) * 1000;

export class Server {
    static async start(command, options) {
        const s = new Server();
        s.process = spawn(command, options, {stdio: ["ignore", "pipe", "pipe"]});
        s.said = "";
        servers.add(s);
        s.address = await new Promise((done, failed) => {
            const look = (data) => {
                s.said += data;
                const found = /https?:\/\/\S+:\d+/.exec(s.said);
                if (found) done(found[0]);
            };
            s.process.stdout.on("data", look);
            s.process.stderr.on("data", look);
            s.process.on("exit", () => failed(new Error(s.said)));
        });
        return s;
    }

    // A double that says what the prompt orders (tests/server/fake_engine.c).
    static fake(...options) {
        return Server.start("build/fake_server", options);
    }

    static weft(...options) {
        return Server.start("build/weft", ["serve", "models/alderbrook.gguf", "--threads", "2", "--port", "-1", ...options]);
    }

    get port() {
        return new URL(this.address).port;
    }

    async metric(name, key) {
        const text = await (await fetch(`${this.address}/metrics`, {headers: key ? {"X-Api-Key": key} : {}})).text();
        const line = text.split("\n").find((l) => l.startsWith(`${name} `));
        return line ? Number(line.slice(name.length + 1)) : NaN;
    }

    async stop(signal = "SIGTERM") {
        if (this.process.exitCode !== null || this.process.signalCode) return;
        this.process.kill(signal);
        await once(this.process, "exit");
    }
}

export async function until(condition, what) {
    for (const end = Date.now() + PATIENCE; Date.now() < end;) {
        if (await condition()) return;
        await new Promise((r) => setTimeout(r, 20));
    }
    assert.fail(`it did not come: ${what}`);
}

const servers = new Set();
let browser = null;
export async function openBrowser() {
    browser ||= await chromium.launch({executablePath: process.env.CHROMIUM, args: ["--no-sandbox", "--disable-gpu"]});
    return browser;
}
// Servers that a failed test left are ended, too.
export async function closeBrowser() {
    for (const s of servers) await s.stop("SIGKILL");
    if (browser) await browser.close();
    browser = null;
}

// Presses Tab until an element is focused that fits; each on the way must show that it has the focus.
export async function tabTo(p, selector, key = "Tab") {
    for (let i = 0; i < 80; i++) {
        await p.keyboard.press(key);
        const [fits, shows, what] = await p.evaluate((s) => {
            const e = document.activeElement, style = getComputedStyle(e), around = e.closest(".composer");
            const ring = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2;
            return [e.matches(s), e === document.body || ring || (e.id === "say" && getComputedStyle(around.querySelector(".bar")).boxShadow !== "none"),
                e.outerHTML.slice(0, 120)];
        }, selector);
        assert.ok(shows, `no focus is seen on ${what}`);
        if (fits) return;
    }
    assert.fail(`Tab does not come to ${selector}`);
}

// A page of its own at the server, and what may not happen there.
export class Visit {
    static async to(server, options = {}, path = "/") {
        const v = new Visit();
        v.server = server;
        v.context = await (await openBrowser()).newContext({viewport: {width: 1280, height: 800}, reducedMotion: "reduce", ...options});
        v.context.setDefaultTimeout(PATIENCE);
        await v.context.grantPermissions(["clipboard-read", "clipboard-write"], {origin: server.address});
        v.faults = [];
        v.bodies = [];
        v.page = await v.tab(path);
        return v;
    }

    async tab(path = "/") {
        const page = await this.context.newPage(), origin = new URL(this.server.address).origin;
        page.on("request", (r) => {
            if (!r.url().startsWith(`${origin}/`) && !r.url().startsWith("blob:")) this.faults.push(`asks ${r.url()}`);
            if (r.method() === "POST") this.bodies.push(r.postDataJSON());
        });
        page.on("pageerror", (e) => this.faults.push(`fails: ${e.stack}`));
        page.on("console", (m) => {
            if (["error", "warning"].includes(m.type()) && !m.text().startsWith("Failed to load resource")) this.faults.push(`says: ${m.text()}`);
        });
        await page.goto(this.server.address + path);
        return page;
    }

    get last() {
        return this.bodies[this.bodies.length - 1];
    }

    async ready() {
        await this.page.waitForSelector("#facts dd");
    }

    // Sends it and waits for the end of the answers.
    async say(text) {
        await this.page.fill("#say", text);
        await this.page.press("#say", "Enter");
        await this.page.waitForSelector(".message.assistant");
        await this.idle();
    }

    async idle() {
        await this.page.waitForSelector("#send:not(.stops)");
        await this.page.waitForFunction(() => !document.querySelector(".message.running"));
    }

    texts(role = "assistant") {
        return this.page.locator(`.message.${role} .body`).allInnerTexts();
    }

    async shot(name) {
        await this.page.screenshot({path: `${folder}/screenshots/${name}.png`});
    }

    // axe-core's findings that are serious or worse, as text. It is a script of our own beside the page's policy.
    async axe(where) {
        const session = await this.context.newCDPSession(this.page);
        await session.send("Runtime.evaluate", {expression: AXE});
        const found = await this.page.evaluate(async () => (await window.axe.run(document, {resultTypes: ["violations"]})).violations
            .filter((v) => ["serious", "critical"].includes(v.impact))
            .map((v) => `${v.id}: ${v.help}: ${v.nodes.slice(0, 4).map((n) => `${n.html.slice(0, 160)} ${n.failureSummary || ""}`).join(" | ")}`));
        assert.deepEqual(found, [], `axe-core, ${where}`);
    }

    async fitsWidth(where) {
        const [have, want] = await this.page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
        assert.ok(have <= want, `${where}: ${have} pixels wide in ${want}`);
        const wide = await this.page.evaluate(() => [...document.querySelectorAll("body *")].filter((e) => {
            const box = e.getBoundingClientRect();
            return box.width && (box.right > innerWidth + 1 || box.left < -1) && !e.closest("pre, .table, #side, .unseen, .skip, dialog, svg, #conversations");
        }).map((e) => `${e.tagName}#${e.id}.${e.className}`).slice(0, 5));
        assert.deepEqual(wide, [], `${where}: beyond the edge`);
    }

    async end() {
        assert.deepEqual(this.faults, []);
        await this.context.close();
    }
}
