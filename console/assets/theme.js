// The choice between the theme of the system, the light and the dark one. The server writes the choice
// from the cookie into the page, so that no page shows the wrong theme at first.

const root = document.documentElement;
const button = document.querySelector("[data-theme-toggle]");
const words = JSON.parse(document.body.dataset.messages);
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
    document.cookie = `rolecall_theme=${theme}; Max-Age=${theme ? 31536000 : 0}${document.body.dataset.zoneCookie}`;
    show();
  });
}
