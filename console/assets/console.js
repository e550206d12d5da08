// What every page of the console does in the browser beside htmx: the dialog, times as
// the clock of the reader has them, rows of forms, and what is said for a while.

const dialog = document.getElementById("dialog");
const words = JSON.parse(document.body.dataset.messages);

// A page of which the browser keeps a picture may be of somebody who has signed out
// when it is shown again: it is loaded anew, and not seen before.
addEventListener("pagehide", (event) => {
  if (event.persisted) document.documentElement.hidden = true;
});
addEventListener("pageshow", (event) => {
  if (event.persisted) location.reload();
});

// A form that failed has the focus where it says why.
function focusFault(root) {
  const place = root.querySelector("[aria-invalid]") ?? root.querySelector(".problem");
  if (place?.matches(".problem")) place.tabIndex = -1;
  place?.focus();
  return place;
}
focusFault(document.getElementById("main"));

// The dialog shows what was loaded into it, and gives the focus back. Of a question
// whether to take something away, Enter is not the answer.
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
    if (form && !focusFault(form)) (form.querySelector(field) ?? form.querySelector(".danger ~ [data-close]"))?.focus();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target.closest("[data-close]")) {
      event.preventDefault();
      dialog.close();
    }
  });
  dialog.addEventListener("close", () => {
    if (dialog.querySelector("[data-stale]")) location.reload(); // what is behind it is not so any more
    dialog.replaceChildren();
    (opener?.checkVisibility() ? opener : opener?.closest("details")?.querySelector("summary"))?.focus();
  });
}

// What happens is said for a while, where it is seen and heard: a dialog that is open
// covers all else.
function say(words) {
  const note = document.createElement("p");
  note.className = "toast";
  note.textContent = words;
  const open = document.querySelector("dialog[open]");
  if (open) note.role = "status";
  if (open) open.append(note);
  else document.getElementById("toasts")?.replaceChildren(note);
  setTimeout(() => note.remove(), 8000);
}
function sayUnanswered() {
  say(words.unreachable);
}
document.body.addEventListener("htmx:sendError", sayUnanswered);

// What is not an answer of ours, such as one of a proxy, is not shown as one.
document.body.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.getResponseHeader("x-request-id")) return;
  event.detail.shouldSwap = false;
  sayUnanswered();
});

// What the button names, or stands beside, is copied; selected where that is not
// allowed.
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

// A form is sent once.
document.addEventListener("submit", (event) => {
  if (event.defaultPrevented || event.target.method === "dialog") return;
  for (const button of event.target.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
  if (event.target.dataset.sent) event.preventDefault();
  event.target.dataset.sent = "yes";
});
// What has been done is said once, and not again after a reload; nor does a reload, or
// the way back, send a form again whose answer this page is.
const here = new URL(location.href);
const done = here.searchParams.has("done");
if (done) for (const name of ["done", "role"]) here.searchParams.delete(name);
history.replaceState(history.state, "", here);
if (done) {
  const note = document.querySelector("[data-toast]");
  const toasts = note?.parentElement;
  note?.remove(); // only what comes later is read out
  setTimeout(() => note && toasts.append(note), 100);
  setTimeout(() => note?.remove(), 8000);
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

// Rows of a form come and go. What is removed is emptied first, so that the last one
// stays as a blank one.
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
