import { strict as assert } from "node:assert";
import { authenticator, call, endSession, first, focused, owner, person, scenario, setPassword, signedIn, signIn, until, world } from "./harness.js";

/**
 * forms maps the path of each form with input to the address of a page that shows the form. A Go
 * test checks that forms and withoutInput together contain all forms for signed-in users.
 */
const forms = {
  "/account/passkeys": "/account/passkeys/add",
  "/account/passkeys/{passkeyId}/rename": "/account",
  "/settings/edit": "/settings/edit",
  "/users/create": "/users/create",
  "/users/selected/give-role": "/users/selected/give-role?user={active}&user={pending}",
  "/users/selected/suspend": "/users/selected/suspend?user={active}&user={pending}",
  "/users/selected/resume": "/users/selected/resume?user={active}&user={pending}",
  "/users/all/give-role": "/users/all/give-role?return=%2Fusers",
  "/users/all/suspend": "/users/all/suspend?return=%2Fusers",
  "/users/all/resume": "/users/all/resume?return=%2Fusers",
  "/users/{id}/edit": "/users/{active}/edit",
  "/users/{id}/resume": "/users/{suspended}/resume",
  "/users/{id}/email": "/users/{active}/email",
  "/users/{id}/suspend": "/users/{active}/suspend",
  "/users/{id}/erase": "/users/{active}/erase",
  "/roles/create": "/roles/create",
  "/groups/create": "/groups/create",
  "/groups/{id}/edit": "/groups/{group}/edit",
  "/groups/{id}/roles/{roleId}": "/groups/{group}/roles/{role}",
  "/roles/{id}/edit": "/roles/{role}/edit",
  "/users/{id}/roles/{roleId}": "/users/{active}/roles/{role}",
  "/service-accounts/{id}/roles/{roleId}": "/service-accounts/{account}/roles/{role}",
  "/users/{id}/tokens/create": "/users/{self}/tokens/create",
  "/service-accounts/{id}/tokens/create": "/service-accounts/{account}/tokens/create",
  "/users/{id}/roles/copy": "/users/{active}/roles/copy?with={self}",
  "/service-accounts/create": "/service-accounts/create",
  "/service-accounts/{id}/edit": "/service-accounts/{account}/edit",
  "/service-accounts/{id}/suspend": "/service-accounts/{account}/suspend",
  "/service-accounts/{id}/resume": "/service-accounts/{suspended-account}/resume",
  "/connections/create": "/connections/create",
  "/connections/{id}/edit": "/connections/{connection}/edit",
  "/directories/create": "/directories/create",
  "/directories/{id}/edit": "/directories/{directory}/edit",
  "/directories/{id}/tokens/create": "/directories/{directory}/tokens/create",
  "/webhooks/create": "/webhooks/create",
  "/webhooks/{id}/edit": "/webhooks/{webhook}/edit",
  "/webhooks/{id}/replay": "/webhooks/{webhook}/replay",
  "/webhooks/{id}/skip": "/webhooks/{webhook}/skip",
};

/**
 * withoutInput maps the forms that have no input, or only secrets as input, to addresses. A form with
 * an empty address is skipped, because it needs a passkey, another second factor, an identity or a job.
 */
