// Protects the input of forms. If a session has ended, the input of a form survives the new
// sign-in. The user must confirm that a changed form is closed or left. When a form is sent,
// its input is saved in sessionStorage. It is also saved when the user leaves a form to confirm
// their identity. The first page that belongs to neither removes the saved input. Passwords,
// codes and other secrets are never saved.

const dialog = document.getElementById("dialog");
const discard = document.getElementById("discard");
const words = JSON.parse(document.body.dataset.messages);
const { user, method, forget } = document.body.dataset;

const slot = "rolecall-input"; // the key in sessionStorage
const secrets = "[type=password], [type=file], [readonly], [autocomplete~=one-time-code], [data-proof], [data-passkey], [name^=current-]";
const keptHidden = /^(if-match|idempotency-key|timeZone|was-.*)$/; // the server needs these fields to find conflicts

const initial = new WeakMap(); // the input of a form when it was shown
let opened = ""; // the address of the page in the dialog
let pending = null; // the draft to fill into the dialog that is being loaded
let refusedChange = false; // the user has sent a changed form in the dialog, and the answer replaces the form
let sent = null; // the form that the browser has sent, and whose answer is the next page
let leaving = false; // the next page is the sign-in page, and the input stays saved

const isBox = (field) => field.type === "checkbox" || field.type === "radio";
const isPost = (form) => form.getAttribute("method") === "post";
const actionOf = (form) => new URL(form.getAttribute("action") ?? location.href, location.href).pathname;

function fieldsOf(form) {
  return [...form.elements].filter((field) => field.name && !field.disabled && !field.matches(`button, fieldset, ${secrets}`) && (field.type !== "hidden" || keptHidden.test(field.name)));
}

function inputOf(form) {
  return fieldsOf(form).map((field) => ({ name: field.name, type: field.type, value: field.value, checked: isBox(field) && field.checked }));
}

const textOf = (form) => JSON.stringify(inputOf(form).filter((entry) => entry.type !== "hidden"));

function isChanged(form) {
  return Boolean(user) && isPost(form) && initial.has(form) && initial.get(form) !== textOf(form);
}

function remember(root) {
  for (const form of root.querySelectorAll("form")) initial.set(form, textOf(form));
}

// Saves the draft. The browser can deny access to sessionStorage, for example because of
// its settings.
function store(draft) {
  try {
    if (draft) sessionStorage.setItem(slot, JSON.stringify(draft));
    else sessionStorage.removeItem(slot);
  } catch {
    // The input is not saved, and does not survive a sign-in.
  }
}

function stored() {
  try {
    return JSON.parse(sessionStorage.getItem(slot));
  } catch {
    return null;
  }
}

// Saves the input of the form. The user comes back to the page around the form. If onItsPage is
// true, the user comes back to the page of the form alone, also if it is in a dialog now.
function keep(form, onItsPage = false) {
  const input = inputOf(form);
  if (!user || !input.some((entry) => entry.type !== "hidden")) return;
  const here = dialog.contains(form) ? opened : "";
  const page = onItsPage && here ? new URL(here, location.href).pathname : location.pathname;
  store({ user, page, dialog: onItsPage ? "" : here, action: actionOf(form), input });
}

function set(field, value, checked) {
  if (isBox(field) ? field.checked === checked : field.value === value) return;
  if (isBox(field)) field.checked = checked;
  else field.value = value;
  const folded = field.closest("details:not([open])");
  if (folded) folded.open = true;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.dispatchEvent(new Event("change", { bubbles: true }));
}

function fillBoxes(form, entries) {
  for (const field of [...form.elements].filter(isBox)) {
    if (field.disabled) continue; // a box that was set before can enable or disable this one
    const entry = entries.find((other) => other.name === field.name && other.value === field.value);
    if (entry) set(field, field.value, entry.checked);
  }
}

// Fills in repeated text fields, and first adds the rows that the user had added.
function fillTexts(form, name, entries) {
  const all = () => fieldsOf(form).filter((field) => field.name === name && !isBox(field));
  const more = all()[0]?.closest("[data-repeated]")?.querySelector("[data-repeat]");
  for (let missing = entries.length - all().length; more && missing > 0; missing--) more.click();
  all().forEach((field, at) => set(field, entries[at]?.value ?? "", false));
}

function fillHidden(form, name, entries) {
  for (const field of form.querySelectorAll(`input[type=hidden][name="${CSS.escape(name)}"]`)) field.remove();
  for (const entry of entries) {
    const field = document.createElement("input");
    Object.assign(field, { type: "hidden", name, value: entry.value });
    form.append(field);
  }
}

// Reports whether the draft belongs to the form. Several forms can have the same address,
// so the form must also have a visible field of the draft.
function isOf(draft, form) {
  const names = new Set(inputOf(form).map((entry) => entry.name));
  return actionOf(form) === draft.action && draft.input.some((entry) => entry.type !== "hidden" && names.has(entry.name));
}

