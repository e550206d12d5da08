// The viewer has a dark theme; this lets it follow the system.
const dark = matchMedia("(prefers-color-scheme: dark)");

function follow() {
  document.documentElement.dataset.theme = dark.matches ? "dark" : "light";
}

// The viewer takes a relative server as relative to the host, and not, as it is
// meant, to the document: under a base path that is somewhere else.
async function show() {
  const base = new URL(".", location.href);
  const response = await fetch(new URL("openapi.json", base));
  if (!response.ok) {
    throw new Error(`status ${response.status}`);
  }
  const contract = await response.json();
  contract.servers = [{ url: base.href.slice(0, -1) }];
  await customElements.whenDefined("elements-api");
  document.querySelector("elements-api").apiDescriptionDocument = contract;
}

// The viewer remembers the theme of the last visit, and would prefer it.
localStorage.removeItem("mosaic-theme");
dark.addEventListener("change", follow);
follow();
show().catch((error) => {
  document.querySelector("main").textContent = `The OpenAPI document could not be shown: ${error.message}.`;
});
