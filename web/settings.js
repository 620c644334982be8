// SPDX-License-Identifier: Apache-2.0
// settings.js: the panel of a conversation's settings. An empty field leaves a value to the server.
import {el, freshId} from "./dom.js";
import {toolsOf} from "./answer.js";

const SAMPLING = [
    ["temperature", "Temperature", "1", 0, 2, 0.05, "0: always the likeliest token"],
    ["top_p", "Top p", "1", 0, 1, 0.01, "the likeliest tokens that have this share together"],
    ["top_k", "Top k", "off", 0, 1000000, 1, "so many of the likeliest tokens"],
    ["min_p", "Min p", "0", 0, 1, 0.01, "tokens at least this likely beside the likeliest"],
    ["repetition_penalty", "Repetition", "1", 0.01, 100, 0.05, "above 1: what was said becomes less likely"],
    ["presence_penalty", "Presence", "0", -2, 2, 0.1, "for tokens that were there"],
    ["frequency_penalty", "Frequency", "0", -2, 2, 0.1, "for each time that they were"],
    ["seed", "Seed", "random", 0, 9007199254740991, 1, "the same seed gives the same answer"],
    ["max_tokens", "Max tokens", "context", 1, 2147483647, 1, "where an answer ends at the latest"],
];
const FORMS = [["text", "Free text", ""], ["schema", "JSON Schema", '{"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}'],
    ["regex", "Regular expression", "\\d{4}-\\d{2}-\\d{2}"], ["choice", "One of these lines", "yes\nno"], ["grammar", "Grammar (GBNF)", 'root ::= "yes" | "no"']];
const TOOLS = '[{"name": "weather", "description": "The weather of a town", "parameters": {"type": "object", "properties": ' +
    '{"town": {"type": "string"}}, "required": ["town"]}}]';

function field(label, input, hint) {
    const id = input.id || freshId("set");
    input.id = id;
    const note = hint ? el("span", {class: "hint", id: `${id}-hint`}, hint) : null;
    if (note) input.setAttribute("aria-describedby", note.id);
    return el("div", {class: "field"}, el("label", {for: id}, label), input, note);
}

function section(title, ...children) {
    return el("fieldset", null, el("legend", null, title), ...children);
}

// Fills the panel for these settings; `changed` is called after each change. memories: the server has some.
export function fillSettings(panel, s, changed, memories) {
    const bind = (input, name, read = (i) => i.value) => {
        input.addEventListener("input", () => {
            s[name] = read(input);
            changed();
        });
        return input;
    };
    const text = (name, rows, more = {}) => bind(el("textarea", {rows, value: s[name], ...more}), name);
    const check = (name, label) => el("label", {class: "check"},
        bind(el("input", {type: "checkbox", checked: s[name]}), name, (i) => i.checked), el("span", null, label));
    const number = ([name, label, fallback, min, max, step, hint]) =>
        field(label, bind(el("input", {type: "number", min, max, step: step < 1 ? "any" : step, placeholder: fallback, value: s[name], inputmode: "decimal"}), name), hint);
    const fault = (check) => {
        const line = el("p", {class: "fault", role: "status"});
        const look = () => {
            line.textContent = "";
            try {
                check();
            } catch (e) {
                line.textContent = e.message;
            }
        };
        look();
        return [line, look];
    };

    const form = bind(el("select", null, FORMS.map(([value, label]) => el("option", {value}, label))), "form");
    form.value = s.form;
    const formBox = text("form_text", 6, {spellcheck: "false", class: "code-box"});
    const formField = field("It is held to", formBox);
    const [formFault, lookAtForm] = fault(() => s.form === "schema" && s.form_text.trim() && JSON.parse(s.form_text));
    const showForm = () => {
        formField.hidden = s.form === "text";
        formBox.placeholder = FORMS.find(([value]) => value === s.form)[2];
        lookAtForm();
    };
    form.addEventListener("input", showForm);
    formBox.addEventListener("input", lookAtForm);
    showForm();

    const tools = text("tools", 6, {spellcheck: "false", class: "code-box", placeholder: TOOLS});
    const [toolFault, lookAtTools] = fault(() => toolsOf(s));
    tools.addEventListener("input", lookAtTools);

    panel.replaceChildren(
        section("System prompt", field("What the model is told first", text("system", 5, {id: "system"}))),
        section("Sampling", el("div", {class: "grid"}, SAMPLING.map(number)),
            field("Stop at", text("stop", 2, {spellcheck: "false", class: "code-box"}), "a text per line; the answer ends before it")),
        section("Thinking", check("thinking", "Models that can think before they answer do"),
            number(["thinking_budget", "At most", "no bound", 0, 1000000, 1, "tokens of thought"])),
        section("Form of the answer", field("Form", form), formField, formFault),
        section("Tools", field("Functions that the model may call, as JSON", tools, "with tools, the answer has no other form"), toolFault),
        memories || s.memory ? section("Memories", check("memory", "Memories that fit the first message come with it")) : "",
        section("Shown", check("probabilities", "Ask for the probabilities of tokens")));
}
