// SPDX-License-Identifier: Apache-2.0
// store.js: conversations in IndexedDB of this browser: `heads` are small, for the list, `bodies` hold the messages. Other
// tabs are told what changed. Where there is no database (private windows of some browsers) all is kept in memory.

const NAME = "weft", VERSION = 1;
let opening = null;
const memory = new Map();
const channel = typeof BroadcastChannel === "function" ? new BroadcastChannel("weft") : null;

const asked = (request) => new Promise((done, failed) => {
    request.onsuccess = () => done(request.result);
    request.onerror = () => failed(request.error);
});
const ended = (transaction) => new Promise((done, failed) => {
    transaction.oncomplete = () => done();
    transaction.onabort = transaction.onerror = () => failed(transaction.error);
});

function open() {
    opening ||= new Promise((done) => {
        let request;
        try {
            request = indexedDB.open(NAME, VERSION);
        } catch (e) {
            done(null);
            return;
        }
        request.onupgradeneeded = () => {
            request.result.createObjectStore("heads", {keyPath: "id"});
            request.result.createObjectStore("bodies", {keyPath: "id"});
        };
        request.onsuccess = () => done(request.result);
        request.onerror = () => done(null);
    });
    return opening;
}

const headOf = (c) => ({id: c.id, title: c.title, created: c.created, updated: c.updated});

// f({id}) when another tab has saved or removed one.
export function onChange(f) {
    if (channel) channel.onmessage = (e) => f(e.data);
}

// False where what is said is lost with the tab.
export const isKept = async () => (await open()) !== null;

export async function heads() {
    const db = await open();
    const all = db ? await asked(db.transaction("heads").objectStore("heads").getAll()) : [...memory.values()].map(headOf);
    return all.sort((a, b) => b.updated - a.updated);
}

export async function load(id) {
    const db = await open();
    return (db ? await asked(db.transaction("bodies").objectStore("bodies").get(id)) : structuredClone(memory.get(id))) || null;
}

export async function save(c) {
    const db = await open();
    if (!db) memory.set(c.id, structuredClone(c));
    else {
        const t = db.transaction(["heads", "bodies"], "readwrite");
        t.objectStore("heads").put(headOf(c));
        t.objectStore("bodies").put(c);
        await ended(t);
    }
    if (channel) channel.postMessage({id: c.id});
}

export async function remove(id) {
    const db = await open();
    if (!db) memory.delete(id);
    else {
        const t = db.transaction(["heads", "bodies"], "readwrite");
        t.objectStore("heads").delete(id);
        t.objectStore("bodies").delete(id);
        await ended(t);
    }
    if (channel) channel.postMessage({id});
}

// Calls f(conversation) for each, one after the other; it ends where that returns false.
export async function each(f) {
    for (const head of await heads()) {
        const c = await load(head.id);
        if (c && f(c) === false) return;
    }
}

// Ids of the conversations that hold all of these words, in their title or their messages; at most `most`.
export async function search(query, most, signal) {
    const wanted = query.toLowerCase().split(/\s+/).filter(Boolean), found = [];
    await each((c) => {
        if (signal.aborted || found.length >= most) return false;
        const all = `${c.title}\n${Object.values(c.nodes).map((n) => n.content).join("\n")}`.toLowerCase();
        if (wanted.every((w) => all.includes(w))) found.push(c.id);
        return true;
    });
    return found;
}