const withoutInput = {
  "/account/password": "/account/password",
  "/account/app": "/account/app",
  "/account/app/confirm": "/account/app",
  "/account/app/remove": "/account/app/remove",
  "/account/recovery-codes": "/account/recovery-codes",
  "/account/passkeys/add": "",
  "/jobs/{id}/cancel": "",
  "/settings/logo": "/settings/logo",
  "/settings/logo/remove": "/settings/logo/remove",
  "/account/passkeys/{passkeyId}/remove": "",
  "/users/{id}/invite": "/users/{pending}/invite",
  "/users/{id}/password-reset": "/users/{active}/password-reset",
  "/users/{id}/sign-out": "/users/{self}/sign-out",
  "/users/{id}/withdraw": "/users/{pending}/withdraw",
  "/users/{id}/reset-factors": "",
  "/users/{id}/delete": "/users/{active}/delete",
  "/users/{id}/sessions/{sessionId}/end": "/users/{self}/sessions/{session}/end",
  "/roles/{id}/delete": "/roles/{role}/delete",
  "/groups/{id}/delete": "/groups/{group}/delete",
  "/groups/{id}/users/{userId}": "/groups/{group}/users/{pending}",
  "/groups/{id}/users/{userId}/remove": "/groups/{group}/users/{active}/remove",
  "/groups/{id}/roles/{roleId}/take": "/groups/{group}/roles/{role}/take",
  "/webhooks/{id}/rotate-secret": "/webhooks/{webhook}/rotate-secret",
  "/account/identities/add": "/account/identities/add",
  "/account/identities/link": "",
  "/account/confirm": "",
  "/account/confirm/done": "",
  "/users/{id}/identities/{identityId}/delete": "",
  "/connections/{id}/test": "/connections/{connection}/test",
  "/connections/{id}/delete": "/connections/{connection}/delete",
  "/directories/{id}/pause": "/directories/{directory}/pause",
  "/directories/{id}/resume": "/directories/{directory}/resume",
  "/directories/{id}/delete": "/directories/{directory}/delete",
  "/directories/{id}/tokens/{tokenId}/revoke": "/directories/{directory}/tokens/{directory-token}/revoke",
  "/webhooks/{id}/test": "/webhooks/{webhook}/test",
  "/webhooks/{id}/enable": "/webhooks/{webhook}/enable",
  "/webhooks/{id}/disable": "/webhooks/{webhook}/disable",
  "/webhooks/{id}/delete": "/webhooks/{webhook}/delete",
  "/webhooks/{id}/resend/{eventId}": "/webhooks/{webhook}/resend/{self}",
  "/users/{id}/roles/{roleId}/take": "/users/{active}/roles/{role}/take",
  "/service-accounts/{id}/roles/{roleId}/take": "/service-accounts/{account}/roles/{role}/take",
  "/users/{id}/tokens/{tokenId}/revoke": "/users/{self}/tokens/{token}/revoke",
  "/service-accounts/{id}/tokens/{tokenId}/revoke": "/service-accounts/{account}/tokens/{account-token}/revoke",
  "/service-accounts/{id}/delete": "/service-accounts/{account}/delete",
  "/users/{id}/restore": "/users/{deleted}/restore",
};

/** filters are the addresses of the lists with a filter form, which has the method GET. */
const filters = ["/users", "/roles", "/groups", "/events", "/service-accounts", "/users/{active}/roles/give"];

/** kept returns the input that the script drafts.js has saved in sessionStorage, as JSON, or null. */
const kept = (page) => page.evaluate(() => sessionStorage.getItem("rolecall-input"));

const secret = "a secret that no page keeps";

