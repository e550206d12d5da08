// Keyboard shortcuts. The attribute data-keys="g u" of an element names its keys. The keys
// j and k move through the rows of a list.

const sheet = document.getElementById("shortcuts");
const words = JSON.parse(document.body.dataset.messages);
let prefix = ""; // "g" while a shortcut such as "g u" is typed
let forgetting; // the timer that ends the prefix

function rows() {
  return [...document.querySelectorAll("[data-rows] [data-row]")].filter((row) => row.checkVisibility());
}

function step(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement.closest("tr, li")?.querySelector("[data-row]"));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

// After the user returns with the back button, the focus is on the row that the user had
// opened.
document.addEventListener("click", (event) => {
  const row = rows().indexOf(event.target.closest("[data-row]"));
  if (row >= 0) history.replaceState({ ...history.state, row }, "");
});
if (performance.getEntriesByType("navigation")[0]?.type === "back_forward") rows()[history.state?.row]?.focus({ preventScroll: true });

function showSheet() {
  const list = sheet.querySelector("dl");
  const entries = [...document.querySelectorAll("[data-keys]")].map((e) => [e.dataset.keys, e.dataset.does]);
  if (rows().length > 0) entries.push(["j", words.nextRow], ["k", words.previousRow], ["Enter", words.openRow]);
  if (document.querySelector("[data-selection]")) entries.push(["x", words.selectRow]);
  entries.push(["?", words.thisSheet], ["Esc", words.close]);
  list.replaceChildren(...entries.flatMap(([keys, does]) => {
    const dt = document.createElement("dt");
    for (const key of keys.split(" ")) {
      const kbd = document.createElement("kbd");
      kbd.textContent = key;
      dt.append(kbd, " ");
    }
    const dd = document.createElement("dd");
    dd.textContent = does;
    return [dt, dd];
  }));
  sheet.showModal();
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
  const field = event.target.closest?.("input:not([type=checkbox], [type=radio]), select, textarea");
  const typing = field?.checkVisibility() ? field : null; // null for a field in a dialog that has just closed
  if (event.key === "Escape") {
    for (const menu of document.querySelectorAll("details.menu[open]")) {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
    if (typing && !typing.closest("dialog")) {
      event.preventDefault(); // otherwise it would clear the search, and the list would change under the keys for its rows
      typing.blur();
    }
    return;
  }
  if (typing || document.querySelector("dialog[open]")) return;
  const keys = prefix ? `${prefix} ${event.key}` : event.key;
  prefix = "";
  clearTimeout(forgetting); // otherwise it would end the prefix of the next shortcut
  const target = document.querySelector(`[data-keys="${CSS.escape(keys)}"]`);
  if (target) {
    event.preventDefault();
    if (target.matches("input")) {
      target.focus();
      target.select();
    } else {
      target.click();
      target.closest("details[open]")?.querySelector("a, button")?.focus();
    }
  } else if (keys === "j" || (keys === "ArrowDown" && rows().includes(document.activeElement))) {
    event.preventDefault();
    step(1);
  } else if (keys === "k" || (keys === "ArrowUp" && rows().includes(document.activeElement))) {
    event.preventDefault();
    step(-1);
  } else if (keys === "x") {
    document.activeElement.closest("[data-selection] tr")?.querySelector("input[name=user]")?.click();
  } else if (keys === "?" && sheet) {
    event.preventDefault();
    showSheet();
  } else if (keys === "g") {
    prefix = "g";
    forgetting = setTimeout(() => (prefix = ""), 1500);
  }
});

// The palette: Ctrl+K or ⌘K opens it, the arrow keys move through the results, and Enter opens the first
// one.
const opener = document.querySelector("[data-palette]");
let isWaiting = false; // Enter was pressed before the results of the typed text arrived

const links = () => [...document.querySelectorAll("#found a")];
const isCurrent = (field) => document.getElementById("found").dataset.query === field.value.trim();

document.addEventListener("keydown", (event) => {
  if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && opener) {
    event.preventDefault();
    if (!document.querySelector("dialog[open]")) opener.click();
    return;
  }
  const field = document.getElementById("find");
  const all = links();
  const at = all.indexOf(document.activeElement);
  if (!field || (event.target !== field && at < 0)) return;
  if (event.key === "Escape") {
    event.preventDefault(); // otherwise the first Escape would only clear the field
    field.closest("dialog")?.close();
  } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
    event.preventDefault();
    const next = at + (event.key === "ArrowDown" ? 1 : -1);
    (next < 0 ? field : all[next])?.focus();
  } else if (event.key === "Enter" && event.target === field && !field.form) {
    event.preventDefault();
    if (isCurrent(field)) all[0]?.click();
    else isWaiting = true;
  } else if (event.target === field) {
    isWaiting = false;
  }
});

document.body.addEventListener("htmx:afterSwap", () => {
  const field = document.getElementById("find");
  if (!isWaiting || !field || !isCurrent(field)) return;
  isWaiting = false;
  links()[0]?.click();
});
