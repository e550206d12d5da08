import { strict as assert } from "node:assert";
import { readFile } from "node:fs/promises";
import { authenticator, call, checkAccess, chord, endSession, enter, first, focused, person, readPicture, scenario, setPassword, signedIn, signIn, totp, until, world } from "./harness.js";

/** age sets the tenant's limit for re-authentication to one second after the sign-in. */
async function age(page) {
  const { status } = await call(page, "PATCH", "/tenant", { settings: { reauthenticationSeconds: 1 } });
  assert.equal(status, 200);
}

/**
 * openOld opens the page repeatedly until the sign-in is so old that the page has a field for
 * the password.
 */
async function openOld(page, path) {
  await until(async () => {
    await page.goto(path);
    return (await page.getByLabel("Your password", { exact: true }).count()) > 0;
  });
}

scenario("a user changes their password using only the keyboard", async (page) => {
  const email = "alan.turing@demo.example";
  const password = await setPassword(email);
  await signIn(page, email, password);
  await chord(page, "g", "a");
  await page.waitForURL(/\/account$/);
  await page.getByRole("link", { name: "Change", exact: true }).focus();
  await page.keyboard.press("Enter");
  const dialog = page.getByRole("dialog");
  await dialog.waitFor();
  await focused(page, "currentPassword");
  await page.keyboard.type("not my password");
  await page.keyboard.press("Tab");
  await page.keyboard.type("a new sentence of a few words");
  await page.keyboard.press("Enter");
  await dialog.getByText("Is not your current password.").waitFor();
  await focused(page, "currentPassword");
  await checkAccess(page);
  await page.keyboard.type(password);
  await page.keyboard.press("Tab");
  await page.keyboard.type("short");
  await page.keyboard.press("Enter");
  await dialog.locator("#fault-newPassword").waitFor();
  await dialog.getByLabel("Current password").fill(password);
  await dialog.getByLabel("New password").fill("a new sentence of a few words");
  await page.keyboard.press("Enter");
  await page.getByText("Password changed").waitFor();
  await enter(page, email, "a new sentence of a few words");
  await signedIn(page);
});

scenario("a user adds an authenticator app by QR code and signs in with it, and each recovery code works once", async (page) => {
  const email = "katherine.johnson@demo.example";
  const password = await setPassword(email);
  await signIn(page, email, password);
  await page.goto("/console/demo/account");
  await page.getByRole("link", { name: "Set up" }).click();
  await page.getByRole("button", { name: "Continue" }).click();
  const uri = new URL(await readPicture(page));
  assert.equal(uri.protocol, "otpauth:");
  assert.ok(decodeURIComponent(uri.pathname).endsWith(email), uri.pathname);
  const key = uri.searchParams.get("secret");
  await page.getByText("Can't scan the QR code?").click();
  await checkAccess(page);
  assert.equal(await page.locator("#secret").innerText(), key);
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  await page.getByRole("button", { name: "Copy" }).click();
  await page.getByText("Copied.").waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), key);
  await page.getByLabel("Code from the app").fill("000000");
  await page.keyboard.press("Enter");
  await page.locator("#fault-code").waitFor();
  assert.equal(await readPicture(page), uri.href);
  await page.getByLabel("Code from the app").fill(totp(key));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Save your recovery codes" }).waitFor();
  const codes = await page.locator(".codes code").allInnerTexts();
  assert.equal(codes.length, 10);
  await checkAccess(page);
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("button", { name: "Save" }).click()]);
  assert.equal(download.suggestedFilename(), "rolecall-demo-recovery-codes.txt");
  assert.deepEqual((await readFile(await download.path(), "utf8")).trim().split("\n"), codes);
  await page.getByRole("link", { name: "I've saved them" }).click();
  await page.getByText("10 codes left").waitFor();
  await page.goBack();
  await page.getByText("10 codes left").waitFor(); // going back does not show the codes again

  await enter(page, email, password);
  await page.getByLabel("Code from your authenticator app").fill(totp(key, 1)); // each code is accepted only once
  await page.keyboard.press("Enter");
  await signedIn(page);
  for (const again of [false, true]) {
    await enter(page, email, password);
    await page.getByText("Use a recovery code").click();
    await page.getByLabel("Recovery code").fill(codes[0]);
    await page.keyboard.press("Enter");
    if (again) await page.getByRole("alert").filter({ visible: true }).waitFor();
    else await signedIn(page);
  }
  await page.getByText("Use a recovery code").click();
  await page.getByLabel("Recovery code").fill(codes[1]);
  await page.keyboard.press("Enter");
  await signedIn(page);
  await page.goto("/console/demo/account/recovery-codes");
  await page.getByRole("button", { name: "Create new codes" }).click();
  await page.getByRole("heading", { name: "Save your recovery codes" }).waitFor();
  assert.ok(!(await page.locator(".codes code").allInnerTexts()).includes(codes[2]));
  await page.goto("/console/demo/account");
  await page.locator("li", { hasText: "Authenticator app" }).getByRole("link", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("Authenticator app removed.").waitFor();
  await enter(page, email, password);
  await signedIn(page);
});

