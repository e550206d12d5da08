import { strict as assert } from "node:assert";
import { call, checkAccess, chord, endSession, focused, owner, person, scenario, signIn, world } from "./harness.js";

/** at returns the name of the focused element, or else its text or its tag. */
const at = (page) => page.evaluate(() => {
  const e = document.activeElement;
  return e.name || e.innerText?.trim() || e.tagName;
});

async function press(page, ...keys) {
  for (const key of keys) await page.keyboard.press(key);
}

scenario("sign-in, search, edit, role assignment, navigation and sign-out work using only the keyboard", async (page) => {
  await page.goto("/console/");
  await focused(page, "tenant");
  await page.keyboard.type("demo");
  await press(page, "Tab");
  await page.keyboard.type(owner);
  await press(page, "Tab");
  await page.keyboard.type(world.password);
  await press(page, "Enter");
  await page.waitForURL(/\/home$/);
  assert.match(await page.title(), /^Home · .+ · Rolecall$/);
  await chord(page, "g", "u");
  await page.waitForURL(/\/users$/);

  // Skip to the content.
  await press(page, "Tab");
  await focused(page, "Skip to content");
  await press(page, "Enter");
  await focused(page, "Users");

  // Find a user, open the user's page, and edit. When the dialog closes, the focus returns to the
  // element that opened the dialog.
  await press(page, "/");
  await page.keyboard.type("margaret ham", { delay: 20 });
  await page.getByRole("status").filter({ hasText: /^1 user$/ }).waitFor();
  await press(page, "Escape");
  assert.equal(await page.locator("#q").inputValue(), "margaret ham"); // Escape leaves the field, and keeps the list
  await press(page, "j", "Enter");
  await page.getByRole("heading", { name: "Margaret Hamilton" }).waitFor();
  assert.match(await page.title(), /^Margaret Hamilton · Users · /);
  await press(page, "e");
  await focused(page, "name");
  await press(page, "Escape");
  await focused(page, "Edit");
  await press(page, "e");
  await focused(page, "name");
  await press(page, "Tab");
  await focused(page, "department");
  await page.keyboard.insertText("Apollo");
  await press(page, "Enter");
  await page.getByText("Saved.").waitFor();

  // The Enter key opens the confirmation of a deletion. Then the button Cancel must have the focus,
  // so that a second Enter does not delete.
  await press(page, "m");
  for (let i = 0; !(await at(page)).startsWith("Delete"); i++, await press(page, "Tab")) assert.ok(i < 9);
  await press(page, "Enter");
  await focused(page, "Cancel");
  await press(page, "Enter");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await focused(page, "More");

  // Assign a role. The message that confirms the action contains the role's name.
  await press(page, "r");
  await page.waitForURL(/roles\/give$/);
  await press(page, "/");
  await page.keyboard.type("viewer", { delay: 20 });
  await page.waitForURL(/q=viewer$/);
  await press(page, "Tab");
  for (let i = 0; !(await at(page)).startsWith("Assign"); i++, await press(page, "Tab")) assert.ok(i < 9);
  await press(page, "Enter");
  await focused(page, "where");
  await press(page, "Enter");
  await page.getByText("Viewer was assigned to Margaret Hamilton.").waitFor();

  // Return to the list. The row that was opened before has the focus.
  await chord(page, "g", "u");
  await page.waitForURL(/\/users$/);
  await press(page, "j", "j", "j");
  const row = await at(page);
  await press(page, "Enter");
  await page.waitForURL(/users\/[0-9a-f-]{36}$/);
  await page.goBack();
  await page.waitForURL(/\/users$/);
  await focused(page, row);
  await press(page, "j");
  assert.notEqual(await at(page), row);

  // Each section has a shortcut, and the list of shortcuts shows it.
  await press(page, "?");
  const sheet = await page.getByRole("dialog").innerText();
  await press(page, "Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  for (const [keys, name, path] of await page.locator(".sections a").evaluateAll((list) => list.map((a) => [a.dataset.keys, a.innerText.trim(), a.pathname]))) {
    assert.ok(sheet.includes(`Go to ${name}`), name);
    await chord(page, ...keys.split(" "));
    await page.waitForURL((url) => url.pathname === path);
    assert.equal(await page.locator(".sections [aria-current=page]").innerText(), name);
  }

  // Sign out.
  await page.getByRole("button", { name: "Sign out" }).focus();
  await press(page, "Enter");
  await page.waitForURL(/sign-in/);
});

