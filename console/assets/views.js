// Saved views: names and addresses of lists with filters. They are stored in this browser,
// separately for each user and each list.

const most = 30;
const keyOf = (menu) => `views ${document.body.dataset.user} ${menu.dataset.views}`;
const load = (menu) => JSON.parse(localStorage.getItem(keyOf(menu)) ?? "[]");

function store(menu, views) {
  localStorage.setItem(keyOf(menu), JSON.stringify(views.slice(0, most)));
}

/** fill lists the saved views in the menu. */
function fill(menu) {
  const rows = load(menu).map(({ name, query }) => {
    const row = menu.querySelector("template").content.firstElementChild.cloneNode(true);
    for (const place of row.querySelectorAll("bdi")) place.textContent = name;
    row.querySelector("a").href = `${menu.dataset.views}?${new URLSearchParams(query)}`;
    row.querySelector("button").addEventListener("click", () => {
      store(menu, load(menu).filter((view) => view.name !== name));
      fill(menu);
      menu.querySelector("summary").focus();
    });
    return row;
  });
  menu.querySelector("[data-view-list]").replaceChildren(...rows);
}

// Saves the current list under the typed name and replaces a view with the same name. Then
// the form leads to the address of the view.
document.addEventListener("submit", (event) => {
  if (!event.target.matches("[data-save-view]")) return;
  const menu = event.target.closest("[data-views]");
  const query = [...new FormData(event.target)];
  const name = Object.fromEntries(query).view;
  store(menu, [{ name, query }, ...load(menu).filter((view) => view.name !== name)]);
});

// Fills in the menu again, because htmx replaces it when the filters change.
document.addEventListener("htmx:oobAfterSwap", () => {
  for (const menu of document.querySelectorAll("[data-views]")) fill(menu);
});

for (const menu of document.querySelectorAll("[data-views]")) fill(menu);
