import assert from "node:assert/strict";
import type { AddressInfo } from "node:net";
import { createServer, type Server } from "node:http";
import { after, before, describe, test } from "node:test";
import express, { type Request as ExpressRequest } from "express";
import fastify, { type FastifyRequest } from "fastify";
import { type Context, Hono } from "hono";
import { Guard, principalOf, Rolecall } from "../src/index.js";
import * as forExpress from "../src/express.js";
import * as forFastify from "../src/fastify.js";
import * as forHono from "../src/hono.js";
import { ownerEmail, password, World } from "./program.js";

const approve = "shop/invoices:approve";

/** The same application with each framework. It returns the id of the principal. */
const applications: Record<string, (base: string) => Promise<{ base: string; stop: () => Promise<unknown> }>> = {
  express: async (baseUrl) => {
    const guard = new Guard<ExpressRequest>({ baseUrl, tenant: (request) => String(request.params["tenant"]) });
    const app = express().set("env", "production");
    app.get("/:tenant/me", forExpress.requires(guard), (request, response) => void response.send(principalOf(request).id));
    app.get("/:tenant/invoices/:department", forExpress.requires(guard, approve, (request) => ({ department: String(request.params["department"]) })), (request, response) => {
      response.send(forExpress.principalOf(request).id);
    });
    return listening(createServer(app));
  },
  fastify: async (baseUrl) => {
    type R = FastifyRequest<{ Params: { tenant: string; department: string } }>;
    const guard = new Guard<R>({ baseUrl, tenant: (request) => request.params.tenant });
    const app = fastify();
    app.get("/:tenant/me", { preHandler: forFastify.requires(guard) as never }, async (request) => forFastify.principalOf(request).id);
    app.get<{ Params: { tenant: string; department: string } }>("/:tenant/invoices/:department", {
      preHandler: forFastify.requires<R>(guard, approve, (request) => ({ department: request.params.department })),
    }, async (request) => forFastify.principalOf(request).id);
    const base = await app.listen({ port: 0, host: "127.0.0.1" });
    return { base, stop: () => app.close() };
  },
  hono: async (baseUrl) => {
    const guard = new Guard<Context>({ baseUrl, tenant: (context) => context.req.param("tenant") });
    const app = new Hono();
    app.get("/:tenant/me", forHono.requires(guard), (context) => context.text(forHono.principalOf(context).id));
    app.get("/:tenant/invoices/:department", forHono.requires(guard, approve, (context) => ({ department: context.req.param("department") })), (context) => {
      return context.text(forHono.principalOf(context).id);
    });
    return listening(createServer(async (request, response) => {
      const headers = Object.entries(request.headers).map(([name, value]): [string, string] => [name, String(value)]);
      const answer = await app.fetch(new Request(`http://app${request.url}`, { headers }));
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    }));
  },
};

async function listening(server: Server) {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => new Promise((resolve) => server.close(resolve).closeAllConnections());
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

describe("middleware", () => {
  let world: World;
  let owner: Rolecall;
  before(async () => {
    world = await World.start("sqlite");
    owner = await world.owner();
  });
  after(() => world.stop());

  for (const [name, start] of Object.entries(applications)) {
    test(name, async () => {
      const app = await start(world.base);
      const get = async (path: string, headers: Record<string, string>) => {
        const response = await fetch(app.base + path, { headers });
        return [response.status, response.ok ? await response.text() : await response.text().then((text) => (text.includes("    at ") ? "a stack" : ""))];
      };
      try {
        const { client, user } = await world.member(owner, [approve], { reach: { departments: ["Sales"] } });
        const bearer = { authorization: `Bearer ${client.token}` };
        assert.deepEqual(await get("/acme/me", bearer), [200, user.id]);
        assert.deepEqual(await get("/acme/invoices/Sales", bearer), [200, user.id]);
        assert.deepEqual(await get("/acme/invoices/Design", bearer), [403, ""]);
        assert.deepEqual(await get("/globex/me", bearer), [401, ""]);
        assert.deepEqual(await get("/acme/me", {}), [401, ""]);
        assert.deepEqual(await get("/acme/me", { authorization: "Basic eDp5" }), [401, ""]);
        const { response } = await world.anonymous().POST("/auths/login", { body: { email: ownerEmail, password } });
        const session = response.headers.getSetCookie().map((line) => line.split(";")[0]).find((pair) => pair?.startsWith("session="));
        const ownerId = (await owner.GET("/auths/session")).data.user.id;
        assert.deepEqual(await get("/acme/invoices/Design", { cookie: `a=b; ${session}; theme=dark` }), [200, ownerId]);
        assert.deepEqual(await get("/acme/me", { cookie: `my${session}` }), [401, ""]);
        assert.deepEqual(await get("/acme/me", { cookie: session!, "sec-fetch-site": "cross-site" }), [200, ownerId]); // a link of another site
        assert.deepEqual(await get("/acme/me", { ...bearer, cookie: "session=x" }), [200, user.id]); // the token decides
      } finally {
        await app.stop();
      }
    });
  }

  test("principalOf throws without a middleware", () => {
    assert.throws(() => principalOf({}), /no middleware/);
  });
});
