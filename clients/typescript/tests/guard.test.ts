import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, beforeEach, describe, test } from "node:test";
import { Guard, Refusal } from "../src/index.js";
import { patience } from "./program.js";

const session = { principal: { id: "ada", type: "user", name: "Ada" }, tenant: { name: "acme" }, permissions: [], scopedPermissions: [], session: null, permissionsExpireAt: null };

describe("guard", () => {
  let base = "";
  let requests: IncomingMessage[] = [];
  /** The status of each response. 0: there is no response. */
  let statuses: number[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    const status = statuses.shift() ?? 200;
    if (status !== 0) response.writeHead(status, { "content-type": "application/json", "set-cookie": "session=new; Path=/" }).end(JSON.stringify(session));
  });
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  });
  after(() => server.close().closeAllConnections());
  beforeEach(() => ([requests, statuses] = [[], []]));

  const cookie = { cookie: "theme=dark; session=s1" };
  const crossSite = (error: unknown) => error instanceof Refusal && error.status === 403 && error.code === "cross-site";

  test("pages of other sites cannot send changes with the cookie", async () => {
    const guard = new Guard({ baseUrl: base, tenant: "acme" });
    for (const site of ["cross-site", "same-site"]) {
      const headers = { ...cookie, "sec-fetch-site": site };
      for (const method of ["POST", "PUT", "PATCH", "DELETE", undefined]) await assert.rejects(guard.principal({ method, headers }), crossSite);
      await assert.rejects(guard.principal({ method: "GET", headers: { ...headers, upgrade: "websocket" } }), crossSite);
      await assert.rejects(guard.principal(new Request(base, { method: "POST", headers })), crossSite);
      assert.equal(requests.length, 0);
      assert.ok(await guard.principal({ method: "GET", headers }));
      assert.ok(await guard.principal({ method: "POST", headers: { authorization: "Bearer rs_x", "sec-fetch-site": site } }));
      requests = [];
    }
    for (const site of ["same-origin", "none", undefined]) assert.ok(await guard.principal({ method: "POST", headers: { ...cookie, "sec-fetch-site": site } }));
    for (const host of [{ host: "App.example" }, { ":authority": "app.example" }]) {
      assert.ok(await guard.principal({ method: "POST", headers: { ...cookie, ...host, origin: "https://app.example" } }));
      for (const origin of ["https://evil.example", "null"]) {
        await assert.rejects(guard.principal({ method: "POST", headers: { ...cookie, ...host, origin } }), crossSite);
        await assert.rejects(guard.principal({ method: "GET", headers: { ...cookie, ...host, origin, upgrade: "websocket" } }), crossSite);
      }
    }
    const hono = new Guard<{ req: { raw: Request } }>({ baseUrl: base, tenant: "acme" });
    await assert.rejects(hono.principal({ req: { raw: new Request(base, { method: "POST", headers: { ...cookie, "sec-fetch-site": "cross-site" } }) } }), crossSite);
  });

  test("each request has the credentials of its user, and no others", async () => {
    const guard = new Guard({ baseUrl: base, tenant: "acme" });
    for (const name of ["a", "b"]) await guard.principal({ headers: { cookie: `session=${name}` } });
    await guard.principal({ headers: { authorization: "Bearer rs_x", cookie: "session=c" } });
    assert.deepEqual(requests.map(({ headers }) => [headers.cookie, headers.authorization]), [["session=a", undefined], ["session=b", undefined], [undefined, "Bearer rs_x"]]);
  });

  test("names that no tenant can have are not sent", async () => {
    for (const tenant of ["", "NOSUCH", "a\r\nx", "é", "a".repeat(64), undefined]) {
      assert.equal(await new Guard({ baseUrl: base, tenant: () => tenant }).principal({ headers: cookie }), null);
    }
    assert.equal(requests.length, 0);
  });

  const unavailable = (error: unknown) => error instanceof Refusal && error.status === 503;

  test("an error of the program is not an unreachable service", async () => {
    const guard = new Guard({ baseUrl: base, tenant: "acme", fetch: () => (undefined as unknown as () => Promise<Response>)() });
    await assert.rejects(guard.principal({ headers: cookie }), TypeError);
  });

  test("a request is repeated once", async () => {
    const guard = new Guard({ baseUrl: base, tenant: "acme", timeout: patience });
    statuses = [503];
    assert.ok(await guard.principal({ headers: cookie }));
    assert.equal(requests.length, 2);
    [requests, statuses] = [[], [503, 503]];
    await assert.rejects(guard.principal({ headers: cookie }), unavailable);
    assert.equal(requests.length, 2);
  });

  test("a request ends after a second", async () => {
    statuses = [0, 0, 0];
    const guard = new Guard({ baseUrl: base, tenant: "acme" });
    const began = performance.now();
    await assert.rejects(guard.principal({ headers: cookie }), unavailable);
    const took = performance.now() - began;
    assert.ok(took > 950, `${took} ms`);
    assert.equal(requests.length, 1); // the second is for all attempts, so that no time is left for another one
  });
});
