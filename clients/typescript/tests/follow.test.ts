import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { follow, ProblemError, Rolecall } from "../src/index.js";
import { hanging, Proxy, stores, World } from "./program.js";

for (const store of stores) {
  describe(`follow on ${store}`, () => {
    let world: World;
    let owner: Rolecall;
    let proxy: Proxy;
    before(async () => {
      world = await World.start(store);
      owner = await world.owner();
      proxy = await Proxy.start(world.base);
    });
    after(async () => {
      await proxy.stop();
      await world.stop();
    });

    test("the copy has all users, also after the connection was cut and the follower was restarted", hanging, async () => {
      const { token } = await world.serviceAccount(owner, "changes:read", "users:read");
      const reader = new Rolecall({ baseUrl: proxy.base, tenant: "acme", token });
      const copy = new Map<string, unknown>();
      const stored: { cursor?: string } = {};
      let walks = 0;
      const awaited = { name: "", resolve: () => {} };
      const created = (name: string) => new Promise<void>((resolve) => Object.assign(awaited, { name, resolve }));
      const started = () => {
        const end = new AbortController();
        const done = follow(reader, {
          cursor: stored.cursor,
          signal: end.signal,
          walk: async (cursor) => {
            walks++;
            copy.clear();
            for await (const user of reader.items("/users", { params: { query: { limit: 5 } } })) copy.set(user.id, user.name);
            stored.cursor = cursor;
            if (awaited.name === "walk") awaited.resolve();
          },
          handle: async (changes, cursor) => {
            for (const change of changes) {
              if (change.data.subject.type !== "user" || change.data.subject.id === null) continue;
              const { id } = change.data.subject;
              const name = await reader.GET("/users/{id}", { params: { path: { id } } }).then(({ data }) => data.name, (error: unknown) => {
                if (error instanceof ProblemError && error.status === 404) return undefined;
                throw error;
              });
              if (name === undefined) copy.delete(id);
              else copy.set(id, name);
              if (name === awaited.name) awaited.resolve();
            }
            stored.cursor = cursor;
          },
        });
        return { end, done };
      };
      const create = (name: string) => owner.POST("/users", { body: { name, email: `${name.toLowerCase()}@example.com` } });
      const walked = created("walk");
      let follower = started();
      await walked;
      const { data: first } = await create("First");
      for (let round = 0; round < 5; round++) {
        const seen = created(`Round${round}`);
        proxy.isDown = true;
        await owner.PATCH("/users/{id}", { params: { path: { id: first.id } }, body: { name: `Changed${round}` } });
        proxy.isDown = false;
        if (round === 2) { // while it is stopped, changes happen
          follower.end.abort();
          await follower.done;
          await create("Meanwhile");
          follower = started();
        }
        await create(`Round${round}`);
        await seen;
      }
      const gone = created("Last");
      await owner.DELETE("/users/{id}", { params: { path: { id: first.id } } });
      await create("Last");
      await gone;
      follower.end.abort();
      await follower.done;
      const listed = new Map<string, unknown>();
      for await (const user of owner.items("/users")) listed.set(user.id, user.name);
      assert.deepEqual(copy, listed);
      assert.equal(walks, 1);
      assert.ok(!copy.has(first.id));
    });

    test("it walks again if the cursor has expired", async () => {
      const { id, token } = await world.serviceAccount(owner, "changes:read");
      const reader = world.anonymous({ token });
      const { data } = await reader.GET("/changes", { params: { query: { at: "now" } } });
      const { data: role } = await owner.POST("/roles", { body: { name: "More", permissions: ["users:read"] } });
      await owner.PUT("/service-accounts/{id}/roles/{roleId}", { params: { path: { id, roleId: role.id } } });
      const wider = await owner.POST("/service-accounts/{id}/tokens", { params: { path: { id } }, body: { name: "Wider", permissions: ["changes:read", "users:read"], expiresAt: new Date(Date.now() + 3_600_000).toISOString() } });
      const end = new AbortController();
      const cursors: string[] = [];
      await follow(world.anonymous({ token: wider.data.token! }), {
        cursor: data.nextCursor, signal: end.signal, handle: () => assert.fail(),
        walk: (cursor) => {
          cursors.push(cursor);
          end.abort();
        },
      });
      assert.equal(cursors.length, 1);
      assert.notEqual(cursors[0], data.nextCursor);
    });

    test("errors of the handler and other problems end it", async () => {
      const { token } = await world.serviceAccount(owner, "changes:read");
      const { signal } = new AbortController();
      const failing = () => Promise.reject(new Error("mine"));
      await assert.rejects(follow(world.anonymous({ token }), { signal, walk: failing, handle: failing }), /mine/);
      await assert.rejects(follow(world.anonymous({ token: "rc_wrong" }), { signal, walk: failing, handle: failing }), ProblemError);
    });

    test("an operator follows all tenants", async () => {
      const operator = new Rolecall({ baseUrl: world.base, token: world.operatorKey });
      const end = new AbortController();
      const tenants = new Set<string>();
      await world.createTenant("globex");
      await follow(operator, {
        allTenants: true, signal: end.signal, cursor: undefined,
        walk: () => world.createTenant("initech"),
        handle: (changes) => {
          for (const change of changes) tenants.add(change.data.tenant);
          if (tenants.has("initech")) end.abort();
        },
      });
      assert.deepEqual([...tenants], ["initech"]);
    });
  });
}

test("a request for changes ends before the timeout of the client, and a short timeout causes pauses", hanging, async () => {
  for (const [timeout, wait] of [[60_000, "20"], [0, "20"], [10_000, "5"], [1999, "0"]] as const) {
    const end = new AbortController();
    const sentAt: number[] = [];
    const reader = new Rolecall({
      baseUrl: "http://rolecall.example", tenant: "acme", timeout,
      fetch: async (request) => {
        sentAt.push(performance.now());
        assert.equal(new URL(request.url).searchParams.get("wait"), wait);
        if (sentAt.length === 3) end.abort();
        return Response.json({ items: [], nextCursor: "c", upToDate: true });
      },
    });
    await follow(reader, { cursor: "c", signal: end.signal, walk: () => assert.fail(), handle: () => undefined });
    assert.equal(sentAt.length, 3);
    if (wait === "0") assert.ok(sentAt[2]! - sentAt[0]! > 950);
  }
});
