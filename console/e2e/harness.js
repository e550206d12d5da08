// The harness of the browser tests. It starts the program with demo data and a Chromium, and it fails
// a test if a page reports an error.

import { strict as assert } from "node:assert";
import { execFile, spawn } from "node:child_process";
import { createHmac, randomBytes } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, readdir, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { chromium } from "playwright-core";
import { freePort } from "../../tools/freeport.mjs";
import { patience } from "../../tools/patience.mjs";

const run = promisify(execFile);

/** results is the folder for screenshots of failed tests, and for the program if ROLECALL_PROGRAM does not name one. */
export const results = join(dirname(fileURLToPath(import.meta.url)), "results");
const program = process.env.ROLECALL_PROGRAM || join(results, "rolecall");
const axeSource = createRequire(import.meta.url).resolve("axe-core/axe.min.js");
const qrSource = createRequire(import.meta.url).resolve("jsqr");

/** scenarioLimit is longer than patience, because a scenario has many steps. Each step ends after patience. */
export const scenarioLimit = 10 * patience;

export const owner = "ada.lovelace@demo.example";

// The headless shell needs half of the processor time of the whole Chromium.
const browser = process.env.ROLECALL_TEST_BROWSER || ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"].find(existsSync);

/**
 * world is the running program and the browser of one test file. The function launch starts the
 * browser. A test file for another browser replaces launch. A test file can also set the port, further
 * flags and environment variables of the program, and elsewhere: the origins of other servers whose pages
 * the browser may open.
 */
export const world = {
  base: "", database: "", mailbox: "", password: "", browser: null,
  port: 0, flags: [], environment: {}, elsewhere: [],
  launch: () => chromium.launch({ executablePath: browser, args: ["--no-sandbox", "--no-proxy-server"], timeout: patience }),
};

let server;
let folder;
let log = "";

before(async () => {
  await mkdir(results, { recursive: true });
  folder = await mkdtemp(join(tmpdir(), "rolecall-console-"));
  const port = world.port || await freePort();
  world.base = `http://localhost:${port}`;
  world.mailbox = join(folder, "mail");
  world.database = process.env.ROLECALL_TEST_POSTGRES ? await ownDatabase(process.env.ROLECALL_TEST_POSTGRES) : join(folder, "demo.db");
  const flags = ["--listen", `127.0.0.1:${port}`, "--public-url", world.base, "--database", world.database, "--mailbox", world.mailbox, ...world.flags];
  server = spawn(program, ["serve", "--demo", ...flags], { stdio: ["ignore", "pipe", "pipe"], env: { ...process.env, ...world.environment } });
  server.stderr.on("data", (text) => (log += text));
  world.password = await new Promise((resolve, reject) => {
    let said = "";
    server.stdout.on("data", (text) => {
      said += text;
      const found = said.match(/password\s+(\S+)/);
      if (found) resolve(found[1]);
    });
    server.on("exit", () => reject(new Error(`the program ended: ${log}`)));
  });
  await until(async () => (await fetch(`${world.base}/readyz`)).ok);
  world.browser = await world.launch();
}, { timeout: scenarioLimit });

after(async () => {
  await world.browser?.close();
  if (server?.exitCode === null) {
    server.removeAllListeners("exit");
    server.kill("SIGTERM");
    await new Promise((resolve) => server.on("exit", resolve));
  }
  await rm(folder, { recursive: true });
  assert.doesNotMatch(log, /"level":"ERROR"|panic/);
}, { timeout: scenarioLimit });

/**
 * ownDatabase creates a PostgreSQL database, and a role that owns the database and has no other
 * privileges. It returns the URL for this role.
 */
async function ownDatabase(server) {
  const name = `console_${randomBytes(6).toString("hex")}`;
  await run("psql", [server, "-q", "-v", "ON_ERROR_STOP=1", "-c", `create role ${name} login`, "-c", `create database ${name} owner ${name}`]);
  return server.replace(/^postgres(?:ql)?:\/\/(?:[^@/]*@)?([^/?]*)(?:\/[^?]*)?/, `postgres://${name}@$1/${name}`);
}

