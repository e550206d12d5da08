// The palette: Ctrl+K or ⌘K opens it, the arrow keys move through the results, and Enter opens the first
// one.

const opener = document.querySelector("[data-palette]");
let isWaiting = false; // Enter was pressed before the results of the text arrived

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
  if (event.key === "ArrowDown" || event.key === "ArrowUp") {
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
