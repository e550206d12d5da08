// Builds the application of docs/guides/nextjs.md with Next.js, and uses it as a browser without scripts does.

import assert from "node:assert/strict";
import { spawn, type ChildProcess } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { password, RolecallServer, type TestTenant } from "../src/testing.js";
import { hanging, repository, run } from "./program.js";

const here = fileURLToPath(new URL("clients/typescript/", repository));

describe("the application of the guide for Next.js", hanging, () => {
  let project: string;
  let server: RolecallServer;
  let tenant: TestTenant;
  let next: ChildProcess;
  let base: string;

  before(async () => {
    project = await mkdtemp(join(tmpdir(), "rolecall-next-"));
    const guide = await readFile(new URL("docs/guides/nextjs.md", repository), "utf8");
    const blocks = Array.from(guide.matchAll(/Save this as `([^`]+)`:\n\n```tsx?\n(.*?)^```$|this as `([^`]+)`, which[^\n]*\n\n```tsx?\n(.*?)^```$/gms), (match) => [match[1] ?? match[3]!, match[2] ?? match[4]!] as const);
    assert.equal(blocks.length, 6);
    for (const [file, code] of blocks) {
      await mkdir(dirname(join(project, file)), { recursive: true });
      await writeFile(join(project, file), code);
    }
    await run(process.execPath, [join(here, "node_modules/typescript/bin/tsc"), "-p", join(here, "tsconfig.json"), "--outDir", join(project, "client/dist")], { cwd: here });
    await writeFile(join(project, "client/package.json"), await readFile(join(here, "package.json")));
    await mkdir(join(project, "node_modules/@rolecall"), { recursive: true });
    await symlink(join(project, "client"), join(project, "node_modules/@rolecall/client"));
    for (const name of ["next", "react", "react-dom", "typescript", "openapi-fetch", "openapi-typescript-helpers", "@types"]) await symlink(join(here, "node_modules", name), join(project, "node_modules", name));
    await writeFile(join(project, "package.json"), '{"name":"shop","private":true,"type":"module"}');
    await run("env", ["-u", "NODE_TEST_CONTEXT", "NEXT_TELEMETRY_DISABLED=1", process.execPath, join(here, "node_modules/next/dist/bin/next"), "build", "--webpack"], { cwd: project });

    server = await RolecallServer.start();
    tenant = await server.tenant();
    const environment = { ...process.env, NEXT_TELEMETRY_DISABLED: "1", IDENTITY_URL: server.url, TENANT: tenant.name };
    next = spawn(process.execPath, [join(here, "node_modules/next/dist/bin/next"), "start", "--port", "0", "--hostname", "127.0.0.1"], { cwd: project, env: environment, stdio: ["ignore", "pipe", "inherit"] });
    base = await new Promise((resolve, reject) => {
      createInterface(next.stdout!).on("line", (line) => {
        const port = /http:\/\/(?:127\.0\.0\.1|localhost):(\d+)/.exec(line)?.[1];
        if (port) resolve(`http://127.0.0.1:${port}`);
      });
      next.on("exit", () => reject(new Error("next start ended")));
    });
  });
  after(async () => {
    await new Promise((resolve) => {
      next.removeAllListeners("exit").on("exit", resolve);
      next.kill();
    });
    await server.stop();
    await rm(project, { recursive: true, force: true });
  });

  const cookies = new Map<string, string>();
  /** Sends a request with the cookies, and keeps those of the response. */
  async function send(path: string, init: RequestInit = {}): Promise<{ status: number; location: string; text: string }> {
    const cookie = Array.from(cookies, ([name, value]) => `${name}=${value}`).join("; ");
    const response = await fetch(base + path, { ...init, redirect: "manual", headers: { cookie, ...(init.headers as Record<string, string>) } });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (value === "" || /max-age=0/i.test(line)) cookies.delete(name);
      else cookies.set(name, value);
    }
    return { status: response.status, location: (response.headers.get("location") ?? "").replace(base, ""), text: await response.text() };
  }
  /** Sends the form of the page whose button has the label, with the fields. */
  async function submit(path: string, label: string, fields: Record<string, string> = {}, headers: Record<string, string> = {}): ReturnType<typeof send> {
    const form = (await send(path)).text.split("<form").find((part) => part.includes(`<button>${label}</button>`));
    assert.ok(form, `${path} has no form ${label}`);
    const body = new FormData();
    for (const [tag] of form.matchAll(/<input[^>]*type="hidden"[^>]*>/g)) body.append(/name="([^"]*)"/.exec(tag)![1]!, /value="([^"]*)"/.exec(tag)?.[1] ?? "");
    for (const [name, value] of Object.entries(fields)) body.set(name, value);
    return send(path, { method: "POST", body, headers: { origin: base, ...headers } });
  }

  test("sign in, see and approve invoices, and sign out", async () => {
    assert.equal((await send("/invoices")).location, "/sign-in");
    const clerk = await tenant.user({ name: "Grace Hopper", permissions: ["shop/invoices:read", "shop/invoices:approve"], reach: ["Sales"] });
    const wrong = await submit("/sign-in", "Sign in", { email: clerk.email, password: "wrong" });
    assert.match(wrong.location, /^\/sign-in\?error=/);
    assert.match((await send(wrong.location)).text, /The email address or the password is wrong/);
    assert.notEqual((await submit("/sign-in", "Sign in", { email: clerk.email, password }, { origin: "https://evil.example" })).location, "/invoices");
    assert.equal((await send("/invoices")).location, "/sign-in");

    assert.equal((await submit("/sign-in", "Sign in", { email: clerk.email, password })).location, "/invoices");
    const page = (await send("/invoices")).text;
    assert.match(page, /Hello Grace Hopper/);
    assert.match(page, /Invoice 1 of Sales/);
    assert.doesNotMatch(page, /Engineering/);
    assert.equal((await submit("/invoices", "Approve")).location, "/invoices");
    assert.match((await send("/invoices")).text, /approved by Grace Hopper/);
    assert.equal((await submit("/invoices", "Approve", { id: "2" })).location, "/invoices?error=denied");

    const kept = new Map(cookies);
    assert.equal((await submit("/invoices", "Sign out")).location, "/sign-in");
    for (const [name, value] of kept) cookies.set(name, value);
    assert.equal((await send("/invoices")).location, "/sign-in"); // the old cookie is not valid
  });

  test("a suspended user sees nothing", async () => {
    const clerk = await tenant.user({ permissions: ["shop/invoices:read"] });
    assert.equal((await submit("/sign-in", "Sign in", { email: clerk.email, password })).location, "/invoices");
    assert.doesNotMatch((await send("/invoices")).text, /<button>Approve<\/button>/);
    await tenant.operator.POST("/users/{id}/suspend", { params: { path: { id: clerk.id } }, body: { reason: "test" } });
    assert.equal((await send("/invoices")).location, "/sign-in");
  });
});