/** command runs a command of the program on the database of the tests. It returns the output. */
export async function command(input, ...words) {
  const child = run(program, [...words, "--database", world.database]);
  child.child.stdin.end(input);
  return (await child).stdout;
}

/** setPassword sets the password of a user in the tenant demo. It returns the password. */
export async function setPassword(email) {
  const password = "a long enough password of theirs";
  await command(password, "user", "set-password", "--tenant", "demo", "--email", email, "--password-stdin");
  return password;
}

/** until calls found repeatedly until found returns a true value. It returns that value. */
export async function until(found) {
  const end = Date.now() + patience;
  for (;;) {
    const value = await Promise.resolve(found()).catch(() => null);
    if (value) return value;
    assert.ok(Date.now() < end, "waited too long");
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/**
 * mailLink waits for a mail to the address with a link of the given kind, and returns the
 * link.
 */
export async function mailLink(email, kind) {
  return until(async () => {
    for (const name of (await readdir(world.mailbox)).sort().reverse()) {
      const text = (await readFile(join(world.mailbox, name), "utf8")).replaceAll("=\r\n", "").replaceAll("=3D", "=");
      const link = text.match(new RegExp(`${world.base}/console/demo/${kind}#[\\w-]+`));
      if (link && text.includes(email)) return link[0];
    }
    return null;
  });
}

/** isElsewhere reports whether the URL belongs to another server whose pages the browser may open. */
const isElsewhere = (url) => world.elsewhere.some((origin) => url.startsWith(`${origin}/`));

/** newContext returns a context for pages that shares no cookies with other contexts, such as a new browser. */
export async function newContext(options = {}) {
  const context = await world.browser.newContext({ baseURL: world.base, ...options });
  context.setDefaultTimeout(patience);
  context.on("page", (page) => pressWhenLoaded(page, () => page.waitForLoadState("domcontentloaded")));
  return context;
}

/**
 * pressWhenLoaded makes the keyboard of the page wait for loaded, which must wait until the scripts of the document have
 * run. A page can show what a test waits for before that, and then has no shortcuts yet.
 */
export function pressWhenLoaded(page, loaded) {
  for (const name of ["press", "type"]) {
    const act = page.keyboard[name].bind(page.keyboard);
    page.keyboard[name] = async (...values) => {
      await loaded();
      await act(...values);
    };
  }
}

/**
 * scenario runs play as a test, with a page that shares no cookies with other tests. The test also
 * fails if a page of the program violates its Content-Security-Policy, sends a request to another host,
 * logs an error or a warning, or gets a 5xx response. If the test fails, a screenshot is saved in results.
 */
export function scenario(name, play, options = {}) {
  test(name, { timeout: scenarioLimit }, async () => {
    const context = await newContext({ reducedMotion: "reduce", timezoneId: "UTC", ...options });
    const faults = [];
    context.on("weberror", (e) => {
      if (!isElsewhere(e.page().url())) faults.push(`script: ${e.error().message}`);
    });
    context.on("console", (m) => {
      if (isElsewhere(m.location().url)) return;
      const refused = /^Failed to load resource: the server responded with a status of 4\d\d/.test(m.text());
      if (["error", "warning"].includes(m.type()) && !refused) faults.push(`console: ${m.text()}`);
    });
    context.on("request", (r) => {
      if (!r.url().startsWith(`${world.base}/`) && !r.url().startsWith("about:") && !isElsewhere(r.url())) faults.push(`asked ${r.url()}`);
    });
    context.on("response", (r) => {
      if (r.status() >= 500) faults.push(`${r.status()} ${r.url()}`);
    });
    await context.exposeBinding("noteViolation", ({ frame }, what) => {
      if (!isElsewhere(frame.url())) faults.push(`policy: ${what}`);
    });
    await context.addInitScript(() => {
      addEventListener("securitypolicyviolation", (e) => window.noteViolation(`${e.violatedDirective} ${e.blockedURI}`));
    });
    const page = await context.newPage();
    try {
      await play(page);
      assert.deepEqual(faults, []);
    } catch (failure) {
      await page.screenshot({ path: join(results, `${name.replaceAll(/\W+/g, "-")}.png`), fullPage: true });
      throw failure;
    } finally {
      await context.close();
    }
  });
}

/**
 * endSession removes the session cookies from the browser. It keeps the known-device
 * cookie.
 */
export const endSession = (page) => page.context().clearCookies({ name: /^(session|console-.*)$/ });

/** enter ends the session and submits the sign-in form. It does not wait for the next page. */
export async function enter(page, email, password) {
  await endSession(page);
  await page.goto("/console/demo/sign-in");
  await page.getByLabel("Email").fill(email);
  await page.getByLabel("Password").fill(password);
  await page.keyboard.press("Enter");
}

/** signedIn waits until the user is signed in. */
export const signedIn = (page) => page.waitForURL((url) => !url.pathname.includes("/sign-in"));

/** signIn signs in with the form of the console, and opens the first section after the home page. */
export async function signIn(page, email = owner, password = world.password) {
  await enter(page, email, password);
  await signedIn(page);
  const section = page.locator(".sections a").nth(1);
  if (!page.url().endsWith("/home") || !(await section.count())) return;
  await section.click();
  await page.waitForURL((url) => !url.pathname.endsWith("/home"));
}

/**
 * focused waits until the name, or else the text or the tag, of the focused element begins with expected. The focus can
 * come after what is visible: the browser sets it after the page has loaded, and scripts set it after a dialog has opened.
 */
export async function focused(page, expected) {
  const at = (expected) => {
    const e = document.activeElement;
    const name = e?.name || e?.innerText?.trim() || e?.tagName || "";
    return name.startsWith(expected) || (expected === null && name);
  };
  await page.waitForFunction(at, expected).catch(async () => assert.equal(await page.evaluate(at, null), expected));
}

/** chord presses the keys of a shortcut such as "g u". Between them, no time passes, because the page forgets the first one. */
export const chord = (page, ...keys) => Promise.all(keys.map((key) => page.keyboard.press(key)));

/**
 * authenticator adds a virtual authenticator to the page, which approves each request at once. It
 * returns a function that sends a command of the domain WebAuthn of Chromium's debugging protocol
 * to the authenticator.
 */
export async function authenticator(page) {
  const protocol = await page.context().newCDPSession(page);
  await protocol.send("WebAuthn.enable");
  const { authenticatorId } = await protocol.send("WebAuthn.addVirtualAuthenticator", {
    options: { protocol: "ctap2", transport: "internal", hasResidentKey: true, hasUserVerification: true, isUserVerified: true, automaticPresenceSimulation: true },
  });
  return (verb, more = {}) => protocol.send(`WebAuthn.${verb}`, { authenticatorId, ...more });
}

/**
 * totp returns the code that an authenticator app shows for the secret in base32 (RFC 6238). later
 * is the number of 30-second periods from now.
 */
export function totp(secret, later = 0) {
  const bits = [...secret].map((c) => "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".indexOf(c).toString(2).padStart(5, "0")).join("");
  const key = Buffer.from(bits.match(/.{8}/g).map((byte) => parseInt(byte, 2)));
  const step = Buffer.alloc(8);
  step.writeBigUInt64BE(BigInt(Math.floor(Date.now() / 30_000) + later));
  const mac = createHmac("sha1", key).update(step).digest();
  const at = mac[19] & 15;
  return String((mac.readUInt32BE(at) & 0x7fffffff) % 1_000_000).padStart(6, "0");
}

/** readPicture returns the text of the QR code on the page. */
export async function readPicture(page) {
  const picture = (await page.locator("svg.qr").screenshot()).toString("base64");
  const reader = await world.browser.newPage();
  await reader.evaluate(await readFile(qrSource, "utf8"));
  const text = await reader.evaluate(async (base64) => {
    const bitmap = await createImageBitmap(new Blob([Uint8Array.from(atob(base64), (c) => c.charCodeAt(0))]));
    const canvas = new OffscreenCanvas(bitmap.width, bitmap.height).getContext("2d");
    canvas.drawImage(bitmap, 0, 0);
    return window.jsQR(canvas.getImageData(0, 0, bitmap.width, bitmap.height).data, bitmap.width, bitmap.height)?.data;
  }, picture);
  await reader.close();
  return text;
}

/**
 * call sends a request to the API with the console session of the browser. If the browser
 * has no console session, call uses the API session. It returns the response.
 */
export async function call(page, method, path, body, headers = {}) {
  const cookies = await page.context().cookies();
  const session = cookies.find((c) => c.name === "console-demo") ?? cookies.find((c) => c.name === "session");
  const answer = await fetch(world.base + path, {
    method,
    headers: { "x-tenant-schema": "demo", cookie: `session=${session?.value}`, ...(body && { "content-type": "application/json" }), ...headers },
    body: body && JSON.stringify(body),
  });
  const text = await answer.text();
  return { status: answer.status, body: text && JSON.parse(text) };
}

/** first requests a list at a path of the API, and returns the list's first item. */
export async function first(page, path) {
  return (await call(page, "GET", path)).body.items[0];
}

/** person returns the user with the email address, as the API returns users. */
export const person = (page, email) => first(page, `/users?email=${encodeURIComponent(email)}`);

const accessRules = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];

/** colorRules are the rules of checkAccess that depend on colors. */
export const colorRules = { type: "rule", values: ["color-contrast", "link-in-text-block"] };

/** checkAccess fails if axe finds a serious or critical violation of the rules on the page. */
export async function checkAccess(page, rules = accessRules) {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(await readFile(axeSource, "utf8"));
  const found = await page.evaluate(async (runOnly) => {
    const { violations } = await window.axe.run({ runOnly, resultTypes: ["violations"], preload: false });
    return violations.filter((v) => ["serious", "critical"].includes(v.impact)).map((v) => `${v.id}: ${v.nodes.map((n) => n.html.slice(0, 200)).join(" | ")}`);
  }, rules);
  assert.deepEqual(found, []);
}

/**
 * checkShifts fails if elements of the page have moved while it loaded. A browser can show the heading before it
 * has received its last button (0.005). One moved line of a list is more than 0.01; the Web Vitals accept 0.1.
 */
export async function checkShifts(page) {
  const [shifts, shifted] = await page.evaluate(async () => {
    let sum = 0;
    const shifted = [];
    const observer = new PerformanceObserver(() => {});
    await document.fonts.ready; // a font can move the text
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    observer.observe({ type: "layout-shift", buffered: true });
    for (const e of observer.takeRecords()) {
      sum += e.value;
      for (const s of e.sources) shifted.push(`${s.node?.outerHTML?.slice(0, 100) ?? s.node?.textContent} ${JSON.stringify(s.previousRect)} to ${JSON.stringify(s.currentRect)}`);
    }
    return [sum, shifted];
  });
  assert.ok(shifts < 0.01, `shifts by ${shifts}: ${shifted.join("\n")}`);
}

/** checkWidth fails if the page can be scrolled sideways. It names the elements that are too wide. */
export async function checkWidth(page) {
  const [content, window_, wide] = await page.evaluate(() => {
    const over = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > innerWidth);
    return [document.documentElement.scrollWidth, innerWidth, over.map((e) => e.outerHTML.slice(0, 100))];
  });
  assert.ok(content <= window_, `${page.url()} is ${content} pixels wide in ${window_}: ${wide.join("\n")}`);
}
