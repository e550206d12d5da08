// The script that every page loads in addition to htmx. It controls the dialog, the time
// zone, the theme, the rows of forms, and messages.

const dialog = document.getElementById("dialog");
const words = JSON.parse(document.body.dataset.messages);

// After a sign-out, the browser can still restore a page from its back-forward cache. So
// this script hides each page that enters the cache, and reloads it when the browser
// restores it.
addEventListener("pagehide", (event) => {
  if (event.persisted) document.documentElement.hidden = true;
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// The server shows times in the time zone of this cookie. If a page was rendered for
// another time zone, the script reloads it. It does not reload a page that answers a form,
// because a reload would send the form again.
const zoneCookie = `rolecall_time_zone=${Intl.DateTimeFormat().resolvedOptions().timeZone}`;
const hasZoneCookie = () => document.cookie.split("; ").includes(zoneCookie);
if (!hasZoneCookie()) {
  document.cookie = `${zoneCookie}; Max-Age=31536000${document.body.dataset.zoneCookie}`;
  if (hasZoneCookie() && document.body.dataset.method === "GET" && document.querySelector("time, [name=timeZone]")) {
    document.documentElement.hidden = true;
    location.reload();
  }
}

// After a form with errors, the focus moves to the first field with an error.
function focusFault(root) {
  const place = root.querySelector("[aria-invalid]") ?? root.querySelector(".problem");
  if (place?.matches(".problem")) place.tabIndex = -1;
  place?.focus();
  return place;
}
focusFault(document.getElementById("main"));

// The dialog opens when htmx loads content into it. When it closes, the focus returns to the
// element that opened it. In a destructive confirmation, the focus starts on Cancel, also if the
// form has fields, so that Enter does not confirm.
if (dialog) {
  let opener;
  document.body.addEventListener("htmx:beforeRequest", (event) => {
    if (event.detail.target === dialog) opener = event.detail.elt;
  });
  document.body.addEventListener("htmx:afterSwap", (event) => {
    if (event.detail.target === dialog && !dialog.open) dialog.showModal();
    if (event.detail.target !== dialog && event.detail.target.id !== "confirm") return;
    const form = document.getElementById("confirm");
    const field = "input:not([type=hidden], [hidden], [type=radio]:not(:checked)), textarea, select";
    if (form && !focusFault(form)) (form.querySelector(".danger ~ [data-close]") ?? form.querySelector(field))?.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) {
      event.preventDefault();
      dialog.close();
    }
  });
  dialog.addEventListener("close", () => {
    if (dialog.querySelector("[data-stale]")) location.reload(); // the page behind the dialog is out of date
    dialog.replaceChildren();
    (opener?.checkVisibility() ? opener : opener?.closest("details")?.querySelector("summary"))?.focus();
  });
}

// In a destructive form, Enter in a field does not confirm either. It moves the focus to the button
// that confirms. A held key does not press this button. Only Enter in a field that proves the identity
// submits the form.
document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.isComposing) return;
  const button = event.target.closest("input:not(.confirmation input)")?.form?.querySelector("button.danger");
  button?.focus();
  if (button || (event.repeat && event.target.matches("button.danger"))) event.preventDefault();
});

// Moves the message up, or to the left, until it covers no control. If no such place
// exists, the message moves to the top of the page.
const toasts = document.getElementById("toasts");
const step = 8;
function place() {
  const note = toasts.querySelector(".toast");
  if (!note) return;
  toasts.classList.remove("toasts-above");
  toasts.style.translate = "";
  const controls = [...document.querySelectorAll("a, button, input, select, textarea, summary, label")]
    .filter((control) => !toasts.contains(control) && control.checkVisibility())
    .map((control) => control.getBoundingClientRect());
  const { left, right, top, bottom } = note.getBoundingClientRect();
  const isFree = (x, y) => !controls.some((box) => box.right > left - x && box.left < right - x && box.bottom > top - y && box.top < bottom - y);
  for (let y = 0; y < top; y += step) {
    for (let x = 0; x === 0 || x < left; x += 8 * step) {
      if (!isFree(x, y)) continue;
      toasts.style.translate = `${-x}px ${-y}px`;
      return;
    }
  }
  toasts.classList.add("toasts-above");
}
for (const type of ["scroll", "resize"]) addEventListener(type, () => requestAnimationFrame(place), { passive: true });

// Shows a message for ten seconds. While the pointer or the focus is on the message, it
// stays. If a dialog is open, the message is added to the dialog, because the dialog covers
// the page.
function show(note) {
  const open = document.querySelector("dialog[open]");
  if (open) note.role = "status";
  if (open) open.append(note);
  else toasts.replaceChildren(note);
  place();
  let timer;
  const wait = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (note.matches(":hover, :focus-within") ? wait() : note.remove()), 10_000);
  };
  for (const type of ["pointerleave", "focusout"]) note.addEventListener(type, wait);
  wait();
}