/** things creates users, roles and so on, and returns their ids for the placeholders of the addresses. */
async function things(page) {
  const create = async (path, body) => (await call(page, "POST", path, body, { "idempotency-key": JSON.stringify(body).replaceAll(/\W+/g, "-").slice(0, 60) })).body;
  const { body: session } = await call(page, "GET", "/auths/session");
  const active = await create("/users", { email: "draft.active@demo.example", name: "Draft Active", department: "Sales", metadata: { floor: "3" } });
  await setPassword("draft.active@demo.example");
  const pending = await create("/users", { email: "draft.pending@demo.example", name: "Draft Pending" });
  await call(page, "POST", `/users/${pending.id}/invitations`, undefined, { "idempotency-key": "draft-pending" });
  const suspended = await create("/users", { email: "draft.suspended@demo.example", name: "Draft Suspended" });
  await call(page, "POST", `/users/${suspended.id}/suspend`, {});
  const account = await create("/service-accounts", { name: "Draft import" });
  const other = await create("/service-accounts", { name: "Draft export" });
  await call(page, "POST", `/service-accounts/${other.id}/suspend`, {});
  const role = await first(page, "/roles?q=support");
  await call(page, "PUT", `/users/${active.id}/roles/${role.id}`, {});
  await call(page, "PUT", `/service-accounts/${account.id}/roles/${role.id}`, {});
  const group = await create("/groups", { name: "Draft team" });
  await call(page, "PUT", `/groups/${group.id}/roles/${role.id}`, {});
  await call(page, "PUT", `/groups/${group.id}/users/${active.id}`);
  const token = { name: `${Date.now()} draft`, permissions: ["users:read"], expiresAt: new Date(Date.now() + 86_400_000).toISOString() };
  const own = await create(`/users/${session.user.id}/tokens`, token);
  const { body: theirs } = await call(page, "POST", `/service-accounts/${account.id}/tokens`, token, { "idempotency-key": token.name.replace(" ", "-") });
  const deleted = await first(page, "/users?status=deleted&limit=1");
  const webhook = await create("/webhooks", { url: "https://hooks.example.com/draft", serviceAccountId: account.id, enabled: false });
  const connection = await create("/connections", { name: "Draft SSO", issuer: "https://login.draft.example", clientId: "draft", clientSecret: "draft" });
  const directory = await create("/directories", { name: token.name });
  const ofDirectory = await create(`/directories/${directory.id}/tokens`, { name: token.name, expiresAt: token.expiresAt });
  return {
    connection: connection.id ?? (await first(page, "/connections")).id, active: active.id, pending: pending.id, suspended: suspended.id, account: account.id, "suspended-account": other.id, role: role.id,
    self: session.user.id, session: session.id ?? session.session?.id, token: own.id, "account-token": theirs.id, deleted: deleted.id, webhook: webhook.id, group: group.id,
    directory: directory.id, "directory-token": ofDirectory.id,
  };
}

const addressOf = (path, ids) => `/console/demo${path.replaceAll(/\{([\w-]+)\}/g, (_, name) => ids[name])}`;

/**
 * input returns the name, the value and the state of each field of the form. It leaves out
 * secrets and fields that the user cannot change.
 */
const input = (form) => form.evaluate((it) => [...it.elements]
  .filter((e) => e.name && !e.disabled && !e.readOnly && !e.matches("button, fieldset, [type=hidden], [type=password], [type=file], [autocomplete=one-time-code], [data-proof]"))
  .map((e) => [e.name, e.value, e.checked ?? false]));

/** type changes all fields of the form that the user can change. */
const type = (form) => form.evaluate((it, words) => {
  it.noValidate = true;
  it.querySelector("[data-repeat]")?.click();
  let count = 0;
  for (const e of it.elements) {
    if (!e.name || e.disabled || e.readOnly || e.matches("button, fieldset, [type=hidden], [type=file]")) continue;
    if (e.type === "checkbox") e.checked = !e.checked;
    else if (e.type === "radio") e.checked = true;
    else if (e.matches("select")) e.selectedIndex = e.options.length - 1;
    else if (e.type === "datetime-local") e.value = "2031-02-03T04:05";
    else if (e.type === "date") e.value = "2026-02-03";
    else if (e.type === "password") e.value = words;
    else e.value = e.matches("textarea") ? "typed/one:read\ntyped/two:read" : `typed ${++count}`;
    e.dispatchEvent(new Event("input", { bubbles: true }));
    e.dispatchEvent(new Event("change", { bubbles: true }));
  }
}, secret);

/** signInAgain waits until the console shows the sign-in page, and signs in. */
async function signInAgain(page, { email = owner, password = world.password, byPasskey } = {}) {
  await page.waitForURL(/\/sign-in/);
  assert.ok(!String(await kept(page)).includes(secret));
  if (byPasskey) {
    await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  } else {
    await page.getByLabel("Email").fill(email);
    await page.getByLabel("Password").fill(password);
    await page.keyboard.press("Enter");
  }
  await signedIn(page);
}

