import { strict as assert } from "node:assert";
import { join } from "node:path";
import { call, checkAccess, checkShifts, checkWidth, colorRules, newContext, results, scenario, signIn, world, until } from "./harness.js";
import { layoutFaults, menuFaults, scrollFaults } from "./layout.js";

/** The pages to check. If you add a page to the console, add its address here. */
const entries = ["/console/", "/console/demo/sign-in", "/console/demo/sign-out", "/console/demo/invitation#x", "/console/demo/password-reset", "/console/demo/email-change#x"];
const pages = ["/home", "/find", "/find?q=margaret", "/account", "/account/password", "/account/app", "/account/app/remove", "/account/passkeys/add", "/account/identities/add", "/account/confirm", "/users/{self}/identities", "/account/recovery-codes", "/settings", "/settings/edit", "/connections", "/connections/create", "/connections/{connection}", "/connections/{connection}/edit", "/connections/{connection}/delete", "/settings/logo", "/settings/logo/remove", "/users", "/users?q=zzzz", "/users?q=!", "/users?status=bogus", "/users?columns=lastLoginAt,roles,factors&view=Mine", "/users/create", "/users/selected/suspend?user={user}", "/users/selected/give-role?user={user}", "/users/selected/resume", "/users/all/suspend?return=/users", "/users/all/give-role?return=/users%3Fdepartment%3DSales", "/users/all/resume?return=/users%3Femail%3Dx", "/jobs", "/jobs/{job}", "/jobs/{job}/users", "/jobs/{job}/cancel", "/users/{user}", "/users/{user}/suspend", "/users/{user}/edit", "/users/{user}/email", "/users/{user}/sessions", "/users/{user}/roles", "/users/{user}/roles/give", "/users/{user}/roles/copy?with={self}", "/users/{user}/roles/{role}", "/roles", "/roles?q=zzzz", "/roles/create", "/roles/{role}", "/roles/{role}/edit", "/roles/{role}/delete", "/roles/{role}/users", "/roles/{role}/compare", "/roles/{role}/compare?with={owner}", "/roles/create?from={role}", "/users/{user}/access", "/users/{user}/compare?with={self}", "/access", "/access?permission=users:erase", "/access?permission=shop/tills:close&department=Sales",
  "/events", "/events?person=edsger", "/events/checkpoint", "/events?from=x", "/users/{user}/events", "/users/deleted", "/invitations", "/users/{deleted}/deleted", "/users/{deleted}/restore", "/users/{deleted}/erase", "/users/{user}/erase",
  "/service-accounts", "/webhooks", "/webhooks/create", "/webhooks/{webhook}", "/webhooks/{webhook}/edit", "/webhooks/{webhook}/deliveries", "/webhooks/{webhook}/preview", "/webhooks/{webhook}/replay", "/webhooks/{webhook}/skip", "/webhooks/{webhook}/rotate-secret", "/service-accounts?q=zzzz", "/service-accounts/create", "/service-accounts/{account}", "/service-accounts/{account}/edit", "/service-accounts/{account}/suspend",
  "/service-accounts/{account}/roles", "/service-accounts/{account}/roles/give", "/service-accounts/{account}/tokens", "/service-accounts/{account}/tokens/create", "/users/{self}/tokens", "/users/{self}/tokens/create",
  "/groups", "/groups?q=zzzz", "/groups/create", "/groups/{group}", "/groups/{group}/edit", "/groups/{group}/delete", "/groups/{group}/users", "/groups/{group}/users/add", "/groups/{group}/users/{user}", "/groups/{group}/users/{self}/remove", "/groups/{group}/roles", "/groups/{group}/roles/give", "/groups/{group}/roles/{role}", "/users/{self}/groups", "/users/{user}/groups/add",
  "/directories", "/directories/create", "/directories/{directory}", "/directories/{directory}/edit", "/directories/{directory}/pause", "/directories/{directory}/delete", "/directories/{directory}/requests", "/directories/{directory}/tokens", "/directories/{directory}/tokens/create", "/directories/{directory}/tokens/{token}/revoke",
  "/nowhere"];

const height = 844;

/** soon is the end of a token. Each scenario sends the same request for it. */
const soon = new Date(Date.now() + 864e6).toISOString();