scenario("a user adds, renames, uses and removes a passkey, and the form shows why a passkey request failed", async (page) => {
  const email = "barbara.liskov@demo.example";
  const password = await setPassword(email);
  const ask = await authenticator(page);
  await page.goto("/console/demo/sign-in");
  const byPasskey = page.getByRole("button", { name: "Sign in with a passkey" });
  await byPasskey.click(); // the authenticator has no passkey yet
  await page.getByText("The passkey request was canceled or timed out.").waitFor();
  await checkAccess(page);
  await signIn(page, email, password);
  await page.goto("/console/demo/account");
  await page.getByRole("link", { name: "Add", exact: true }).click();
  await page.getByLabel("Passkey name").fill("Laptop");
  await page.keyboard.press("Enter");
  await page.getByRole("link", { name: "I've saved them" }).click();
  await page.getByText("Passkey added.").waitFor();
  await page.getByRole("link", { name: "Add", exact: true }).click();
  await page.getByLabel("Passkey name").fill("The same");
  await page.keyboard.press("Enter");
  await page.getByText("already has a passkey for this account.").waitFor();
  assert.equal(await page.getByLabel("Passkey name").inputValue(), "The same");
  await page.goto("/console/demo/account");
  await page.getByRole("link", { name: "Rename" }).click();
  await page.getByRole("dialog").getByLabel("Passkey name").fill("Desk");
  await page.keyboard.press("Enter");
  await page.getByText("Saved.").waitFor();
  await page.locator("li", { hasText: "Desk" }).waitFor();

  await endSession(page);
  await page.goto("/console/demo/sign-in");
  await ask("setUserVerified", { isUserVerified: false });
  await byPasskey.click();
  await page.getByText("The passkey request was canceled").waitFor();
  await ask("setUserVerified", { isUserVerified: true });
  await byPasskey.click();
  await signedIn(page);
  await enter(page, email, password);
  await page.getByText("your browser asks for your passkey").waitFor();
  await page.getByRole("button", { name: "Sign in", exact: true }).click();
  await signedIn(page);

  await page.goto("/console/demo/account");
  await page.locator("li", { hasText: "Desk" }).getByRole("link", { name: "Remove" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Remove" }).click();
  await page.getByText("Passkey removed.").waitFor();
  await endSession(page);
  await page.goto("/console/demo/sign-in");
  await byPasskey.click();
  await page.getByRole("alert").filter({ visible: true }).waitFor();
});

scenario("passkey sign-in on the wrong domain names the expected and the actual domain", async (page) => {
  await authenticator(page);
  await page.goto("/console/demo/sign-in");
  await page.evaluate(() => {
    const field = document.querySelector("[data-passkey]");
    field.dataset.passkey = JSON.stringify({ ...JSON.parse(field.dataset.passkey), rpId: "people.example" });
  });
  await page.getByRole("button", { name: "Sign in with a passkey" }).click();
  await page.getByText("Passkeys here belong to people.example, but this page is at localhost.").waitFor();
});

scenario("the passkey button is hidden in browsers without passkey support", async (page) => {
  await page.addInitScript(() => delete window.PublicKeyCredential);
  await page.goto("/console/demo/sign-in");
  await page.getByLabel("Email").waitFor();
  assert.ok(!(await page.getByRole("button", { name: "Sign in with a passkey" }).isVisible()));
});

scenario("a user who ends their current session is signed out, and the cookie is deleted", async (page) => {
  await signIn(page);
  const { body: session } = await call(page, "GET", "/auths/session");
  await page.goto(`/console/demo/users/${session.user.id}/sessions`);
  await page.locator("tbody tr", { hasText: "This session" }).getByRole("link", { name: "End" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "End session" }).click();
  await page.getByText("You're signed out.").waitFor();
  assert.deepEqual((await page.context().cookies()).filter((c) => /^session|^console-/.test(c.name)), []);
  await page.goBack();
  await page.waitForURL(/sign-in/);
});

scenario("settings are changed using only the keyboard, with warnings before weaker settings and both versions after an edit conflict", async (page) => {
  await signIn(page);
  await chord(page, "g", "s");
  await page.waitForURL(/\/settings$/);
  await page.locator("body").press("e");
  await page.waitForURL(/\/settings\/edit$/);
  const invitation = page.getByLabel("Invitation lifetime");
  await invitation.fill("90 days");
  await page.keyboard.press("Enter");
  await page.getByText("Must be from 5 minutes to 30 days.").waitFor();
  await page.locator("[name$=invitationSeconds]:focus").waitFor();
  await checkAccess(page);
  assert.equal((await call(page, "PATCH", "/tenant", { displayName: "Demo Limited", settings: { invitationSeconds: 3600 } })).status, 200);
  await invitation.fill("5d");
  await page.keyboard.press("Enter");
  await page.getByText("This was changed while you were editing.").waitFor();
  await page.getByText("Currently saved: 1 hour").waitFor();
  assert.equal(await page.getByLabel("Display name").inputValue(), "Demo Limited");
  await invitation.press("Enter");
  await page.getByText("Invitation links work for 5 days instead of 1 hour.").waitFor();
  await checkAccess(page);
  assert.equal((await call(page, "GET", "/tenant")).body.settings.invitationSeconds, 3600);
  await page.getByRole("button", { name: "Save anyway" }).press("Enter");
  await page.getByText("Saved.").waitFor();
  assert.match(await page.locator("li", { hasText: "Invitation lifetime" }).innerText(), /5 days/);
  assert.equal((await call(page, "GET", "/tenant")).body.settings.invitationSeconds, 5 * 86400);
});

scenario("the pages before the sign-in have the color of the tenant, with readable text", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/settings/edit");
  await page.getByLabel("Color", { exact: true }).fill("blue");
  await page.keyboard.press("Enter");
  await page.getByText("Enter # and six digits or letters from a to f, such as #1f6feb.").waitFor();
  for (const [color, text] of [["#ffcc00", "rgb(0, 0, 0)"], ["#0b3d2e", "rgb(255, 255, 255)"]]) {
    await page.goto("/console/demo/settings/edit");
    await page.getByLabel("Color", { exact: true }).fill(color);
    await page.keyboard.press("Enter");
    await page.locator(".brand-sample", { hasText: color }).waitFor();
    await checkAccess(page);
    for (const colorScheme of ["light", "dark"]) {
      await page.emulateMedia({ colorScheme });
      for (const path of ["sign-in", "password-reset"]) {
        await page.goto(`/console/demo/${path}`);
        await checkAccess(page);
      }
      assert.equal(await page.locator(".button.primary").first().evaluate((e) => getComputedStyle(e).color), text);
    }
    await page.emulateMedia({ colorScheme: "light" });
  }
  await call(page, "PATCH", "/tenant", { settings: { brandColor: null } });
});

scenario("a user who must have a second factor adds a passkey while signing in and can't remove it", async (page) => {
  const email = "donald.knuth@demo.example";
  const password = await setPassword(email);
  await signIn(page);
  const role = await first(page, "/roles?q=directory");
  const user = await person(page, email);
  await call(page, "PUT", `/users/${user.id}/roles/${role.id}`, {});
  await page.goto("/console/demo/settings/edit");
  await page.getByLabel("Users with certain roles").check();
  await page.getByLabel(role.name, { exact: true }).check();
  await page.getByRole("button", { name: "Save" }).click();
  await page.getByText("Affected users who are signed in without a second factor").waitFor();
  await checkAccess(page);
  await page.getByRole("button", { name: "Save anyway" }).click();
  await page.getByText("Saved.").waitFor();

  await authenticator(page);
  await enter(page, email, password);
  assert.match(await readPicture(page), /^otpauth:/);
  await page.getByRole("button", { name: "Use a passkey instead" }).click();
  await page.getByRole("heading", { name: "Save your recovery codes" }).waitFor();
  await page.getByRole("link", { name: "I've saved them" }).click();
  await page.waitForURL((url) => !url.pathname.includes("/sign-in"));
  await page.goto("/console/demo/account");
  await page.getByText("To remove your last one").waitFor();
  assert.equal(await page.getByRole("link", { name: "Remove" }).count(), 0);
  await page.goto(new URL(`${await page.getByRole("link", { name: "Rename" }).getAttribute("href")}/../remove`, world.base).href);
  await page.getByRole("button", { name: "Remove" }).click();
  await page.getByText("Add another one before you remove it.").waitFor();
});

// These tests are the last ones, because they give the owner second factors and call age.
scenario("a user confirms their identity in the form by app, recovery code or passkey", async (page) => {
  await authenticator(page);
  await signIn(page);
  await page.goto("/console/demo/account/app");
  await page.getByRole("button", { name: "Continue" }).click();
  const key = new URL(await readPicture(page)).searchParams.get("secret");
  await page.getByLabel("Code from the app").fill(totp(key));
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Save your recovery codes" }).waitFor();
  const codes = await page.locator(".codes code").allInnerTexts();
  await page.goto("/console/demo/account/passkeys/add");
  await page.getByRole("button", { name: "Add passkey" }).click();
  await page.getByText("Passkey added.").waitFor();
  await page.goto("/console/demo/account");
  const rename = await page.getByRole("link", { name: "Rename" }).getAttribute("href");
  await age(page);
  const form = page.getByRole("main");
  const save = form.getByRole("button", { name: "Save" });
  const confirmings = {
    "by the app": async () => {
      await form.getByLabel("Code from your authenticator app").fill(totp(key, 1)); // each code is accepted only once
      await save.click();
    },
    "by a code": async () => {
      await form.getByText("Use a recovery code").click();
      await form.getByLabel("Recovery code").fill(codes[0]);
      await save.click();
    },
    "by the passkey": () => form.getByRole("button", { name: "Use a passkey instead" }).click(),
  };
  for (const [name, confirm] of Object.entries(confirmings)) {
    await openOld(page, rename);
    await form.getByLabel("Passkey name").fill(name);
    await form.getByLabel("Your password").fill("not the password");
    await form.getByLabel("Code from your authenticator app").fill("000000");
    await save.click();
    await form.getByText("Is not your current password.").waitFor();
    assert.equal(await form.getByLabel("Passkey name").inputValue(), name);
    await checkAccess(page);
    await form.getByLabel("Your password").fill(world.password);
    await confirm();
    await page.getByText("Saved.").waitFor();
    await page.locator("li", { hasText: name }).waitFor();
  }
});
