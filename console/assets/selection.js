// Selecting rows of a list: one row, a range with Shift, all rows of the page, or none. The
// selection is stored in sessionStorage, so that users from several pages of the list can
// be selected.

const words = JSON.parse(document.body.dataset.messages);
const plurals = new Intl.PluralRules(document.documentElement.lang);
const boxes = (form) => [...form.querySelectorAll("input[name=user]:not([data-elsewhere])")];
const keyAt = (path) => "selected " + document.body.dataset.user + " " + path;
const keyOf = (form) => keyAt(new URL(form.action).pathname.split("/users/")[0]);
let shift = false; // whether the last key or click was with Shift
let anchor = null; // the checkbox where a range begins

/** keep stores the selection and shows the number of selected users. */
function keep(form) {
  const all = boxes(form);
  const checked = all.filter((box) => box.checked).length;
  const selected = [...form.querySelectorAll("input[name=user]:checked")].map((box) => box.value);
  sessionStorage.setItem(keyOf(form), JSON.stringify(selected));
  const whole = form.querySelector("[data-select-all]");
  whole.checked = checked === all.length;
  whole.indeterminate = checked > 0 && checked < all.length;
  const matching = form.querySelector("[data-select-matching]");
  if (matching && !whole.checked) matching.checked = false;
  const text = matching?.checked ? words.allSelected : words.rowsSelected[plurals.select(selected.length)] ?? words.rowsSelected.other;
  for (const place of form.querySelectorAll("[data-selected]")) place.textContent = text.replace("{Count}", selected.length);
  const count = document.getElementById("count")?.textContent.trim();
  for (const place of form.querySelectorAll("[data-matching]")) place.textContent = count && "(" + count + ")";
}

/**
 * restore selects the users that were selected before, on this page or on another one. For
 * each selected user on another page, restore adds a hidden checkbox, which the form sends
 * too.
 */
function restore(form) {
  const kept = new Set(JSON.parse(sessionStorage.getItem(keyOf(form)) ?? "[]"));
  if (kept.size === 0) return;
  for (const box of form.querySelectorAll("[data-elsewhere]")) box.remove();
  for (const box of boxes(form)) {
    if (kept.delete(box.value)) box.checked = true;
  }
  for (const id of kept) {
    const box = document.createElement("input");
    Object.assign(box, { type: "checkbox", name: "user", value: id, checked: true, hidden: true });
    box.dataset.elsewhere = "";
    form.append(box);
  }
  keep(form);
}

function clear(form) {
  for (const box of form.querySelectorAll("[data-elsewhere]")) box.remove();
  for (const box of boxes(form)) box.checked = false;
  keep(form);
}

document.addEventListener("pointerdown", (event) => (shift = event.shiftKey), true);
document.addEventListener("keydown", (event) => (shift = event.shiftKey), true);
document.addEventListener("mousedown", (event) => {
  if (event.shiftKey && event.target.closest(".selector")) event.preventDefault(); // a click with Shift would select text
});

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-selection]");
  if (!form) return;
  const all = boxes(form);
  const at = all.indexOf(event.target);
  if (event.target.matches("[data-select-all]")) {
    for (const box of all) box.checked = event.target.checked;
  } else if (at >= 0) {
    const from = all.indexOf(anchor);
    if (shift && from >= 0) {
      for (const box of all.slice(Math.min(from, at), Math.max(from, at) + 1)) box.checked = event.target.checked;
    }
    anchor = event.target;
  }
  keep(form);
});

document.addEventListener("click", (event) => {
  const form = event.target.closest("[data-select-none]")?.closest("[data-selection]");
  if (!form) return;
  clear(form);
  form.querySelector("[data-row]").focus();
});

// Runs after a filter has loaded new results, and after an action, which ends the
// selection.
document.addEventListener("htmx:afterSwap", () => {
  const form = document.querySelector("[data-selection]");
  if (!form) return;
  if (document.querySelector("#dialog [data-stale]")) clear(form);
  else restore(form);
});

// The start of a job ends the selection too.
if (document.querySelector("[data-selection-ended]")) sessionStorage.removeItem(keyAt(location.pathname.split("/jobs/")[0]));

for (const form of document.querySelectorAll("[data-selection]")) restore(form);