scenario("the focus moves to the error when a form is refused", async (page) => {
  await signIn(page);
  await chord(page, "g", "r");
  await page.waitForURL(/\/roles$/);
  await press(page, "c");
  await page.waitForURL(/roles\/create$/);
  await focused(page, "name");
  await page.keyboard.type("Viewer"); // a role with this name exists
  await press(page, "Enter");
  await page.locator("[aria-invalid], .problem").first().waitFor();
  await page.waitForFunction(() => document.activeElement.matches("[aria-invalid], .problem"));
  await checkAccess(page);

  const { id } = await person(page, owner);
  await page.goto(`/console/demo/users/${id}`);
  await press(page, "m");
  for (let i = 0; !(await at(page)).startsWith("Suspend"); i++, await press(page, "Tab")) assert.ok(i < 9);
  await press(page, "Enter");
  await focused(page, "Cancel");
  await page.getByRole("dialog").getByRole("button", { name: "Suspend" }).press("Enter");
  await page.waitForFunction(() => document.activeElement.matches("dialog .problem"));
  assert.match(await at(page), /Last owner/);
});

scenario("a form in a dialog is sent only once, even if Enter is pressed three times", async (page) => {
  await signIn(page);
  const { id } = await person(page, "barbara.hoare@demo.example");
  await page.goto(`/console/demo/users/${id}`);
  const sent = [];
  let answer;
  const held = new Promise((resolve) => (answer = resolve));
  await page.route("**/suspend", async (route) => {
    if (route.request().method() === "POST") {
      sent.push(route.request().url());
      await held;
    }
    await route.continue();
  });
  await press(page, "m");
  await page.getByRole("link", { name: "Suspend" }).press("Enter");
  await page.getByLabel("Reason").focus();
  await press(page, "Enter", "Enter", "Enter");
  answer();
  await page.getByText(/was suspended and signed out everywhere/).waitFor();
  assert.equal(sent.length, 1);
});

scenario("an HTML page from a proxy is not shown as search results", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users");
  await page.route("**/users?*", (route) => route.fulfill({ status: 200, contentType: "text/html", body: "<b>the proxy's own page</b>" }));
  await press(page, "/");
  await page.keyboard.type("ada");
  await page.getByText("The service didn't respond.").waitFor();
  assert.ok((await page.locator("tbody tr").count()) > 1);
  assert.equal(await page.getByText("the proxy's own page").count(), 0);
});

scenario("a page from the back-forward cache is hidden after the sign-out", async (page) => {
  await signIn(page);
  const shown = await page.evaluate(() => {
    dispatchEvent(new PageTransitionEvent("pagehide", { persisted: true })); // as in a browser with a back-forward cache
    return document.body.checkVisibility();
  });
  assert.equal(shown, false);
  await endSession(page);
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })));
  await page.waitForURL(/sign-in/);
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
});

scenario("the copy button copies only the ID", async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await signIn(page);
  const { id } = await person(page, owner);
  await page.goto(`/console/demo/users/${id}`);
  await page.getByRole("button", { name: "Copy the ID" }).press("Enter");
  await page.getByText("Copied.").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), id);
});

scenario("the request ID of a refusal can be copied", async (page) => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await signIn(page);
  const answer = await page.goto("/console/demo/nowhere");
  await page.getByRole("button", { name: "Copy the request ID" }).press("Enter");
  await page.getByText("Copied.").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), answer.headers()["x-request-id"]);
  await checkAccess(page);
});

scenario("after a sign-out in one tab, a search in another tab leads to the sign-in page", async (page) => {
  await signIn(page);
  const other = await page.context().newPage();
  await other.goto("/console/demo/users?q=hopper");
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.waitForURL(/sign-in/);
  await other.getByLabel("Search by name or email").fill("ada");
  await other.waitForURL(/sign-in\?return=%2Fusers/);
  assert.ok(!(await other.content()).includes("@demo.example"));
});