/**
 * losesNothing fills in the form, ends the session, sends the form, and signs in again. Then the
 * form must contain the same input.
 */
async function losesNothing(page, form, name, who) {
  await type(form);
  const before = await input(form);
  assert.ok(before.length > 0, `${name} has no input`);
  await endSession(page);
  await form.evaluate((it) => it.requestSubmit());
  await signInAgain(page, who);
  await page.getByText("Your input is back").waitFor();
  assert.deepEqual(await input(form), before, name);
}

const main = (page) => page.locator("main form[method=post]").last();
const inDialog = (page) => page.locator("#dialog form");

scenario("no form loses its input when the session has ended", async (page) => {
  await signIn(page);
  const ids = await things(page);
  for (const [name, path] of Object.entries(forms)) {
    if (name.startsWith("/account")) continue;
    const address = addressOf(path, ids);
    await page.goto(address);
    if (await page.locator("main #confirm").count()) { // the form opens in a dialog
      await page.goto("/console/demo/users");
      await page.evaluate((it) => window.htmx.ajax("GET", it, "#dialog"), address);
      await inDialog(page).waitFor();
      await losesNothing(page, inDialog(page), name);
      await page.goto("/console/demo/roles");
      assert.equal(await kept(page), null, name);
    } else {
      await losesNothing(page, main(page), name);
    }
  }
  await page.goto(addressOf(forms["/users/{id}/edit"], ids));
  await losesNothing(page, main(page), "a form of a dialog on its own page");
});

scenario("the names of passkeys survive the end of the session", async (page) => {
  await authenticator(page);
  await signIn(page);
  const email = "draft.keys@demo.example";
  const { body: user } = await call(page, "POST", "/users", { email, name: "Draft Keys" }, { "idempotency-key": email });
  const who = { email, password: await setPassword(email) };
  await signIn(page, who.email, who.password);
  await page.goto("/console/demo/account/passkeys/add");
  await losesNothing(page, main(page), "a new passkey", who);
  await page.getByRole("button", { name: "Add passkey" }).click();
  await page.getByRole("link", { name: "I've saved them" }).click();
  await page.getByRole("link", { name: "Rename" }).click();
  await inDialog(page).waitFor();
  await losesNothing(page, inDialog(page), "a name", { byPasskey: true });
  await page.goto("/console/demo/account");
  await page.locator("a[href*='/account/passkeys/'][href$='/remove']").click();
  await inDialog(page).waitFor();
  assert.deepEqual(await input(inDialog(page)), []);
  await signIn(page);
  await page.goto(`/console/demo/users/${user.id}/reset-factors`);
  assert.deepEqual(await input(main(page)), []);
});

scenario("the forms without input, or with secrets alone, keep nothing", async (page) => {
  await signIn(page);
  const ids = await things(page);
  for (const [name, path] of Object.entries(withoutInput)) {
    if (path === "") continue;
    await page.goto(addressOf(path, ids));
    const form = main(page);
    assert.ok((await form.count()) > 0, `${name} has no form`);
    assert.deepEqual(await input(form), [], name);
    await type(form);
  }
  await page.goto("/console/demo/account/password");
  await type(main(page));
  await endSession(page);
  await main(page).evaluate((it) => it.requestSubmit());
  await page.waitForURL(/\/sign-in/);
  assert.equal(await kept(page), null);
});

scenario("filters and selected rows survive the end of the session", async (page) => {
  await signIn(page);
  const active = await person(page, owner);
  for (const path of filters) {
    await page.goto(addressOf(path, { active: active.id }));
    const field = page.locator("main form.filters input[type=search], main form.filters input:not([type])").first();
    await endSession(page);
    await field.pressSequentially("ad");
    await signInAgain(page);
    assert.equal(await field.inputValue(), "ad", path);
  }
  await page.goto("/console/demo/users?q=a");
  const boxes = page.locator("main input[name=user]");
  for (const row of [0, 2]) await boxes.nth(row).check();
  await endSession(page);
  await page.getByRole("button", { name: "Suspend" }).click();
  await signInAgain(page);
  await page.locator(".selection-count", { hasText: "2 selected" }).waitFor();
  assert.ok((await boxes.nth(0).isChecked()) && (await boxes.nth(2).isChecked()));
});

