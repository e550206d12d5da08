// Filters the operations as the reader types. Without scripts, the form does the same on the server.
const form = document.querySelector(".search");
const field = form.elements.q;
const status = form.querySelector("[role=status]");

function filter() {
  const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const group of document.querySelectorAll(".group")) {
    let any = false;
    for (const row of group.querySelectorAll("li")) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      any ||= !row.hidden;
      shown += row.hidden ? 0 : 1;
    }
    group.hidden = !any;
  }
  status.textContent = words.length === 0 ? "" : `${shown} operations`;
}

// The page has only the operations that match the query on the server. A wider search needs a new page.
if (!new URLSearchParams(location.search).get("q")) {
  field.addEventListener("input", filter);
  filter();
}
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && document.activeElement !== field) {
    event.preventDefault();
    field.focus();
  }
});
