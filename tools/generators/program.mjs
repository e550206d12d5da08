// Starts the program for the flows.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

/** The color that each flow sets. */
export const brandColor = "#336699";

const email = "owner@example.com";
const password = "correct horse battery staple";

// The settings that are not numbers. None has its default, so that a client that sends the defaults changes them.
const changedSettings = { mailSenderName: "Flows", passwordSignIn: "owners" };

/** startProgram starts the program on SQLite, with a tenant for each name, whose owner has the email address and the password. */
export async function startProgram(file, tenants) {
  if (!file) throw new Error("ROLECALL_PROGRAM is not set: run make generators");
  const folder = mkdtempSync(join(tmpdir(), "rolecall-generators-"));
  const database = join(folder, "rolecall.db");
  const server = spawn(file, ["serve", "--demo", "--json", "--listen", "127.0.0.1:0", "--database", database, "--mailbox", join(folder, "mail")], {
    cwd: folder, stdio: ["ignore", "pipe", "pipe"],
  });
  const log = [];
  server.stderr.on("data", (text) => log.push(text));
  const lines = createInterface(server.stdout);
  const ended = once(server, "exit");
  const started = await Promise.race([once(lines, "line"), ended.then(() => undefined)]);
  if (started === undefined) throw new Error(`the program ended:\n${log.join("")}`);
  const { address } = JSON.parse(started[0]);

  const stop = async () => {
    server.kill("SIGTERM");
    await ended;
    rmSync(folder, { recursive: true });
    assert(!log.join("").includes('"level":"ERROR"'), `the program logged an error:\n${log.join("")}`);
  };

  const send = async (tenant, method, path, body, token) => {
    const headers = { "x-tenant-schema": tenant, "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
    const response = await fetch(address + path, { method, headers, body: body && JSON.stringify(body) });
    if (!response.ok) throw Object.assign(new Error(`${method} ${path}: ${response.status} ${await response.text()}`), { status: response.status });
    return response.json();
  };
  const signIn = async (tenant) => (await send(tenant, "POST", "/auths/login", { email, password, transport: "bearer" })).token;

  try {
    for (const tenant of tenants) {
      execFileSync(file, ["tenant", "create", tenant, "--owner-email", email, "--owner-name", "Ada Lovelace", "--password-stdin", "--database", database], { input: password, stdio: ["pipe", "ignore", "inherit"] });
      const token = await signIn(tenant);
      const { settings } = await send(tenant, "PATCH", "/tenant", { settings: changedSettings }, token);
      for (const [name, value] of Object.entries(settings)) {
        const change = (by) => send(tenant, "PATCH", "/tenant", { settings: { [name]: value + by } }, token);
        if (typeof value !== "number") {
          assert(["brandColor", "secondFactor"].includes(name) || name in changedSettings, `the setting ${name} has its default: add it to changedSettings`);
          continue;
        }
        await change(1).catch((error) => {
          if (error.status !== 422) throw error;
          return change(-1); // the default is the maximum
        });
      }
    }
  } catch (error) {
    await stop();
    throw error;
  }

  return {
    address, email, password, stop,
    /** settings returns the settings of a tenant. */
    settings: async (tenant) => (await send(tenant, "GET", "/tenant", undefined, await signIn(tenant))).settings,
  };
}