// Fills the draft into its form, if root contains the form.
function fill(root, draft) {
  const form = [...root.querySelectorAll("form")].find((other) => isOf(draft, other));
  if (!form) return;
  fillBoxes(form, draft.input.filter(isBox));
  for (const name of new Set(draft.input.map((entry) => entry.name))) {
    const entries = draft.input.filter((entry) => entry.name === name && !isBox(entry));
    const hidden = entries.filter((entry) => entry.type === "hidden");
    const texts = entries.filter((entry) => entry.type !== "hidden");
    if (hidden.length > 0) fillHidden(form, name, hidden);
    if (texts.length > 0) fillTexts(form, name, texts);
  }
  if (!isPost(form)) return;
  const note = document.createElement("p");
  note.className = "note";
  note.setAttribute("role", "status");
  note.textContent = words.restored;
  form.prepend(note);
}

// Fills in the saved draft if this page has its form. All pages remove the draft, except
// the sign-in pages and the pages that confirm the user's identity.
function restore() {
  const draft = stored();
  if (document.querySelector("section[data-keep-input]")) return;
  if (!draft || (!user && forget === undefined) || document.documentElement.hidden) return; // a hidden page is about to be reloaded
  store(null);
  const isDone = new URL(performance.getEntriesByType("navigation")[0]?.name ?? location.href).searchParams.has("done");
  if (draft.user !== user || method !== "GET" || isDone || ![draft.page, draft.action].includes(location.pathname)) return;
  if (draft.dialog && location.pathname !== draft.action) {
    pending = draft;
    window.htmx.ajax("GET", draft.dialog, "#dialog");
  } else {
    fill(document, draft);
  }
}

// Removes the selections of lists, which selection.js stores.
function forgetSelections() {
  try {
    for (const key of Object.keys(sessionStorage)) if (key.startsWith("selected ")) sessionStorage.removeItem(key);
  } catch {
    // Without access to sessionStorage, no selection was stored.
  }
}

document.addEventListener("DOMContentLoaded", () => {
  remember(document);
  // If this page answers a form with errors, the form shows input that is not saved. So the
  // form counts as changed.
  const main = document.getElementById("main");
  if (method === "POST") for (const form of main.querySelectorAll("form")) initial.set(form, "[]");
  restore();
  if (forget !== undefined) forgetSelections();
});

document.body.addEventListener("htmx:beforeOnLoad", (event) => {
  const address = event.detail.xhr.getResponseHeader("HX-Redirect");
  if (!address) return;
  const form = event.detail.elt.closest("form") ?? [...document.forms].find(isChanged);
  if (new URL(address, location.href).pathname.endsWith("/sign-in")) {
    leaving = true;
    if (form) keep(form);
  } else {
    sent = form;
  }
});

document.body.addEventListener("htmx:beforeSwap", (event) => {
  const form = event.detail.elt.closest("form");
  refusedChange = Boolean(form) && isChanged(form);
});

document.body.addEventListener("htmx:afterSwap", (event) => {
  const { target, pathInfo, requestConfig } = event.detail;
  if (target === dialog) opened = pathInfo.finalRequestPath;
  if (target !== dialog && target.id !== "confirm") return;
  remember(dialog);
  const form = dialog.querySelector("form");
  if (form && refusedChange && requestConfig.verb === "post") initial.set(form, "[]");
  if (pending) fill(dialog, pending);
  pending = null;
});

document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || !isPost(event.target)) return;
  sent = event.target;
  keep(sent);
});

document.addEventListener("click", (event) => {
  const form = event.target.closest("a[data-keep-input]")?.closest("form");
  if (!form || event.ctrlKey || event.metaKey || event.shiftKey) return; // opens another tab
  leaving = true;
  keep(form, true);
});

addEventListener("beforeunload", (event) => {
  if (!leaving && [...document.forms].some((form) => form !== sent && isChanged(form))) event.preventDefault();
});

// Asks the user before a dialog with a changed form is closed. Returns whether the user was
// asked.
function asks() {
  const form = [...(dialog?.querySelectorAll("form") ?? [])].find(isChanged);
  if (!dialog?.open || discard.open || !form) return false;
  discard.returnValue = "";
  discard.showModal();
  return true;
}

discard?.addEventListener("close", () => {
  if (discard.returnValue !== "discard") return;
  dialog.close();
});

dialog?.addEventListener("cancel", (event) => {
  if (asks()) event.preventDefault();
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || event.isComposing || !asks()) return;
  event.preventDefault();
  event.stopPropagation();
}, { capture: true });

dialog?.addEventListener("click", (event) => {
  if (!event.target.closest("[data-close]") || !asks()) return;
  event.preventDefault();
  event.stopPropagation();
}, { capture: true });
