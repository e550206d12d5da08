// Keyboard shortcuts. An element names its keys: data-keys="g u". The keys j and k move through the
// rows of a list.

const sheet = document.getElementById("shortcuts");
const words = JSON.parse(document.body.dataset.messages);
let prefix = ""; // "g" while a shortcut such as "g u" is typed

function rows() {
  return [...document.querySelectorAll("[data-rows] [data-row]")];
}

function step(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement.closest("tr, li")?.querySelector("[data-row]"));
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

// After the back button, the focus is on the row that the user opened.
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
    if (typing && !typing.closest("dialog")) typing.blur();
    return;
  }
  if (typing || document.querySelector("dialog[open]")) return;
  const keys = prefix ? `${prefix} ${event.key}` : event.key;
  prefix = "";
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
    setTimeout(() => (prefix = ""), 1500);
  }
});
