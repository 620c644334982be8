// SPDX-License-Identifier: Apache-2.0
// theme.js: light or dark before the first paint: the choice of before, else what the system prefers. A classic script.
"use strict";
(() => {
    let choice = "";
    try {
        choice = localStorage.getItem("weft.theme") || "";
    } catch (e) {
        // without storage the system's preference holds
    }
    if (choice === "light" || choice === "dark") document.documentElement.dataset.theme = choice;
})();
