import "./browser.js";