/** provision sends requests of the directory with the token, and waits until they are listed. */
async function provision(page, directory, token) {
  for (const path of ["Users", `Users/${directory}`]) await fetch(`${world.base}/scim/v2/demo/${path}`, { headers: { authorization: `Bearer ${token}` } });
  await until(async () => (await call(page, "GET", `/directories/${directory}/requests`)).body.items.length === 2);
}

/**
 * look checks the page in three widths and both themes. In the dark theme it checks only the rules
 * about colors, because nothing else differs. If ROLECALL_TEST_PICTURES is set, it takes pictures.
 */
async function look(page, address, name) {
  await page.goto("about:blank");
  await page.goto(address);
  for (const width of [390, 1024, 1440]) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      await checkWidth(page);
      if (width !== 1024) await checkAccess(page, colorScheme === "dark" ? colorRules : undefined);
      const file = `${name.replaceAll(/\W+/g, "-").replaceAll(/^-|-$/g, "")}-${width}-${colorScheme}.png`;
      if (process.env.ROLECALL_TEST_PICTURES) await page.screenshot({ path: join(results, "pages", file), fullPage: true });
    }
  }
}

/** The widths in which texts must have room: at and between the places where the layout changes. ROLECALL_TEST_WIDTHS=all tests every 16 pixels. */
const widths = process.env.ROLECALL_TEST_WIDTHS === "all" ? Array.from({ length: 141 }, (_, i) => 320 + 16 * i) : [320, 640, 768, 900, 1024, 1100, 1440, 2560];

/** layout returns the faults of the layout in all widths. */
async function layout(page, address, name) {
  await page.goto(address);
  const faults = [];
  for (const width of widths) {
    await page.setViewportSize({ width, height });
    for (const measure of [layoutFaults, menuFaults, scrollFaults]) for (const fault of await page.evaluate(measure)) faults.push(`${name} at ${width}: ${fault}`);
  }
  return faults;
}

/** addresses signs in, creates the objects of the pages, and returns the address of each page by its path. */
async function addresses(page) {
  await signIn(page);
  const { body } = await call(page, "GET", "/users?limit=2");
  const { body: roles } = await call(page, "GET", "/roles?q=support");
  const { body: owners } = await call(page, "GET", "/roles?key=owner");
  const { body: account } = await call(page, "POST", "/service-accounts", { name: "Import" }, { "idempotency-key": "import" });
  await call(page, "PUT", `/service-accounts/${account.id}/roles/${roles.items[0].id}`, {});
  const sender = await call(page, "POST", "/roles", { name: "Sends changes", permissions: ["changes:read", "users:read"] }, { "idempotency-key": "sender" });
  await call(page, "PUT", `/service-accounts/${account.id}/roles/${sender.body.id}`, {}); // for the preview
  const hook = await call(page, "POST", "/webhooks", { url: "https://hooks.example.com/rolecall", types: ["user.created", "user.updated"], serviceAccountId: account.id }, { "idempotency-key": "hook" });
  assert.equal(hook.status, 201, JSON.stringify(hook.body));
  await call(page, "POST", `/webhooks/${hook.body.id}/test`);
  const connection = await call(page, "POST", "/connections", { name: "Acme SSO", issuer: "https://login.acme.example/oauth2/default", clientId: "0oa1b2c3d4", clientSecret: "secret", domains: ["acme.example", "acme-europe.example"], provisioning: { roleIds: [roles.items[0].id], department: "Sales" }, secondFactor: "trust", amrValues: ["mfa"] }, { "idempotency-key": "connection" });
  assert.equal(connection.status, 201, JSON.stringify(connection.body));
  const directory = await call(page, "POST", "/directories", { name: "Acme Entra" }, { "idempotency-key": "directory" });
  const token = await call(page, "POST", `/directories/${directory.body.id}/tokens`, { name: "Entra 2026", expiresAt: soon }, { "idempotency-key": "token" });
  assert.equal(token.status, 201, JSON.stringify(token.body));
  if (token.body.token) await provision(page, directory.body.id, token.body.token);
  const { body: deleted } = await call(page, "GET", "/users?status=deleted&limit=1");
  const { body: own } = await call(page, "GET", "/auths/session");
  const { body: group } = await call(page, "POST", "/groups", { name: "Night shift", description: "Everyone who works at night, in all countries.", externalId: "HR-0042" }, { "idempotency-key": "group" });
  await call(page, "PUT", `/groups/${group.id}/users/${own.user.id}`);
  await call(page, "PUT", `/groups/${group.id}/roles/${roles.items[0].id}`, { reach: { departments: ["Sales", "Support"] } });
  const job = await call(page, "POST", "/jobs/assign-role", { users: { q: "margaret", status: "active" }, roleId: roles.items[0].id, reach: { departments: ["Sales"] } }, { "idempotency-key": "job" });
  assert.equal(job.status, 201, JSON.stringify(job.body));
  const ids = { "{job}": job.body.id, "{user}": body.items[1].id, "{role}": roles.items[0].id, "{account}": account.id, "{self}": own.user.id, "{deleted}": deleted.items[0].id, "{owner}": owners.items[0].id, "{webhook}": hook.body.id, "{connection}": connection.body.id, "{group}": group.id, "{directory}": directory.body.id, "{token}": token.body.id };
  return new Map(pages.map((path) => [path, `/console/demo${path.replaceAll(/\{\w+\}/g, (name) => ids[name])}`]));
}

