// What every page of the console does in the browser beside htmx: the dialog, the
// keyboard, times as the clock of the reader has them, and what goes away by itself.

const dialog = document.getElementById("dialog");
const sheet = document.getElementById("shortcuts");

// A page of which the browser kept a picture may be of somebody who has signed out.
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// The dialog shows what was loaded into it, and gives the focus back.
if (dialog) {
  let opener;
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target === dialog) opener = event.detail.elt;
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === dialog && !dialog.open) dialog.showModal();
    if (event.detail.target !== dialog && event.detail.target.id !== "confirm") return;
    const form = document.getElementById("confirm");
    (form?.querySelector("[aria-invalid]") ?? form?.querySelector("input:not([type=hidden])"))?.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) {
      event.preventDefault();
      dialog.close();
    }
  });
  dialog.addEventListener("close", () => {
    dialog.replaceChildren();
    (opener?.checkVisibility() ? opener : opener?.closest("details")?.querySelector("summary"))?.focus();
  });
}

// What happens is said where everybody notices it, for a while.
function say(words) {
  const note = document.createElement("p");
  note.className = "toast";
  note.textContent = words;
  document.getElementById("toasts")?.replaceChildren(note);
  setTimeout(() => note.remove(), 8000);
}
document.body.addEventListener("htmx:sendError", () => say("The service did not answer. Check the connection and try again."));

// The text beside the button is copied, or selected where that is not allowed.
document.addEventListener("click", async (event) => {
  const text = event.target.closest("[data-copy]")?.previousElementSibling;
  if (!text) return;
  try {
    await navigator.clipboard.writeText(text.textContent);
    say("Copied.");
  } catch {
    getSelection().selectAllChildren(text);
    say("Selected: copy it with the keyboard or the menu of the browser.");
  }
});

// A form is sent once.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method === "dialog") return;
  for (const button of event.target.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});

// What has been done is said once, and not again after a reload.
const here = new URL(location.href);
if (here.searchParams.has("done")) {
  here.searchParams.delete("done");
  history.replaceState(history.state, "", here);
  setTimeout(() => document.querySelector("[data-toast]")?.remove(), 6000);
}

// Exact times are those of the reader's clock.
const exact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
function tellTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) time.title = exact.format(new Date(time.dateTime));
}
tellTimes(document);
document.body.addEventListener("htmx:afterSwap", (event) => tellTimes(event.detail.target));

// A menu closes when the reader goes elsewhere.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target) || event.target.closest("a")) menu.open = false;
  }
});

// The keyboard. What a key does is said by the element that it stands for:
// data-keys="g u". Rows are walked with j and k.
let prefix = "";

function rows() {
  return [...document.querySelectorAll("[data-rows] [data-row]")];
}

function step(by) {
  const all = rows();
  const at = all.indexOf(document.activeElement);
  const next = all[at < 0 ? (by > 0 ? 0 : all.length - 1) : at + by];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function showSheet() {
  const list = sheet.querySelector("dl");
  const entries = [...document.querySelectorAll("[data-keys]")].map((e) => [e.dataset.keys, e.dataset.does]);
  if (rows().length > 0) entries.push(["j", "Next row"], ["k", "Previous row"], ["Enter", "Open the row"]);
  entries.push(["?", "This sheet"], ["Esc", "Close, or leave a field"]);
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
  const field = event.target.closest?.("input, select, textarea");
  const typing = field?.checkVisibility() ? field : null; // not one in a dialog that has just closed
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
    }
  } else if (keys === "j" || (keys === "ArrowDown" && rows().includes(document.activeElement))) {
    event.preventDefault();
    step(1);
  } else if (keys === "k" || (keys === "ArrowUp" && rows().includes(document.activeElement))) {
    event.preventDefault();
    step(-1);
  } else if (keys === "?" && sheet) {
    event.preventDefault();
    showSheet();
  } else if (keys === "g") {
    prefix = "g";
    setTimeout(() => (prefix = ""), 1500);
  }
});
