// The viewer has a dark theme, and this lets it follow the system.
const dark = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
}

// The viewer remembers the theme of the last visit, and would prefer it.
localStorage.removeItem("mosaic-theme");
dark.addEventListener("change", follow);
follow();