scenario("the kept input is for the same user, and a sign-out removes it", async (page) => {
  await signIn(page);
  const lose = async () => {
    await page.goto("/console/demo/roles/create");
    await page.getByLabel("Name", { exact: true }).fill("Half a role");
    await endSession(page);
    await page.getByLabel("Name", { exact: true }).press("Enter");
    await page.waitForURL(/\/sign-in/);
    assert.match(await kept(page), /Half a role/);
  };
  await lose();
  await page.goto("/console/demo/sign-in?done=signed-out");
  assert.equal(await kept(page), null);
  await signIn(page);
  await lose();
  await page.evaluate(() => { // simulates a change by another user
    const draft = JSON.parse(sessionStorage.getItem("rolecall-input"));
    sessionStorage.setItem("rolecall-input", JSON.stringify({ ...draft, user: "another" }));
  });
  await signInAgain(page);
  await page.waitForURL(/roles\/create$/);
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "");
  assert.equal(await kept(page), null);
});

scenario("the kept input is removed after success, and another user's changes are merged", async (page) => {
  await signIn(page);
  const { active } = await things(page);
  await page.goto(`/console/demo/users/${active}`);
  await page.getByRole("link", { name: "Edit" }).click();
  await inDialog(page).getByLabel("Name", { exact: true }).fill("Draft Renamed");
  const { body } = await call(page, "PATCH", `/users/${active}`, { department: "Legal" });
  assert.equal(body.department, "Legal");
  await endSession(page);
  await page.keyboard.press("Enter");
  await signInAgain(page);
  await page.getByText("Your input is back").waitFor();
  await inDialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("This was changed").waitFor();
  assert.equal(await inDialog(page).getByLabel("Department").inputValue(), "Legal");
  await inDialog(page).getByRole("button", { name: "Save" }).click();
  await page.getByText("Saved.").waitFor();
  const saved = (await call(page, "GET", `/users/${active}`)).body;
  assert.deepEqual([saved.name, saved.department], ["Draft Renamed", "Legal"]);
  await page.reload();
  assert.equal(await inDialog(page).count(), 0);
  assert.equal(await kept(page), null);
});

scenario("a changed form is not left or closed without a question", async (page) => {
  await signIn(page);
  const asked = [];
  let leave = false;
  page.on("dialog", (dialog) => {
    asked.push(dialog.type());
    return leave ? dialog.accept() : dialog.dismiss();
  });
  await page.goto("/console/demo/roles/create");
  await page.getByRole("link", { name: "Events" }).click(); // the form is unchanged, so the console does not ask
  await page.waitForURL(/events/);
  assert.deepEqual(asked, []);
  await page.goto("/console/demo/roles/create");
  await page.getByLabel("Name", { exact: true }).fill("Kept role");
  await page.getByRole("link", { name: "Events" }).click({ noWaitAfter: true });
  await until(() => asked.length > 0);
  assert.deepEqual(asked, ["beforeunload"]);
  assert.match(page.url(), /roles\/create$/);
  await page.getByRole("button", { name: "Create" }).click();
  await page.waitForURL(/roles\/[0-9a-f-]{36}/);
  assert.deepEqual(asked, ["beforeunload"]); // only before the form was sent
  leave = true;

  await page.goto("/console/demo/users");
  await page.getByRole("link", { name: "New user" }).click();
  const form = page.locator("#dialog");
  await form.getByLabel("Name", { exact: true }).waitFor();
  await page.keyboard.press("Escape");
  await form.waitFor({ state: "hidden" }); // the form is unchanged, so the console does not ask
  await page.getByRole("link", { name: "New user" }).click();
  await form.getByLabel("Name", { exact: true }).fill("Somebody");
  const question = page.getByRole("dialog", { name: "Discard your changes?" });
  for (const close of [() => page.keyboard.press("Escape"), () => form.getByRole("link", { name: "Cancel" }).click()]) {
    await close();
    await question.waitFor();
    await page.keyboard.press("Enter"); // the button Keep editing has the focus
    await question.waitFor({ state: "hidden" });
    assert.equal(await form.getByLabel("Name", { exact: true }).inputValue(), "Somebody");
  }
  await page.keyboard.press("Escape");
  await question.getByRole("button", { name: "Discard" }).click();
  await form.waitFor({ state: "hidden" });
  await focused(page, "New user");
});

