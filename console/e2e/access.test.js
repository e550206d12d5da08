import { strict as assert } from "node:assert";
import { call, checkAccess, checkWidth, chord, first, person, scenario, signIn } from "./harness.js";

/** search waits for the result, because a click on a link of a list that is replaced has no effect. */
async function search(page, text) {
  await page.getByLabel("Search by name").fill(text);
  await page.waitForURL((url) => url.searchParams.get("q") === text);
}

scenario("the access explorer shows who has users:erase, and through which roles", async (page) => {
  await signIn(page);
  const user = await person(page, "edsger.allen@demo.example");
  const { body: role } = await call(page, "POST", "/roles", { name: "Eraser", permissions: ["users:*"] }, { "idempotency-key": "eraser" });
  await call(page, "PUT", `/users/${user.id}/roles/${role.id}`, { reach: { departments: ["Sales"] }, expiresAt: "2999-12-31T00:00:00Z" });
  const { body: account } = await call(page, "POST", "/service-accounts", { name: "Nightly erasure" }, { "idempotency-key": "nightly" });
  await call(page, "PUT", `/service-accounts/${account.id}/roles/${role.id}`, {});
  await page.goto("/console/demo/users");

  await page.getByRole("link", { name: "Access", exact: true }).click();
  await page.getByLabel("Permission", { exact: true }).fill("users:erase");
  const row = page.getByRole("row", { name: /Edsger Allen/ });
  await row.waitFor();
  assert.match(await row.innerText(), /Eraser.*In Sales.*users:\*/s);
  assert.match(await page.getByRole("row", { name: /Ada Lovelace/ }).innerText(), /Owner.*Everywhere.*Never expires.*\*:\*/s);
  assert.match(await page.getByRole("row", { name: /Nightly erasure/ }).innerText(), /Eraser.*Everywhere/s);
  await page.waitForURL(/permission=users%3Aerase$/);
  await checkAccess(page);

  await page.getByLabel("Department").fill("sALES");
  await page.getByRole("heading", { name: "Erase users permanently, in sALES" }).waitFor();
  await row.waitFor();
  await page.getByLabel("Department").fill("Legal");
  await row.waitFor({ state: "detached" });
  await page.getByRole("row", { name: /Ada Lovelace/ }).waitFor();
});

scenario("a permission is found by its words", async (page) => {
  await signIn(page);
  await chord(page, "g", "p");
  await page.waitForURL(/\/access$/);
  await page.keyboard.press("/");
  await page.keyboard.type("erase", { delay: 20 });
  const choice = page.getByRole("link", { name: "Erase users permanently" });
  await page.getByRole("link", { name: "Create users" }).waitFor({ state: "detached" });
  await choice.focus();
  await page.keyboard.press("Enter");
  await page.getByRole("row", { name: /Ada Lovelace/ }).waitFor();
});

scenario("a clone of a role has the same description and permissions", async (page) => {
  await signIn(page);
  const role = await first(page, "/roles?q=support");
  await page.goto(`/console/demo/roles/${role.id}`);
  await page.getByRole("link", { name: "Clone" }).click();
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByText("Role created.").waitFor();
  const copy = await first(page, "/roles?q=copy");
  assert.equal(copy.name, `Copy of ${role.name}`);
  for (const member of ["description", "permissions", "grants"]) assert.deepEqual(copy[member], role[member]);
  assert.equal(copy.key, null);
});