function say(words) {
  const note = document.getElementById("toast").content.firstElementChild.cloneNode(true);
  note.querySelector("span").textContent = words;
  show(note);
}

document.addEventListener("click", (event) => {
  const note = event.target.closest("[data-close-toast]")?.closest(".toast");
  if (!note) return;
  (note.closest("dialog") ?? document.getElementById("main")).focus();
  note.remove();
});

function sayUnanswered() {
  say(words.unreachable);
}
document.body.addEventListener("htmx:sendError", sayUnanswered);

// A response without a request id does not come from Rolecall but, for example, from a
// proxy. Such a response is not shown in the page.
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.getResponseHeader("x-request-id")) return;
  event.detail.shouldSwap = false;
  sayUnanswered();
});

// A copy button copies the text of the element that data-copy names, or of the element
// before the button. If the browser denies access to the clipboard, the script selects the
// text instead.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const text = document.getElementById(button.dataset.copy) ?? button.previousElementSibling;
  try {
    await navigator.clipboard.writeText(text.innerText);
    say(words.copied);
  } catch {
    getSelection().selectAllChildren(text);
    say(words.selected);
  }
});

// A form is submitted only once.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method === "dialog") return;
  for (const button of event.target.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
// The message about a completed action is shown once. Removing "done" from the address
// prevents that a reload shows the message again. replaceState also prevents that a reload
// or the back button submits the form again.
const here = new URL(location.href);
const done = here.searchParams.has("done");
if (done) for (const name of ["done", "role", "undo-department", "undo-end", "undo-deleted"]) here.searchParams.delete(name);
history.replaceState(history.state, "", here);
if (done) {
  const note = document.querySelector("[data-toast]");
  note?.remove(); // screen readers announce only content that is added later
  setTimeout(() => note && show(note), 100);
}

// A click outside a menu closes it.
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target) || event.target.closest("a")) menu.open = false;
  }
});

// Buttons add and remove rows of a form. The script first empties the row to remove. If it
// is the last row, the row stays, so that the form always has a row.
document.addEventListener("click", (event) => {
  const repeat = event.target.closest("[data-repeat]");
  const row = event.target.closest("[data-unrepeat]")?.closest("[data-repeats]");
  if (repeat) {
    const spare = [...repeat.closest("[data-repeated]").querySelectorAll("[data-repeats]")].at(-1);
    const added = spare.cloneNode(true);
    added.classList.remove("spare");
    spare.parentElement.querySelector(".spare").before(added);
    added.querySelector("input").focus();
  } else if (row) {
    for (const input of row.querySelectorAll("input")) input.value = "";
    const others = [...row.parentElement.querySelectorAll("[data-repeats]:not(.spare)")].filter((other) => other !== row);
    if (others.length > 0) row.remove();
    (others.at(-1) ?? row).querySelector("input").focus();
  }
});

// If the user selects a department, the script also selects "Users in certain departments".
// If the user selects "All users", the script clears the departments.
document.addEventListener("input", ({ target }) => {
  const all = target.form?.querySelector("[name=where][value=everywhere]");
  if (!all) return;
  if (target === all) {
    for (const field of target.form.querySelectorAll("[name='reach/departments']")) {
      if (field.type === "checkbox") field.checked = false;
      else field.value = "";
    }
  } else if (target.name === "reach/departments" && (target.type === "checkbox" ? target.checked : target.value)) {
    target.form.querySelector("[name=where][value=departments]").checked = true;
  }
});

// Users can delegate every permission that they have. So Delegate is checked and cannot be changed for a
// selected permission. A disabled checkbox is not sent, so the role keeps only what was checked separately.
function showDelegation() {
  for (const box of document.querySelectorAll("[data-delegate]")) {
    const has = box.closest(".permit").querySelector("[name=permissions]");
    if (has.disabled || (has.checked ? box.checked : !box.disabled)) continue;
    box.checked = box.disabled = has.checked;
  }
}
showDelegation();
document.addEventListener("change", ({ target }) => {
  if (target.matches(".permit input")) showDelegation();
});

// The buttons for the theme of the system, the light theme and the dark theme. The script
// saves the choice in a cookie. The server reads the cookie and renders the page with the
// theme, so that no page first appears in the wrong theme.
{
  const root = document.documentElement;
  const button = document.querySelector("[data-theme-toggle]");
  const next = { "": "light", light: "dark", dark: "" };

  function show() {
    const theme = root.dataset.theme ?? "";
    const text = { "": words.themeSystem, light: words.themeLight, dark: words.themeDark }[theme];
    button.setAttribute("aria-label", text);
    button.title = text;
  }

  if (button) {
    button.hidden = false;
    show();
    button.addEventListener("click", () => {
      const theme = next[root.dataset.theme ?? ""];
      if (theme) root.dataset.theme = theme;
      else delete root.dataset.theme;
      document.cookie = `rolecall_theme=${theme}; Max-Age=${theme ? 31536000 : 0}${document.body.dataset.themeCookie}`;
      show();
    });
  }
}
