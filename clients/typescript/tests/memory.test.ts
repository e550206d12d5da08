import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { Guard, Principal, ProblemError, Refusal, Rolecall, type Schemas } from "../src/index.js";
import { PrincipalMemory } from "../src/memory.js";
import { hanging, inAnHour, patience, Proxy, stores, World } from "./program.js";

const revocations = Number(process.env["ROLECALL_TEST_REVOCATIONS"] ?? 24);

describe("principals in memory", { concurrency: stores.length }, () => {
  for (const store of stores) describe(`on ${store}`, () => {
    let world: World;
    let owner: Rolecall;
    let proxy: Proxy;
    let feedToken: string;
    before(async () => {
      world = await World.start(store);
      owner = await world.owner();
      proxy = await Proxy.start(world.base);
      feedToken = (await world.serviceAccount(owner, "changes:read")).token;
    });
    after(async () => {
      await proxy.stop();
      await world.stop();
    });

    /** Returns a guard, and the numbers of its requests for sessions and changes. */
    function guarded(base: string, memory = true) {
      const sent = { sessions: 0, changes: 0 };
      const guard = new Guard({
        baseUrl: base, tenant: "acme", timeout: patience, ...(memory ? { memory: { token: feedToken } } : {}),
        fetch: (request) => {
          sent[request.url.includes("/changes") ? "changes" : "sessions"]++;
          return fetch(request);
        },
      });
      return { guard, sent };
    }

    const bearing = (token: string | undefined) => ({ headers: { authorization: `Bearer ${token}` } });

    /** Calls the guard until it answers from memory. */
    async function warm(guard: Guard, sent: { sessions: number }, request: { headers: Record<string, string> }) {
      for (let hits = 0; hits < 20; ) {
        const before = sent.sessions;
        assert.ok(await guard.principal(request));
        hits = sent.sessions === before ? hits + 1 : 0;
        await new Promise((resolve) => setImmediate(resolve));
      }
    }

    test("a principal that is kept needs no request", hanging, async () => {
      const { guard, sent } = guarded(world.base);
      const { client, user } = await world.member(owner, ["shop/invoices:approve"]);
      await warm(guard, sent, bearing(client.token));
      const principal = await guard.authorize(bearing(client.token), "shop/invoices:approve");
      assert.equal(principal.id, user.id);
      await assert.rejects(guard.authorize(bearing(client.token), "shop/invoices:delete"), isRefusal(403, "permission-denied"));
      assert.equal(await guard.principal(bearing("rs_wrong")), null);
      await assert.rejects(guard.authorize(bearing("rs_wrong")), isRefusal(401, "unauthenticated"));
      await assert.rejects(guard.authorize({ headers: {} }), isRefusal(401, "unauthenticated"));
    });

    // On a busy machine, the feed can be late, and the guard then reads the principal. So the test repeats.
    test("a change of another user, and a sign-in, remove nothing", hanging, async () => {
      const { guard, sent } = guarded(world.base);
      const { client } = await world.member(owner, ["shop/invoices:approve"]);
      const other = await owner.POST("/users", { body: { email: `other-${world.next()}@example.com`, name: "Other" } });
      for (let before = { ...sent, sessions: -1 }; before.sessions !== sent.sessions; ) {
        await warm(guard, sent, bearing(client.token));
        before = { ...sent };
        await world.owner(); // a sign-in
        await owner.PATCH("/users/{id}", { params: { path: { id: other.data.id } }, body: { name: `Changed ${world.next()}` } });
        while (sent.changes < before.changes + 3) await guard.principal(bearing(client.token));
      }
    });

    // Each way to revoke access. They return the check of the guard that must fail.
    const ways: [string, (m: Awaited<ReturnType<World["member"]>>) => Promise<unknown>, 401 | 403][] = [
      ["the user is suspended", ({ user }) => owner.POST("/users/{id}/suspend", { params: { path: { id: user.id } }, body: { reason: "left" } }), 401],
      ["the user is deleted", ({ user }) => owner.DELETE("/users/{id}", { params: { path: { id: user.id } } }), 401],
      ["all sessions are revoked", ({ user }) => owner.DELETE("/users/{id}/sessions", { params: { path: { id: user.id } } }), 401],
      ["the user signs out", ({ client }) => client.POST("/auths/logout"), 401],
      ["the role is removed", ({ user, role }) => owner.DELETE("/users/{id}/roles/{roleId}", { params: { path: { id: user.id, roleId: role.id } } }), 403],
      ["the role is changed", ({ role }) => owner.PATCH("/roles/{id}", { params: { path: { id: role.id } }, body: { permissions: ["shop/other:read"] } }), 403],
      ["the role is deleted", ({ role }) => owner.DELETE("/roles/{id}", { params: { path: { id: role.id }, query: { force: true } } }), 403],
      ["the role gets a reach", ({ user, role }) => owner.PUT("/users/{id}/roles/{roleId}", { params: { path: { id: user.id, roleId: role.id } }, body: { reach: { departments: ["Sales"] } } }), 403],
    ];

    // The limit of a second is not the speed of the machine: the guard answers from memory only if it has read the
    // changes within the last second. A check that begins later must see the revocation, however slow it is.

    /**
     * Repeats the check until it is refused with the status. It returns when the last check began that was
     * still allowed, and when the first one was refused, in milliseconds from now.
     */
    async function refusal(guard: Guard, request: { headers: Record<string, string> }, status: number): Promise<{ allowed: number; refused: number }> {
      const begin = performance.now();
      for (let allowed = 0; ; ) {
        const checked = performance.now() - begin;
        try {
          await guard.authorize(request, "shop/invoices:approve");
          allowed = checked;
        } catch (error) {
          assert.ok(error instanceof Refusal);
          if (error.status === status) return { allowed, refused: performance.now() - begin };
          assert.equal(error.status, 503);
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
    }

    test(`${revocations} revocations take effect within a second while the feed is cut at random`, hanging, async () => {
      const delays: { allowed: number; refused: number; isCut: boolean }[] = [];
      // The feed goes through the proxy, and the sessions do not, so that a cut feed alone is seen.
      const sent = { sessions: 0 };
      const guard = new Guard({
        baseUrl: proxy.base, tenant: "acme", timeout: patience, memory: { token: feedToken },
        fetch: (request) => {
          if (request.url.includes("/changes")) return fetch(request);
          sent.sessions++;
          return fetch(new Request(request.url.replace(proxy.base, world.base), request));
        },
      });
      for (let i = 0; i < revocations; i++) {
        if (i % 100 === 99) owner = await world.owner(); // to assign a role, the sign-in must be recent
        const [name, revoke, status] = ways[i % ways.length]!;
        const member = await world.member(owner, ["shop/invoices:approve"]);
        const request = bearing(member.client.token);
        await warm(guard, sent, request);
        const isCut = Math.random() < 0.5;
        const cut = isCut ? flicker(proxy) : undefined;
        const asking = guard.principal(request); // a read that can overlap with the revocation
        await revoke(member);
        const delay = await refusal(guard, request, status);
        await asking.catch(() => undefined);
        cut?.();
        delays.push({ ...delay, isCut });
        assert.ok(delay.allowed < 1000, `${name}: a check that began ${Math.round(delay.allowed)} ms after the response was still allowed`);
        for (let again = 0; again < 5; again++) await assert.rejects(guard.authorize(request, "shop/invoices:approve"), (error: unknown) => error instanceof Refusal && error.status === status);
      }
      const parts = (of: "allowed" | "refused") => {
        const sorted = delays.map((delay) => delay[of]).sort((a, b) => a - b);
        return [0.5, 0.99, 1].map((part) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]!.toFixed(0)).join(", ");
      };
      console.log(`${store}: ${revocations} revocations, ${delays.filter(({ isCut }) => isCut).length} with a cut feed. Milliseconds (median, 99 %, maximum) to the last allowed check: ${parts("allowed")}; to the first refusal: ${parts("refused")}`);
    });

    test("an entry expires with the assignment", hanging, async () => {
      const { guard, sent } = guarded(world.base);
      const { client, user, role } = await world.member(owner, ["shop/invoices:approve"]);
      let end = 0;
      for (let wait = 2000; end === 0; wait *= 2) {
        const soon = Date.now() + wait;
        const assigned = owner.PUT("/users/{id}/roles/{roleId}", { params: { path: { id: user.id, roleId: role.id } }, body: { expiresAt: new Date(soon).toISOString() } });
        await assigned.then(() => (end = soon), (error: unknown) => assert.ok(error instanceof ProblemError && error.status === 422, String(error))); // it is too late when it arrives
      }
      for (;;) {
        const checked = Date.now();
        try {
          await guard.authorize(bearing(client.token), "shop/invoices:approve");
          assert.ok(checked < end, `allowed ${checked - end} ms after the end`);
        } catch (error) {
          assert.ok(error instanceof Refusal && error.status === 403, String(error));
          assert.ok(Date.now() >= end, "refused before the end");
          break;
        }
        await new Promise((resolve) => setImmediate(resolve));
      }
      assert.ok(sent.sessions > 0);
    });

    test("an API token that is revoked", hanging, async () => {
      const { guard, sent } = guarded(world.base);
      const { id, token, tokenId } = await world.serviceAccount(owner, "shop/invoices:approve");
      await warm(guard, sent, bearing(token));
      await owner.DELETE("/service-accounts/{id}/tokens/{tokenId}", { params: { path: { id, tokenId } } });
      assert.ok((await refusal(guard, bearing(token), 401)).allowed < 1000);
    });

    test("without a valid token of the feed, each check is a request", async () => {
      const errors: unknown[] = [];
      const sent = { sessions: 0, changes: 0 };
      const guard = new Guard({
        baseUrl: world.base, tenant: "acme", memory: { token: "rc_wrong", onError: (error) => errors.push(error) },
        fetch: (request) => {
          sent[request.url.includes("/changes") ? "changes" : "sessions"]++;
          return fetch(request);
        },
      });
      for (let i = 0; i < 20; i++) assert.ok(await guard.principal(bearing(owner.token)));
      assert.equal(sent.sessions, 20);
      assert.ok(sent.changes < 10, `${sent.changes} requests`); // it pauses after an error
      assert.ok(errors.length > 0);
    });

    test("operators and other tenants are not kept", async () => {
      const { guard, sent } = guarded(world.base);
      for (let i = 0; i < 5; i++) assert.equal(await guard.principal(bearing(world.operatorKey)), null);
      assert.equal(sent.sessions, 0); // an operator key is no credential of a user
    });

    test("one operator key for all tenants", hanging, async () => {
      const others = ["one", "two", "three"].map((name) => `${name}-${world.next()}`);
      for (const name of others) await world.createTenant(name);
      const key = (words: string[]) => world.command("operator-key", "create", "Guard", "--json", ...words).then((made) => (JSON.parse(made) as { key: string }).key);
      const sent: string[] = [];
      const errors: string[] = [];
      const guardOf = (token: string) => new Guard<{ headers: Record<string, string> }>({
        baseUrl: "http://rolecall.invalid", timeout: patience, tenant: ({ headers }) => headers["tenant"],
        memory: { token, feedUrl: world.base, onError: (_, tenant) => errors.push(tenant) },
        fetch: (request) => {
          const url = new URL(request.url);
          sent.push(`${url.pathname} ${request.headers.get("x-tenant-schema") ?? ""}`.trim());
          return fetch(url.hostname === "rolecall.invalid" ? new Request(world.base + url.pathname, request) : request);
        },
      });
      const users = await Promise.all(others.map(async (tenant) => ({ tenant, client: await world.owner({ tenant }) })));
      const requestOf = ({ tenant, client }: (typeof users)[number]) => ({ headers: { tenant, authorization: `Bearer ${client.token}` } });
      const guard = guardOf(await key(["--scope", "changes"]));
      const loads = () => sent.filter((line) => line.startsWith("/auths/session")).length;
      for (let hits = 0; hits < 20; await new Promise((resolve) => setImmediate(resolve))) {
        const before = loads();
        for (const user of users) assert.ok(await guard.principal(requestOf(user)));
        hits = loads() === before ? hits + 1 : 0;
      }
      for (const tenant of others) assert.equal(sent.filter((line) => line === `/changes ${tenant}`).length, 1);
      assert.ok(sent.includes("/operator/changes"));
      const [revoked, ...kept] = users;
      const asked = requestOf(revoked!);
      await revoked!.client.signOut();
      const revokedAt = performance.now();
      for (let checked = revokedAt; (await guard.principal(asked)) !== null; checked = performance.now()) assert.ok(checked - revokedAt < 1000);
      for (const user of kept) assert.ok(await guard.principal(requestOf(user)));
      // A key for other tenants: its feed never shows a change of this one.
      const limited = guardOf(await key(["--scope", "changes", "--tenant", others[1]!]));
      sent.length = 0;
      for (let i = 0; i < 20; i++) assert.ok(await limited.principal(requestOf(users[2]!)));
      assert.equal(loads(), 20);
      assert.ok(errors.includes(others[2]!));
    });

    test("a guard without memory, and a service that is down", async () => {
      const own = await Proxy.start(world.base);
      const { guard, sent } = guarded(own.base, false);
      assert.equal((await guard.authorize(bearing(owner.token), "users:read")).type, "user");
      assert.ok(await guard.principal(bearing(owner.token)));
      assert.deepEqual(sent, { sessions: 2, changes: 0 });
      own.isDown = true;
      await assert.rejects(guard.principal(bearing(owner.token)), isRefusal(503, "unavailable"));
      own.isDown = false;
      assert.ok(await guard.principal(bearing(owner.token)));
      await own.stop();
    });
  });
});

describe("rules of the memory", () => {
  let now = 0;
  let pages: (Partial<Schemas["Changes"]> | Error)[] = [];
  let reads: (string | undefined)[] = [];
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const change = (type: string, kind: string, id: string) => ({ type, data: { subject: { type: kind, id } } }) as Schemas["Change"];
  const principal = (id: string, validUntil: string | null = null) =>
    new Principal({ principal: { id, type: "user" }, tenant: { name: "acme" }, permissions: [], scopedPermissions: [], session: null, permissionsExpireAt: validUntil } as unknown as Schemas["CurrentSession"]);
  let readTime = 0;
  let isOfAll = false;
  const memoryOf = (entries = 10) => new PrincipalMemory((_, cursor) => {
    reads.push(cursor);
    now += readTime;
    const page = pages.shift() ?? {};
    return page instanceof Error ? Promise.reject(page) : Promise.resolve({ items: [], nextCursor: `c${reads.length}`, upToDate: true, ...page });
  }, entries, () => undefined, isOfAll, () => now);

  /** Returns a memory that keeps a and b, one second after its feed has begun. */
  async function started(entries?: number) {
    [now, pages, reads] = [0, [], []];
    const memory = memoryOf(entries);
    memory.put("acme", "A", principal("a1"), now);
    assert.equal(memory.get("acme", "A"), undefined); // there is no feed yet
    await settled();
    assert.deepEqual(reads, [undefined]);
    memory.put("acme", "A", principal("a1"), 999); // could be older than the cursor
    now = 999;
    assert.equal(await memory.get("acme", "A"), undefined);
    await settled();
    now = 1000;
    for (const name of ["A", "B"]) memory.put("acme", name, principal(`${name.toLowerCase()}1`), now);
    assert.ok(memory.get("acme", "A") instanceof Principal);
    return memory;
  }

  test("an entry needs a proof of the last 800 ms", async () => {
    const memory = await started(); // the last proof is from 999
    now = 1798;
    pages = [new Error("cut")];
    assert.ok(memory.get("acme", "A") instanceof Principal);
    await settled();
    now = 1799;
    assert.equal(await memory.get("acme", "A"), undefined); // the feed is paused
    now = 10_000;
    assert.ok((await memory.get("acme", "A")) instanceof Principal); // it waits for the feed
  });

  test("a change removes the entries of the principal, and what was read within the next second", async () => {
    const memory = await started();
    now = 1500;
    pages = [{ items: [change("user.suspended", "user", "a1")] }];
    assert.ok(memory.get("acme", "A") instanceof Principal); // starts the poll
    await settled();
    assert.equal(memory.get("acme", "A"), undefined);
    assert.ok(memory.get("acme", "B") instanceof Principal);
    memory.put("acme", "A", principal("a1"), 2499);
    now = 2499;
    assert.equal(await memory.get("acme", "A"), undefined);
    memory.put("acme", "A", principal("a1"), 2500);
    now = 2500;
    assert.ok((await memory.get("acme", "A")) instanceof Principal);
  });

  test("changes of roles, of the tenant, and unknown ones remove all entries", async () => {
    for (const changed of [change("role.updated", "role", "r1"), change("tenant.updated", "tenant", "t1"), change("planet.moved", "planet", "p1"), change("user.forgotten", "user", undefined as unknown as string)]) {
      const memory = await started();
      now = 1500;
      pages = [{ items: [changed] }];
      memory.get("acme", "A");
      await settled();
      assert.equal(memory.get("acme", "A"), undefined, changed.type);
      assert.equal(memory.get("acme", "B"), undefined, changed.type);
    }
  });

  test("one feed of all tenants removes only what its changes affect", async () => {
    isOfAll = true;
    try {
      const memory = await started();
      memory.put("globex", "A", principal("a2"), now);
      assert.ok(memory.get("globex", "A") instanceof Principal);
      now = 1499; // the last proof is from 999
      pages = [new Error("cut")];
      assert.equal(await memory.get("acme", "A"), undefined); // 500 ms after the proof
      now = 7000;
      pages = [{ items: [{ ...change("role.updated", "role", "r1"), data: { tenant: "globex", subject: { type: "role", id: "r1" } } } as Schemas["Change"]] }];
      const before = reads.length;
      assert.equal(await memory.get("globex", "A"), undefined);
      assert.ok(memory.get("acme", "A") instanceof Principal);
      assert.equal(reads.length, before + 1);
    } finally {
      isOfAll = false;
    }
  });

  test("changes that take nothing away remove nothing", async () => {
    const memory = await started();
    now = 1500;
    pages = [{ items: [change("session.started", "user", "a1"), change("webhook.updated", "webhook", "w1"), change("request.refused", "tenant", "t1"), change("job.ended", "tenant", "t1")] }];
    memory.get("acme", "A");
    await settled();
    assert.ok(memory.get("acme", "A") instanceof Principal);
  });

  test("the proof is from the time at which the request for changes was sent", async () => {
    const memory = await started();
    [now, readTime] = [3000, 799];
    assert.ok((await memory.get("acme", "A")) instanceof Principal);
    [now, readTime] = [6000, 800];
    assert.equal(await memory.get("acme", "A"), undefined);
    readTime = 0;
  });

  test("a page that is not the last one is no proof", async () => {
    const memory = await started();
    now = 3000;
    pages = [{ upToDate: false }, new Error("cut")];
    assert.equal(await memory.get("acme", "A"), undefined);
  });

  test("an entry is read again after ten seconds, and after its end", async () => {
    const memory = await started();
    now = 10_999;
    assert.ok((await memory.get("acme", "A")) instanceof Principal);
    now = 11_000;
    assert.equal(await memory.get("acme", "A"), undefined);
    memory.put("acme", "B", principal("b1", new Date(Date.now() - 1).toISOString()), now);
    assert.equal(await memory.get("acme", "B"), undefined);
    memory.put("acme", "B", principal("b1", inAnHour()), now);
    assert.ok((await memory.get("acme", "B")) instanceof Principal);
  });

  test("an entry ends with its session token, which a newer one has replaced", async () => {
    const memory = await started();
    const session = (tokenExpiresAt: number) => ({ ...principal("b1").session, session: { expiresAt: inAnHour(), idleExpiresAt: inAnHour(), tokenExpiresAt: new Date(tokenExpiresAt).toISOString() } }) as unknown as Schemas["CurrentSession"];
    memory.put("acme", "B", new Principal(session(Date.now() + 3_600_000)), now);
    assert.ok((await memory.get("acme", "B")) instanceof Principal);
    memory.put("acme", "B", new Principal(session(Date.now() - 1)), now);
    assert.equal(await memory.get("acme", "B"), undefined);
  });

  test("after ten seconds without requests, the feed begins anew", async () => {
    const memory = await started();
    now = 11_001;
    memory.put("acme", "A", principal("a1"), now);
    await memory.get("acme", "A");
    assert.equal(reads.at(-1), undefined);
    assert.equal(await memory.get("acme", "A"), undefined); // changes before the new cursor are unknown
  });

  test("the memory is bounded", async () => {
    const memory = await started(3);
    for (let i = 0; i < 100; i++) memory.put("acme", `X${i}`, principal("f1"), now);
    assert.equal(memory.size, 3);
    assert.equal(memory.get("acme", "A"), undefined);
    assert.ok(memory.get("acme", "X99") instanceof Principal);
    assert.equal(memory.get("globex", "X99"), undefined);
  });

  test("the number of permissions and departments is bounded", async () => {
    const memory = await started(3);
    const large = (permissions: number, departments: number) => {
      const texts = (n: number) => new Array<string>(n).fill("shop/a:b");
      return new Principal({ ...principal("f1").session, permissions: texts(permissions), scopedPermissions: [{ permissions: texts(permissions), reach: { departments: texts(departments) } }] });
    };
    const kept = () => ["A", "B", "C", "D", "E"].filter((name) => memory.get("acme", name) instanceof Principal).join("");
    memory.put("acme", "B", large(0, 50), now);
    memory.put("acme", "A", large(100, 50), now); // 250 of 300
    assert.equal(kept(), "AB");
    memory.put("acme", "A", large(100, 50), now); // again
    memory.put("acme", "C", large(0, 1), now);
    assert.equal(kept(), "AC");
    memory.put("acme", "D", large(0, 301), now);
    assert.equal(memory.size, 0);
    memory.put("acme", "E", large(0, 300), now);
    assert.equal(kept(), "E");
  });

  test("an expired cursor begins anew at once", async () => {
    const memory = await started();
    now = 1500;
    pages = [new ProblemError(new Response(null, { status: 410 }), { code: "changes-expired" })];
    memory.get("acme", "A");
    await settled();
    memory.get("acme", "A");
    await settled();
    assert.equal(reads.at(-1), undefined);
    assert.equal(memory.get("acme", "A"), undefined);
  });
});

/** Cuts the feed at random times until the returned function is called. */
function flicker(proxy: Proxy): () => void {
  let timer: NodeJS.Timeout;
  const toggle = (isDown: boolean) => {
    proxy.isDown = isDown;
    timer = setTimeout(toggle, Math.random() * 400, !isDown);
  };
  toggle(true);
  return () => {
    clearTimeout(timer);
    proxy.isDown = false;
  };
}

function isRefusal(status: number, code: string) {
  return (error: unknown) => {
    assert.ok(error instanceof Refusal, String(error));
    assert.deepEqual([error.status, error.code], [status, code]);
    return true;
  };
}
