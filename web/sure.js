// SPDX-License-Identifier: Apache-2.0
// sure.js: asks before something is lost. Where `typed` is given the word must be written first.
import {el, freshId} from "./dom.js";

// True: yes.
export function sure({title, text, yes = "Delete", no = "Keep", typed = ""}) {
    const dialog = document.getElementById("sure"), id = freshId("sure"), button = el("button", {class: "button strong", value: "yes", disabled: !!typed}, yes);
    const box = typed && el("input", {id, autocomplete: "off", spellcheck: "false", on: {input: () => (button.disabled = box.value.trim().toLowerCase() !== typed)}});
    dialog.replaceChildren(el("form", {method: "dialog"}, el("h2", {id: "sure-title"}, title), el("p", null, text),
        box && [el("label", {for: id}, `Type “${typed}” to go on`), box],
        el("div", {class: "dialog-buttons"}, button, el("button", {class: "button", value: ""}, no))));
    dialog.returnValue = "";
    return new Promise((done) => {
        dialog.onclose = () => done(dialog.returnValue === "yes");
        dialog.showModal();
    });
}