scenario("a removed role is back after one click, and the message covers nothing", async (page) => {
  await page.setViewportSize({ width: 1024, height: 500 });
  await signIn(page);
  const { active, role } = await things(page);
  await call(page, "PUT", `/users/${active}/roles/${role}`, { reach: { departments: ["Sales"] }, expiresAt: "2035-06-07T08:09:10Z" });
  const before = (await call(page, "GET", `/users/${active}/roles`)).body;
  await page.goto(`/console/demo/users/${active}/roles`);
  await page.getByRole("link", { name: "Remove" }).first().click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("was removed from").waitFor();
  assert.ok(!page.url().includes("undo"), page.url());
  assert.deepEqual((await call(page, "GET", `/users/${active}/roles`)).body.items.filter(({ through }) => through === null), []);
  for (const width of [1024, 390]) {
    await page.setViewportSize({ width, height: 500 });
    for (const atEnd of [false, true]) {
      // The test scrolls with a script. If the page still scrolls after the Home key, Chromium
      // ignores the End key.
      await page.evaluate((atEnd) => scrollTo({ top: atEnd ? document.body.scrollHeight : 0, behavior: "instant" }), atEnd);
      // The console's script moves the message only after the page has scrolled.
      await page.waitForFunction((atEnd) => {
        const toast = document.querySelector(".toasts .toast")?.getBoundingClientRect();
        const covered = [...document.querySelectorAll("a, button, input, summary")].filter((e) => {
          const box = e.getBoundingClientRect();
          return toast && !e.closest(".toast") && e.checkVisibility() && box.bottom > toast.top && box.top < toast.bottom && box.right > toast.left && box.left < toast.right;
        });
        return toast && covered.length === 0 && atEnd === (scrollY > 0);
      }, atEnd);
    }
  }
  await page.getByRole("button", { name: "Undo" }).click();
  await page.getByText("was assigned to").waitFor();
  const strip = (list) => list.items.map((a) => [a.role.id, a.reach, a.expiresAt]);
  assert.deepEqual(strip((await call(page, "GET", `/users/${active}/roles`)).body), strip(before));
  await page.getByRole("button", { name: "Close the message" }).click();
  assert.equal(await page.locator(".toast").count(), 0);
});

scenario("a message stays while the pointer or the focus is on it", async (page) => {
  await page.clock.install();
  await signIn(page);
  const { active } = await things(page);
  await page.goto(`/console/demo/users/${active}/suspend`);
  await page.locator("main form[method=post]").last().evaluate((it) => it.requestSubmit());
  const note = page.locator(".toasts .toast");
  await page.waitForURL(/users\/[0-9a-f-]{36}$/);
  await page.clock.runFor(200);
  await note.getByRole("button", { name: "Undo" }).focus();
  await page.clock.runFor(60_000);
  assert.ok(await note.isVisible());
  await page.locator("#main").focus();
  await page.clock.runFor(9_000);
  assert.ok(await note.isVisible());
  await page.clock.runFor(12_000);
  assert.equal(await note.count(), 0);
});