scenario("a comparison shows the differences of two roles and of two users first", async (page) => {
  await signIn(page);
  const make = async (name, permissions, grants) => (await call(page, "POST", "/roles", { name, permissions, grants }, { "idempotency-key": name })).body;
  const left = await make("Left", ["users:read", "users:*", "shop/a:b"], []);
  const right = await make("Right", ["users:read", "roles:read"], ["shop/*:*"]);
  await page.goto(`/console/demo/roles/${left.id}`);
  await page.getByRole("link", { name: "Compare" }).click();
  await search(page, "right");
  await page.getByRole("link", { name: "Right" }).click();
  await page.getByRole("heading", { name: "Left and Right" }).waitFor();
  const texts = async (table) => (await table.locator("tbody tr:has(td)").allInnerTexts()).map((text) => text.split(/\s+/).join(" "));
  const differences = await texts(page.getByRole("table").first());
  assert.equal(differences.length, 4);
  assert.ok(differences.some((row) => /roles:read – no Can do$/.test(row)), differences.join());
  assert.ok(differences.some((row) => /shop\/a:b Can do Can delegate$/.test(row)), differences.join());
  await page.getByText("1 permission is the same").click();
  assert.match((await texts(page.getByRole("table").last()))[0], /users:read Can do Can do$/);
  await checkAccess(page);
  await checkWidth(page);

  const [ada, edsger] = [await person(page, "ada.lovelace@demo.example"), await person(page, "edsger.allen@demo.example")];
  await call(page, "PUT", `/users/${edsger.id}/roles/${left.id}`, { reach: { departments: ["Sales"] } });
  await page.goto(`/console/demo/users/${edsger.id}`);
  await page.getByRole("link", { name: "Compare" }).click();
  await search(page, "lovelace");
  await page.locator("main").getByRole("link", { name: ada.name }).click();
  await page.getByRole("heading", { name: `${edsger.name} and ${ada.name}` }).waitFor();
  const row = page.getByRole("row", { name: /shop\/a:b/ });
  assert.match(await row.innerText(), /In Sales\s+Everywhere/);
});

scenario("a user's permissions are filtered by department", async (page) => {
  await signIn(page);
  const user = await person(page, "edsger.allen@demo.example");
  const { body: role } = await call(page, "POST", "/roles", { name: "Seller", permissions: ["shop/orders:sell"] }, { "idempotency-key": "seller" });
  await call(page, "PUT", `/users/${user.id}/roles/${role.id}`, { reach: { departments: ["Sales"] } });
  await page.goto(`/console/demo/users/${user.id}`);
  await page.getByRole("link", { name: "What they can do in a department" }).click();
  const row = page.getByRole("row", { name: /shop\/orders:sell/ });
  await row.waitFor();
  await page.getByLabel("Department").fill("Legal");
  await row.waitFor({ state: "detached" });
  await page.getByLabel("Department").fill("SALES");
  await row.waitFor();
  await page.waitForURL(/department=SALES$/);
  await row.getByRole("link", { name: "Seller" }).click();
  await page.getByRole("heading", { name: "Seller" }).waitFor();
});

scenario("the roles of a user are assigned to another user, with a preview", async (page) => {
  await signIn(page);
  const make = async (name) => (await call(page, "POST", "/users", { email: `${name}@demo.example`, name: `${name} person` }, { "idempotency-key": name })).body.id;
  const [from, to] = [await make("Giver"), await make("Taker")];
  const roles = (await call(page, "GET", "/roles?limit=3")).body.items;
  await call(page, "PUT", `/users/${from}/roles/${roles[1].id}`, { reach: { departments: ["Sales"] } });
  await call(page, "PUT", `/users/${from}/roles/${roles[2].id}`, {});
  await call(page, "PUT", `/users/${to}/roles/${roles[2].id}`, {});
  await page.goto(`/console/demo/users/${to}/roles/give`);
  await page.getByRole("link", { name: "Copy from another user" }).click();
  await page.waitForURL(/\/compare$/); // the page before has a field with the same label
  await search(page, "giver");
  await page.getByRole("link", { name: "Giver person" }).click();
  await page.getByRole("link", { name: "Assign the roles of Giver person to Taker person" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("In Sales").waitFor();
  await dialog.getByText("Already assigned").waitFor();
  await checkAccess(page);
  for (const width of [390, 1440]) {
    await page.setViewportSize({ width, height: 844 });
    await checkWidth(page);
    if (process.env.ROLECALL_TEST_PICTURES) await page.screenshot({ path: `${process.env.ROLECALL_TEST_PICTURES}/copy-${width}.png` });
  }
  await dialog.getByRole("button", { name: "Assign" }).click();
  await page.getByText("The roles were assigned to Taker person.").waitFor();
  await page.locator(".table-held").getByText("In Sales").waitFor();
});