scenario("the chosen theme stays on every page, and before the first script runs", async (page) => {
  await page.emulateMedia({ colorScheme: "light" });
  await signIn(page);
  await page.goto("/console/demo/home");
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const light = await ground();
  const toggle = page.locator("[data-theme-toggle]");
  assert.match(await toggle.getAttribute("aria-label"), /^Theme of the system/);
  await toggle.press("Enter");
  assert.match(await toggle.getAttribute("aria-label"), /^Light theme/);
  assert.equal(await ground(), light);
  await toggle.press("Enter");
  assert.match(await toggle.getAttribute("aria-label"), /^Dark theme/);
  const dark = await ground();
  assert.notEqual(dark, light);
  await checkAccess(page);
  await page.route("**/console.*.js", (route) => route.fulfill({ contentType: "text/javascript", body: "" }));
  await page.goto("/console/demo/roles");
  assert.equal(await ground(), dark);
  await page.unroute("**/console.*.js");
  await page.goto("/docs");
  assert.equal(await page.evaluate(() => getComputedStyle(document.documentElement).colorScheme), "dark");
  assert.ok(await page.evaluate(async () => (await document.fonts.ready, document.fonts.check("16px Inter"))));
  await page.goto("/console/demo/roles");
  await toggle.press("Enter");
  assert.equal(await ground(), light);
  await page.reload();
  assert.match(await toggle.getAttribute("aria-label"), /^Theme of the system/);
});

for (const colorScheme of ["light", "dark"]) {
  scenario(`the palette finds users, roles, pages and actions in the ${colorScheme} theme`, async (page) => {
    await page.emulateMedia({ colorScheme });
    await signIn(page);
    await press(page, "Control+k");
    await focused(page, "q");
    await page.keyboard.type("margaret ham", { delay: 20 });
    await page.locator("#found[data-query='margaret ham'] a", { hasText: "Margaret Hamilton" }).waitFor();
    await checkAccess(page);
    await press(page, "ArrowDown");
    await focused(page, "Margaret Hamilton");
    await press(page, "ArrowUp");
    await focused(page, "q");
    await press(page, "Enter");
    await page.getByRole("heading", { name: "Margaret Hamilton" }).waitFor();

    await press(page, "Control+k");
    await focused(page, "q");
    await page.keyboard.type("new user");
    await press(page, "Enter"); // pressed before the results arrive
    await page.getByRole("heading", { name: "New user" }).waitFor();
    await press(page, "Escape", "Meta+k");
    await focused(page, "q");
    await press(page, "Escape");
    await page.waitForFunction(() => !document.querySelector("dialog[open]"));
    await focused(page, "Find");
  });
}

scenario("the palette is a page without scripts", async (page) => {
  await page.context().route("**/*.js", (route) => route.fulfill({ contentType: "text/javascript", body: "" }));
  await signIn(page);
  await page.goto("/console/demo/home");
  await page.getByRole("link", { name: "Find" }).click();
  await page.getByLabel("Name, email, ID, page or action").fill("support");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "Support agent" }).first().click();
  await page.getByRole("heading", { name: "Support agent" }).waitFor();
});

scenario("the palette finds a page by what it is for, and one Escape closes it", async (page) => {
  await signIn(page);
  await page.keyboard.press("Control+k");
  const field = page.getByRole("dialog").getByRole("searchbox");
  await field.fill("invite");
  await page.locator("#found").getByText("New user").waitFor();
  await page.locator("#found").getByText("Invitations").waitFor();
  await field.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
});

scenario("a role is assigned with j and Enter, and it is the main action of a user without roles", async (page) => {
  await signIn(page);
  const { body } = await call(page, "POST", "/users", { email: "keys@demo.example", name: "Keys Only" }, { "idempotency-key": "keys" });
  await page.goto(`/console/demo/users/${body.id}`);
  assert.deepEqual(await page.locator("main .button.primary").allInnerTexts(), ["Assign role"]);
  await press(page, "r");
  await page.waitForURL(/roles\/give$/);
  await press(page, "j");
  await focused(page, "Assign");
  await press(page, "Enter");
  await page.getByRole("dialog").waitFor();
  await focused(page, "where");
  await press(page, "Enter");
  await page.getByText("was assigned to Keys Only.").waitFor();
  assert.deepEqual(await page.locator("main .button.primary").allInnerTexts(), ["Invite"]);
});
