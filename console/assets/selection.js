// Selection of rows in a list: the count, all, and none.

const words = JSON.parse(document.body.dataset.messages);
const plurals = new Intl.PluralRules(document.documentElement.lang);
const boxes = (form) => [...form.querySelectorAll("input[name=user]")];

function tell(form) {
  const all = boxes(form);
  const count = all.filter((box) => box.checked).length;
  const whole = form.querySelector("[data-select-all]");
  whole.checked = count === all.length;
  whole.indeterminate = count > 0 && count < all.length;
  const text = words.rowsSelected[plurals.select(count)] ?? words.rowsSelected.other;
  for (const place of form.querySelectorAll("[data-selected]")) place.textContent = text.replace("{Count}", count);
}

document.addEventListener("change", (event) => {
  const form = event.target.closest("[data-selection]");
  if (!form) return;
  if (event.target.matches("[data-select-all]")) {
    for (const box of boxes(form)) box.checked = event.target.checked;
  }
  tell(form);
});

document.addEventListener("click", (event) => {
  const form = event.target.closest("[data-select-none]")?.closest("[data-selection]");
  if (!form) return;
  for (const box of boxes(form)) box.checked = false;
  tell(form);
  form.querySelector("[data-row]").focus();
});
