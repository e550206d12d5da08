// Measures checks of a permission: in memory, by GET /auths/check, and by a JWT that jose verifies locally. The
// rate is that of one core: the number of checks by the processor time of this process and of the program.

import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { generateKeyPair, jwtVerify, SignJWT } from "jose";
import { Guard } from "../src/index.js";
import { World } from "./program.js";

const permission = "shop/invoices:approve";
const seconds = Number(process.env["SECONDS"] ?? 5);
const ticks = Number(execFileSync("getconf", ["CLK_TCK"], { encoding: "utf8" }));

/** Returns the processor seconds that a process has used. */
function used(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / ticks;
}

async function measure(name: string, pids: number[], concurrency: number, check: () => Promise<unknown>, batch = 1): Promise<void> {
  const total = () => pids.reduce((sum, pid) => sum + used(pid), 0);
  let checks = 0;
  const loop = async (end: number) => {
    for (; performance.now() < end; checks += batch) await check();
  };
  const together = (duration: number) => Promise.all(Array.from({ length: concurrency }, () => loop(performance.now() + duration * 1000)));
  await together(1); // so that code and memory are warm
  checks = 0;
  const [before, began] = [total(), performance.now()];
  await together(seconds);
  const [cpu, elapsed] = [total() - before, (performance.now() - began) / 1000];
  console.log(`${name.padEnd(34)}${Math.round(checks / cpu).toLocaleString("en").padStart(12)} per core and second${((cpu / checks) * 1e6).toFixed(1).padStart(10)} µs${Math.round(checks / elapsed).toLocaleString("en").padStart(12)} per second in this run`);
}

const world = await World.start("sqlite");
try {
  const owner = await world.owner();
  const { client } = await world.member(owner, ["users:read", permission, "shop/invoices:read"]);
  const { token } = await world.serviceAccount(owner, "changes:read");
  const request = { headers: { authorization: `Bearer ${client.token}` } };
  const here = [process.pid, world.pid];

  const guard = new Guard({ baseUrl: world.base, tenant: "acme", memory: { token } });
  await measure("in memory", here, 1, async () => {
    // Other requests get their turn, as in a server, so that the feed can be read.
    for (let i = 0; i < 100; i++) await guard.authorize(request, permission);
    await new Promise((resolve) => setImmediate(resolve));
  }, 100);

  for (const algorithm of ["HS256", "ES256", "RS256", "EdDSA"]) {
    const keys = algorithm === "HS256" ? undefined : await generateKeyPair(algorithm);
    const secret = new Uint8Array(32).fill(7);
    const jwt = await new SignJWT({ permissions: [permission] }).setProtectedHeader({ alg: algorithm }).setSubject("x").setExpirationTime("1h").sign(keys?.privateKey ?? secret);
    await measure(`JWT, ${algorithm}, jose`, here, 1, () => jwtVerify(jwt, keys?.publicKey ?? secret));
  }

  await measure("GET /auths/check, 32 at a time", here, 32, () => client.GET("/auths/check", { params: { query: { permission } } }));
  const direct = new Guard({ baseUrl: world.base, tenant: "acme" });
  await measure("guard without memory, 32 at a time", here, 32, () => direct.authorize(request, permission));
} finally {
  await world.stop();
}
