// SPDX-License-Identifier: Apache-2.0
// api.js: asks the server that the page came from, and no other. The key lives as long as the tab: in sessionStorage.

const BASE = new URL("..", import.meta.url); // of /page/api.js, also behind a proxy that adds a path
const KEY = "weft.key";

export const key = {
    get: () => sessionStorage.getItem(KEY) || "",
    set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

// status 0: the server did not answer.
export class ApiError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

// Functions that are told "up", "down" (no answer) and "key" (401), each time.
const watchers = new Set();
export const watch = (f) => watchers.add(f);
const tell = (what, error) => watchers.forEach((f) => f(what, error));

async function errorOf(answer) {
    let message = `the server answered ${answer.status}`;
    try {
        const body = await answer.json();
        if (body.error && typeof body.error.message === "string") message = body.error.message;
    } catch (e) {
        // no JSON: the status says it
    }
    const wait = answer.headers.get("Retry-After");
    if (answer.status === 429 && wait) message += ` (try again in ${wait} s)`;
    return new ApiError(answer.status, message);
}

async function ask(path, options = {}) {
    const headers = {...options.headers};
    if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
    let answer;
    try {
        answer = await fetch(new URL(path, BASE), {...options, headers, credentials: "same-origin", cache: "no-store"});
    } catch (e) {
        if (e.name === "AbortError") throw e;
        const error = new ApiError(0, "the server does not answer");
        tell("down", error);
        throw error;
    }
    tell("up");
    if (answer.ok) return answer;
    const error = await errorOf(answer);
    if (error.status === 401) tell("key", error);
    throw error;
}

export const getJson = async (path, options) => (await ask(path, options)).json();
export const getText = async (path, options) => (await ask(path, options)).text();
export const postJson = async (path, body, options) =>
    ask(path, {...options, method: "POST", headers: {...options?.headers, "Content-Type": "application/json"}, body: JSON.stringify(body)});

function eventOf(text) {
    const data = text.split("\n").filter((l) => l.startsWith("data:")).map((l) => l.slice(5).trimStart()).join("\n");
    if (!data || data === "[DONE]") return data;
    const event = JSON.parse(data);
    if (event.error) throw new ApiError(event.error.code || 500, event.error.message || "the server failed");
    return event;
}

// The events of a stream, as objects. Ends early with an ApiError where the server says so or goes away.
export async function* stream(path, body, signal) {
    const reader = (await postJson(path, body, {signal})).body.pipeThrough(new TextDecoderStream()).getReader();
    let waiting = "", done = false;
    for (;;) {
        let part;
        try {
            part = await reader.read();
        } catch (e) {
            if (e.name === "AbortError") throw e;
            part = {done: true};
        }
        if (part.done) break;
        waiting += part.value;
        for (let end; (end = waiting.indexOf("\n\n")) >= 0;) {
            const event = eventOf(waiting.slice(0, end));
            waiting = waiting.slice(end + 2);
            if (event === "[DONE]") done = true;
            else if (event) yield event;
        }
    }
    if (done) return;
    const error = new ApiError(0, "the connection was lost before the end of the answer");
    tell("down", error);
    throw error;
}
