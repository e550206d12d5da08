import { strict as assert } from "node:assert";
import { call, chord, first, focused, owner, person, scenario, setPassword, signIn } from "./harness.js";

const names = (page) => page.locator("[data-row] bdi").allInnerTexts();

/** listed waits until the address matches pattern and the list reports its status, such as "1 user". */
async function listed(page, pattern, status) {
  await page.waitForURL(pattern);
  await page.getByRole("status").filter({ hasText: status }).waitFor();
}

scenario("a search shows matching users while typing, and reload and back keep it", async (page) => {
  await signIn(page);
  await page.keyboard.press("/");
  await page.keyboard.type("zoe pe", { delay: 20 });
  await listed(page, /q=zoe\+pe$/, "1 user");
  assert.deepEqual(await names(page), ["Zoë Perlman"]);
  await focused(page, "q");
  await page.reload();
  assert.deepEqual(await names(page), ["Zoë Perlman"]);
  assert.equal(await page.getByLabel("Search by name or email").inputValue(), "zoe pe");
  await page.getByRole("link", { name: "Zoë Perlman" }).click();
  await page.getByRole("heading", { name: "Zoë Perlman" }).waitFor();
  await page.goBack();
  await listed(page, /q=zoe\+pe$/, "1 user");
  assert.deepEqual(await names(page), ["Zoë Perlman"]);
});

scenario("filters, order and pages of the list are in the URL", async (page) => {
  await signIn(page);
  await page.getByLabel("Status").selectOption("suspended");
  await page.waitForURL(/status=suspended/);
  await page.getByLabel("Department").fill("sales");
  await page.waitForURL(/department=sales&status=suspended/);
  const shown = await page.locator("tbody tr").allInnerTexts();
  assert.ok(shown.length > 0 && shown.every((row) => /Sales/.test(row) && /Suspended/.test(row)), shown.join());

  await page.goto("/console/demo/users");
  const role = await page.getByLabel("Role").locator("option", { hasText: "Support agent" }).getAttribute("value");
  await page.getByLabel("Role").selectOption(role);
  await page.waitForURL(new RegExp(`role=${role}`));

  await page.goto("/console/demo/users?sort=-name");
  await page.getByRole("status").filter({ hasText: /^2\d\d users$/ }).waitFor();
  assert.equal(await page.locator("th[aria-sort=descending] a").innerText(), "Name");
  const first = await names(page);
  assert.equal(first.length, 50);
  await page.getByRole("link", { name: "Next page" }).click();
  await page.waitForURL(/cursor=/);
  const second = await names(page);
  assert.ok(!second.some((name) => first.includes(name)));
  await page.reload();
  assert.deepEqual(await names(page), second);
  await page.goBack();
  assert.deepEqual(await names(page), first);
});

scenario("an invalid search shows the error, and a search without matches says so", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users?q=%21%21&status=active");
  assert.match(await page.getByRole("alert").innerText(), /The search must contain a letter or a digit/);
  await page.getByRole("link", { name: "Clear all filters" }).click();
  await page.getByLabel("Search by name or email").fill("nobody is called so");
  await page.getByText("No users match").waitFor();
});

scenario("the keyboard opens the help, moves through the rows and changes the page", async (page) => {
  await signIn(page);
  await page.keyboard.press("?");
  assert.match(await page.getByRole("dialog").innerText(), /Go to Users.*Search.*Next row/s);
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "hidden" });
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("j");
  await page.keyboard.press("k");
  const name = await page.evaluate(() => document.activeElement.innerText);
  await page.keyboard.press("Enter");
  await page.waitForURL(/users\/[0-9a-f-]{36}$/);
  assert.ok(name.includes(await page.locator("h1 bdi").innerText()));
  await chord(page, "g", "u");
  await page.waitForURL(/\/users$/);
  await page.keyboard.press("n");
  await page.waitForURL(/cursor=/);
});

scenario("fields without permission are shown as Hidden, with the missing permission", async (page) => {
  await signIn(page);
  const role = await first(page, "/roles?q=directory");
  const tony = await person(page, "tony.hoare@demo.example");
  const { status } = await call(page, "PUT", `/users/${tony.id}/roles/${role.id}`, {});
  assert.ok([200, 201].includes(status));
  const password = await setPassword(tony.email);
  await page.context().clearCookies();
  await signIn(page, tony.email, password);
  await page.getByText("You need users.email:read").waitFor();
  assert.equal(await page.getByRole("columnheader", { name: "Email" }).count(), 0);
  assert.ok(!(await page.content()).includes(owner));
  await page.locator("[data-row]").nth(1).click();
  await page.getByText("Parts of this page are hidden").waitFor();
  assert.equal(await page.getByTitle("Hidden. You need users.email:read to see this.").innerText(), "Hidden");
  assert.equal(await page.locator(".actions").count(), 0);
});

scenario("names are shown as text, even if they contain markup", async (page) => {
  await signIn(page);
  const hostile = [`<img src=x onerror=alert(1)>`, `"><script>alert(1)</script>`, "\u200Fgnp.exe desrever", "=HYPERLINK(\"http://evil\")", "W".repeat(255), "{{7*7}} ${7*7} <% 7 %>"];
  for (const [i, name] of hostile.entries()) {
    const made = await call(page, "POST", "/users", { email: `hostile${i}@demo.example`, name, department: name.slice(0, 200) }, { "idempotency-key": `hostile${i}` });
    assert.equal(made.status, 201);
  }
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 800 });
    await page.goto("/console/demo/users?q=hostile");
    const shown = (name) => (name.length > 160 ? `${name.slice(0, 160)}…` : name);
    for (const name of hostile) assert.ok((await names(page)).includes(shown(name)), name);
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0, `wider than ${width}`);
  }
  await page.locator("[data-row]").nth(4).click();
  await page.waitForURL(/users\/[0-9a-f-]{36}$/);
  assert.ok((await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0);
});

scenario("Shift selects a range, and the selection is kept over pages and searches", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/users?sort=name");
  const box = (at) => page.locator("tbody input[name=user]").nth(at);
  const selected = (words) => page.locator(".selection-bar").getByText(words).waitFor();
  await box(1).check();
  await box(4).click({ modifiers: ["Shift"] });
  await selected("4 selected");
  assert.deepEqual(await page.locator("tbody input[name=user]:checked").count(), 4);
  await box(2).press("Shift+Space");
  await selected("1 selected");
  await page.getByRole("link", { name: "Next page" }).click();
  await page.waitForURL(/cursor=/);
  await selected("1 selected");
  await box(0).check();
  await selected("2 selected");
  await page.getByLabel("Search by name or email").fill("zoe pe");
  await listed(page, /q=zoe\+pe/, "1 user");
  await selected("2 selected");
  await page.locator(".selection-bar").getByRole("button", { name: "Suspend" }).click();
  await page.getByRole("heading", { name: "Suspend 2 users?" }).waitFor();
  await page.keyboard.press("Escape");
  await page.locator(".selection-bar").getByRole("button", { name: "Clear" }).click();
  await page.reload();
  assert.equal(await page.locator("input[name=user]:checked").count(), 0);
});