/** Each scenario has so few pages that even a busy machine looks at them within the limit of a scenario. */
const most = 30;
for (let from = 0; from < pages.length; from += most) {
  const part = pages.slice(from, from + most);
  const named = `the pages from ${part[0]} to ${part.at(-1)}`;

  scenario(`${named} are accessible and fit three widths in both themes`, async (page) => {
    const all = await addresses(page);
    for (const path of part) await look(page, all.get(path), path);
  });

  scenario(`no text or menu on ${named} is covered, broken, cut or hidden at any width`, async (page) => {
    const all = await addresses(page), faults = [];
    for (const path of part) faults.push(...await layout(page, all.get(path), path));
    assert.deepEqual(faults, []);
  });
}

scenario("the pages without a session are accessible and fit all widths in both themes", async (page) => {
  const faults = [];
  for (const path of entries) {
    await look(page, path, path);
    faults.push(...await layout(page, path, path));
  }
  assert.deepEqual(faults, []);
});

for (const colorScheme of ["light", "dark"]) {
  scenario(`the menu, dialogs and keyboard shortcuts are accessible in the ${colorScheme} theme`, async (page) => {
    await signIn(page);
    const { body } = await call(page, "GET", "/users?limit=2");
    await page.goto(`/console/demo/users/${body.items[1].id}`);
    await page.locator(".actions .menu summary").click();
    await checkAccess(page);
    await page.setViewportSize({ width: 390, height });
    await checkWidth(page);
    await page.locator(".actions .menu a").first().click();
    await page.getByRole("dialog").waitFor();
    await checkAccess(page);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.keyboard.press("?");
    await page.getByRole("heading", { name: "Keyboard" }).waitFor();
    await checkAccess(page);
  }, { colorScheme });
}

for (const path of ["/sign-in", "/users"]) {
  scenario(`${path} loads less than 100 kB without layout shifts or late requests`, async (page) => {
    if (path !== "/sign-in") await signIn(page);
    const storageState = await page.context().storageState();
    const context = await newContext({ storageState }); // nothing is cached
    try {
      const cold = await context.newPage();
      const protocol = await context.newCDPSession(cold);
      await protocol.send("Network.enable");
      const asked = [];
      let bytes = 0;
      protocol.on("Network.requestWillBeSent", (e) => asked.push(e));
      protocol.on("Network.loadingFinished", (e) => (bytes += e.encodedDataLength));
      const counted = path === "/users" ? cold.waitForResponse((r) => r.request().headers()["hx-target"] === "count") : undefined;
      await cold.goto(`/console/demo${path}`);
      await counted; // the script sends its request after the page has loaded
      await cold.waitForLoadState("networkidle");
      assert.ok(bytes > 10_000 && bytes < 100_000, `${bytes} bytes`);
      const later = asked.filter((e) => e.initiator.type === "script").map((e) => e.request.headers["HX-Target"]);
      assert.deepEqual(later, path === "/users" ? ["count"] : []); // only the count is a separate request; the page itself shows everything else
      await checkShifts(cold);
    } finally {
      await context.close();
    }
  });
}
