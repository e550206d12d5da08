import assert from "node:assert/strict";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, test } from "node:test";
import { can, LostConnectionError, ProblemError, Rolecall, type RolecallOptions } from "../src/index.js";
import { ownerEmail, password, Proxy, stores, World } from "./program.js";

const fast = { pause: 5 };

declare const undefinedName: () => void;

for (const store of stores) {
  describe(`client on ${store}`, () => {
    let world: World;
    let owner: Rolecall;
    before(async () => {
      world = await World.start(store);
      owner = await world.owner();
    });
    after(() => world.stop());

    test("a session in a token", async () => {
      const tokens: string[] = [];
      const client = world.anonymous({ onToken: (token) => void tokens.push(token) });
      const signIn = await client.signIn({ email: ownerEmail, password, transport: "bearer" });
      assert.match(client.token!, /^rs_/);
      const { data: session } = await client.GET("/auths/session");
      assert.equal(session.user.email, ownerEmail);
      assert.equal(session.session?.expiresAt, signIn.expiresAt);
      assert.ok(can(session, "shop/invoices:approve", { department: "Sales" }));
      await client.refresh();
      await client.POST("/auths/confirm", { body: { password } });
      assert.equal(new Set(tokens).size, 3);
      assert.equal(client.token, tokens[2]);
      await client.GET("/auths/session");
      await client.signOut();
      await assert.rejects(client.GET("/auths/session"), isProblem(401, "unauthenticated"));
    });

    test("a session in a cookie", async () => {
      const client = world.anonymous();
      const response = (await client.POST("/auths/login", { body: { email: ownerEmail, password } })).response;
      assert.equal(client.token, undefined);
      await client.GET("/auths/session");
      const cookie = response.headers.getSetCookie().map((line) => line.split(";")[0]).join("; ");
      let sent = "" as string | null;
      const spying = (request: Request) => {
        sent = request.headers.get("cookie");
        return fetch(request);
      };
      const server = world.anonymous({ cookie: `theme=dark; ${cookie}; other=1`, fetch: spying });
      assert.equal((await server.GET("/auths/session")).data.user.email, ownerEmail);
      assert.equal(sent, cookie);
      const again = world.anonymous({ cookie, fetch: spying });
      await again.signIn({ email: ownerEmail, password });
      await again.GET("/auths/session");
      assert.notEqual(sent, cookie);
      assert.equal(sent!.match(/session=/g)?.length, 1);
      await again.signOut();
      await assert.rejects(again.GET("/auths/session"), isProblem(401, "unauthenticated"));
      assert.match(sent ?? "", /^(rolecall_device=[^;]+)?$/); // the device is still known
      await client.signOut();
      await assert.rejects(client.GET("/auths/session"), isProblem(401, "unauthenticated"));
      await assert.rejects(server.GET("/auths/session"), isProblem(401, "unauthenticated"));
    });

    test("an API token", async () => {
      const { token, id } = await world.serviceAccount(owner, "users:read");
      const client = world.anonymous({ token });
      assert.deepEqual((await client.GET("/auths/session")).data.principal.id, id);
      await assert.rejects(client.GET("/roles"), isProblem(403, "permission-denied"));
    });

    test("an operator key", async () => {
      const operator = new Rolecall({ baseUrl: world.base, token: world.operatorKey });
      const { data } = await operator.GET("/operator/tenants/{name}", { params: { path: { name: "acme" } } });
      assert.equal(data.name, "acme");
    });

    test("problems have pointers", async () => {
      await assert.rejects(owner.POST("/users", { body: { email: "grace", name: "G" } }), (error: unknown) => {
        assert.ok(error instanceof ProblemError);
        assert.equal(error.code, "validation");
        assert.equal(error.status, 422);
        assert.deepEqual(error.errors.map((fault) => fault.pointer).sort(), ["/email", "/name"]);
        assert.match(error.at("/name")[0]!.detail, /3 to 255/);
        assert.match(error.message, /\/email must be an email address/);
        assert.notEqual(error.requestId, "");
        return true;
      });
    });

    test("a repeated call has the same key and one effect", async () => {
      const body = { email: "once@example.com", name: "Only Once" };
      const headers = { "idempotency-key": "mine" };
      const first = await owner.POST("/users", { body, headers });
      const second = await owner.POST("/users", { body, headers });
      assert.equal(second.response.headers.get("idempotent-replayed"), "true");
      assert.equal(first.data.id, second.data.id);
    });

    test("a conditional request has no data if nothing has changed", async () => {
      const { response } = await owner.GET("/tenant");
      const again = await owner.GET("/tenant", { params: { header: { "if-none-match": response.headers.get("etag")! } } });
      assert.equal(again.response.status, 304);
      assert.equal(again.data, undefined);
    });

    test("items has all items of all pages, and passes on the parameters", async () => {
      for (let i = 0; i < 7; i++) await owner.POST("/users", { body: { email: `page-${i}@example.com`, name: "Page Reader", department: "Paging" } });
      const emails: unknown[] = [];
      for await (const user of owner.items("/users", { params: { query: { department: "Paging", limit: 3, sort: "email" } } })) emails.push(user.email);
      assert.deepEqual(emails, [0, 1, 2, 3, 4, 5, 6].map((i) => `page-${i}@example.com`));
      const one = owner.items("/users", { params: { query: { limit: 1 } } });
      assert.equal((await one.next()).done, false);
      await one.return();
      await assert.rejects(world.anonymous({ token: "rc_wrong" }).items("/users").next(), isProblem(401, "unauthenticated"));
    });

    describe("connections that break after the commit", () => {
      let proxy: Proxy;
      let cuts = 0;
      let remaining = 0;
      before(async () => {
        proxy = await Proxy.start(world.base, () => remaining > 0 && (cuts++, remaining-- > 0));
      });
      after(() => proxy.stop());

      test("a create has one effect", async () => {
        for (let i = 0; i < 10; i++) {
          const keys = new Set<string>();
          let attempts = 0;
          const through = new Rolecall({
            baseUrl: proxy.base, tenant: "acme", token: owner.token!, retry: fast,
            fetch: (request) => {
              attempts++;
              keys.add(request.headers.get("idempotency-key")!);
              return fetch(request);
            },
          });
          remaining = 2;
          const email = `cut-${i}@example.com`;
          const { data, response } = await through.POST("/users", { body: { email, name: "Cut Off" } });
          assert.equal(attempts, 3);
          assert.equal(keys.size, 1);
          assert.equal(response.headers.get("idempotent-replayed"), "true");
          const { data: list } = await owner.GET("/users", { params: { query: { email } } });
          assert.deepEqual(list.items.map((user) => user.id), [data.id]);
        }
      });

      test("a safe request is repeated, and others are not", async () => {
        const through = new Rolecall({ baseUrl: proxy.base, tenant: "acme", token: owner.token!, retry: fast });
        remaining = 1;
        await through.GET("/tenant");
        assert.equal(remaining, 0);
        const { data: user } = await owner.POST("/users", { body: { email: "patch@example.com", name: "Patched" } });
        const params = { path: { id: user.id } };
        for (const call of [
          () => through.PATCH("/users/{id}", { params, body: { name: "Patched again" } }),
          () => through.POST("/users/{id}/suspend", { params, body: { reason: "x" } }),
          () => through.DELETE("/users/{id}", { params }),
        ]) {
          [cuts, remaining] = [0, 2];
          await assert.rejects(call, LostConnectionError);
          assert.equal(cuts, 1);
        }
        remaining = 0;
      });

      test("the repetitions have a limit", async () => {
        [cuts, remaining] = [0, Infinity];
        const through = new Rolecall({ baseUrl: proxy.base, tenant: "acme", token: owner.token!, retry: { ...fast, limit: 3 } });
        await assert.rejects(through.GET("/tenant"), LostConnectionError);
        assert.equal(cuts, 4);
        remaining = 0;
        await through.GET("/tenant");
      });
    });
  });
}

describe("retries by status", () => {
  type Answer = (request: IncomingMessage, response: ServerResponse) => void;
  let answers: Answer[] = [];
  let sent: IncomingHttpHeaders[] = [];
  let requests: { method: string; key: string | undefined; at: number }[] = [];
  const server = createServer((request, response) => {
    sent.push(request.headers);
    requests.push({ method: request.method!, key: request.headers["idempotency-key"] as string | undefined, at: performance.now() });
    request.resume();
    (answers.shift() ?? done)(request, response);
  });
  const done: Answer = (_, response) => response.setHeader("content-type", "application/json").end('{"id":"1"}');
  const refuse = (status: number, headers: Record<string, string> = {}): Answer => (_, response) =>
    response.writeHead(status, { "content-type": "application/problem+json", ...headers }).end(`{"code":"c${status}","status":${status}}`);
  let client: Rolecall;
  before(async () => {
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    client = new Rolecall({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tenant: "acme", retry: { ...fast, longestPause: 1500 } });
  });
  after(() => server.close().closeAllConnections());
  const play = (...played: Answer[]) => ([answers, requests, sent] = [played, [], []]);
  const create = () => client.POST("/users", { body: { email: "a@example.com", name: "Ada" } });

  test("429 and 503 are repeated with the same key, for all methods", async () => {
    play(refuse(503), refuse(429));
    await create();
    assert.equal(requests.length, 3);
    assert.equal(new Set(requests.map(({ key }) => key)).size, 1);
    assert.match(requests[0]!.key!, /^[0-9a-f]{32}$/);
    const key = requests[0]!.key;
    play();
    await create();
    assert.notEqual(requests[0]!.key, key);
    play(refuse(503));
    await client.DELETE("/users/{id}", { params: { path: { id: "1" } } });
    assert.deepEqual(requests.map(({ method, key }) => [method, key]), [["DELETE", undefined], ["DELETE", undefined]]);
  });

  test("other statuses are not repeated", async () => {
    for (const status of [400, 401, 403, 404, 408, 409, 410, 412, 422, 500, 501, 502, 504]) {
      play(refuse(status));
      await assert.rejects(create, isProblem(status, `c${status}`));
      assert.equal(requests.length, 1);
    }
  });

  test("Retry-After is respected, and jitter is added", async () => {
    play(refuse(503, { "retry-after": "1" }));
    await create();
    const [first, second] = requests;
    assert.ok(second!.at - first!.at >= 990, `${second!.at - first!.at} ms`);
    play(refuse(429, { "retry-after": "2" }));
    await assert.rejects(create, (error: unknown) => error instanceof ProblemError && error.retryAfter === 2);
    assert.equal(requests.length, 1);
    play(refuse(429, { "retry-after": new Date(Date.now() + 60_000).toUTCString() }));
    await assert.rejects(create, (error: unknown) => error instanceof ProblemError && error.retryAfter! > 50);
  });

  test("a response that breaks off is a lost connection", async () => {
    const broken: Answer = (_, response) => {
      response.writeHead(200, { "content-type": "application/json", "content-length": "100" }).write('{"id":');
      response.destroy();
    };
    play(broken, broken);
    assert.equal((await create()).data.id, "1");
    assert.equal(requests.length, 3);
    play(broken);
    await assert.rejects(client.PATCH("/users/{id}", { params: { path: { id: "1" } }, body: {} }), LostConnectionError);
  });

  test("a JSON response of more than 16 MiB is refused", async () => {
    const long: Answer = (_, response) => {
      response.setHeader("content-type", "application/json").write("{}");
      response.end(" ".repeat(16 << 20));
    };
    play(long);
    const unrepeated = new Rolecall({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tenant: "acme", retry: false });
    await assert.rejects(unrepeated.GET("/tenant"), (error: unknown) => error instanceof LostConnectionError && String(error.cause).includes("more than 16 MiB"));
  });

  test("an error of the program is not a lost connection", async () => {
    for (const mistake of [() => undefinedName(), () => (undefined as unknown as { x: number }).x, () => new URL("x"), () => (1 as unknown as () => void)()]) {
      let attempts = 0;
      const mistaken = new Rolecall({ baseUrl: "http://rolecall.example", retry: fast, fetch: async () => {
        attempts++;
        mistake();
        return new Response();
      } });
      await assert.rejects(mistaken.GET("/tenant"), (error: unknown) => !(error instanceof LostConnectionError) && (error instanceof TypeError || error instanceof ReferenceError));
      assert.equal(attempts, 1);
    }
    const lost = new Rolecall({ baseUrl: "http://127.0.0.1:1", retry: false });
    await assert.rejects(lost.GET("/tenant"), LostConnectionError);
  });

  test("no cache answers", async () => {
    const modes: string[] = [];
    const watched = new Rolecall({ baseUrl: "http://rolecall.example", retry: fast, fetch: async (request) => {
      modes.push(request.cache);
      return Response.json({ items: [], nextCursor: null });
    } });
    await watched.GET("/users");
    await watched.POST("/auths/refresh");
    assert.deepEqual(modes, ["no-store", "no-store"]);
  });

  test("a platform without AbortSignal.any and Headers.getSetCookie", async () => {
    const { any } = AbortSignal;
    const { getSetCookie } = Headers.prototype;
    Object.assign(AbortSignal, { any: undefined });
    delete (Headers.prototype as { getSetCookie?: unknown }).getSetCookie;
    try {
      play(setting(["rolecall_device=d; Expires=Wed, 21 Oct 2037 07:28:00 GMT; Path=/", "session=s; Path=/"]));
      const old = new Rolecall({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tenant: "acme", retry: fast });
      await old.signIn({ email: "a@example.com", password: "x" });
      await old.GET("/auths/session");
      assert.equal(sent.at(-1)!.cookie, "rolecall_device=d; session=s");
      play(() => undefined); // no response
      const stop = new AbortController();
      const asked = old.GET("/tenant", { signal: stop.signal });
      stop.abort(new Error("stopped"));
      await assert.rejects(asked, /stopped/);
    } finally {
      Object.assign(AbortSignal, { any });
      Headers.prototype.getSetCookie = getSetCookie;
    }
  });

  /** Answers with the headers set-cookie, and with a body. */
  const setting = (cookies: string[], body: object = {}): Answer => (_, response) => {
    response.writeHead(200, { "content-type": "application/json", "set-cookie": cookies }).end(JSON.stringify(body));
  };
  const credentials = () => sent.map(({ cookie, authorization }) => cookie ?? authorization);
  const signIn = { email: "a@example.com", password: "x" };
  const other = (options: Partial<RolecallOptions> = {}) => new Rolecall({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tenant: "acme", retry: fast, ...options });

  test("credentials of a call are sent, and their cookies and tokens are not kept", async () => {
    const cookies = ["session=theirs; Path=/", "rolecall_device=theirs; Path=/"];
    play(setting(["session=mine; Path=/"]), setting(cookies), setting(cookies, { token: "rs_theirs" }), done);
    const mine = other();
    await mine.signIn(signIn);
    await mine.GET("/auths/session", { headers: { cookie: "session=other" } });
    await mine.POST("/auths/refresh", { headers: { authorization: "Bearer rs_other" } });
    await mine.GET("/auths/session");
    assert.deepEqual(credentials(), [undefined, "session=other", "Bearer rs_other", "session=mine"]);
    play(setting(cookies), done);
    const token = other({ token: "rc_mine" });
    await token.GET("/auths/session", { headers: { authorization: "Bearer rs_other" } });
    await token.GET("/auths/session");
    assert.deepEqual(credentials(), ["Bearer rs_other", "Bearer rc_mine"]);
  });

  test("all cookies of a browser with the names are sent", async () => {
    // The application, or a sibling host, can have cookies with the names of Rolecall's.
    for (const [browser, then] of [
      ["__Host-session=real; session=other", "session=other; __Host-session=new"],
      ["session=other; __Host-session=real", "session=other; __Host-session=new"],
      ["session=real; session=other", "session=real; session=other; __Host-session=new"],
      ["session=other; session=real", "session=other; session=real; __Host-session=new"],
      ["rolecall_device=other; rolecall_device=real", "rolecall_device=other; rolecall_device=real; __Host-session=new"],
    ] as const) {
      play(setting(["__Host-session=new; Path=/; Secure"]), done);
      const client = other({ cookie: browser });
      await client.GET("/auths/session");
      await client.GET("/auths/session");
      assert.deepEqual(credentials(), [browser, then]);
    }
  });

  test("a client with a token keeps no cookies, and no token that is not of a session", async () => {
    for (const token of ["rc_mine", "rco_mine", "rs_mine"]) {
      const cookies = ["session=s; Path=/", "rolecall_device=d; Path=/"];
      play(setting(cookies, { token: "rc_other" }), setting(cookies), done);
      const tokens: string[] = [];
      const client = other({ token, onToken: (token) => void tokens.push(token) });
      await client.POST("/auths/confirm", { body: { password: "x" } });
      await client.signOut();
      await client.GET("/tenant");
      const bearer = `Bearer ${token}`;
      assert.deepEqual(credentials(), [bearer, bearer, token === "rs_mine" ? undefined : bearer]);
      assert.deepEqual(tokens, []);
    }
  });

  test("a sign-out keeps a session that began during it", async () => {
    for (const kind of ["cookie", "token"]) {
      const started = (name: string) => (kind === "cookie" ? setting([`session=${name}; Path=/`]) : setting([], { token: `rs_${name}` }));
      const client = other();
      let ended: () => void = () => undefined;
      const isSent = new Promise<void>((resolve) => {
        play(started("one"), (request, response) => {
          ended = () => setting(kind === "cookie" ? ["session=; Path=/; Max-Age=0"] : [])(request, response);
          resolve();
        }, started("two"), done);
      });
      await client.signIn(signIn);
      const signOut = client.signOut();
      await isSent;
      await client.signIn(signIn);
      ended();
      await signOut;
      await client.GET("/tenant");
      assert.equal(credentials().at(-1), kind === "cookie" ? "session=two" : "Bearer rs_two");
    }
  });

  test("a streamed body is lost after a time without data, and not after a long time", async ({ mock }) => {
    mock.timers.enable({ apis: ["setTimeout"] });
    const patient = other({ timeout: 1000 });
    const part = "{}\n";
    const stream = async () => {
      const response = new Promise<ServerResponse>((resolve) => {
        play((_, answer) => {
          answer.writeHead(200, { "content-type": "application/x-ndjson" }).write(part);
          resolve(answer);
        });
      });
      const { data } = await patient.GET("/roles", { parseAs: "stream" });
      const reader = (data as ReadableStream<Uint8Array>).getReader();
      assert.equal(new TextDecoder().decode((await reader.read()).value), part);
      return { reader, response: await response };
    };
    const long = await stream();
    for (let n = 0; n < 5; n++) {
      const next = long.reader.read();
      mock.timers.tick(900);
      long.response.write(part);
      assert.equal(new TextDecoder().decode((await next).value), part);
    }
    long.response.end();
    assert.ok((await long.reader.read()).done);
    const silent = await stream();
    const lost = assert.rejects(silent.reader.read(), LostConnectionError);
    mock.timers.tick(1000);
    await lost;
    const canceled = await stream();
    await canceled.reader.cancel();
  });

  test("an attempt without a response in time is a lost connection", async () => {
    play(() => undefined);
    const impatient = new Rolecall({ baseUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tenant: "acme", retry: fast, timeout: 1000 });
    await impatient.GET("/tenant");
    assert.ok(requests.length >= 2);
  });

  test("an aborted request is not repeated", async () => {
    const end = new AbortController();
    play(() => end.abort(new Error("mine")));
    await assert.rejects(client.GET("/tenant", { signal: end.signal }), /mine/);
    assert.equal(requests.length, 1);
  });

  test("a response of a proxy is a problem with the code unknown", async () => {
    play((_, response) => response.writeHead(502, { "content-type": "text/html" }).end("<h1>Bad gateway"));
    await assert.rejects(create, isProblem(502, "unknown"));
  });

  test("items goes on after an empty page until the cursor is null", async () => {
    const page = (items: unknown[], nextCursor: string | null): Answer => (request, response) => {
      cursors.push(new URL(request.url!, "http://x").searchParams.get("cursor"));
      response.setHeader("content-type", "application/json").end(JSON.stringify({ items, nextCursor }));
    };
    const cursors: (string | null)[] = [];
    play(page([1], "a"), page([], "b"), page([], "c"), page([2, 3], "d"), page([], null));
    const found: unknown[] = [];
    for await (const item of client.items("/users")) found.push(item);
    assert.deepEqual(found, [1, 2, 3]);
    assert.deepEqual(cursors, [null, "a", "b", "c", "d"]);
  });
});

function isProblem(status: number, code: string) {
  return (error: unknown) => {
    assert.ok(error instanceof ProblemError, String(error));
    assert.deepEqual([error.status, error.code], [status, code]);
    return true;
  };
}
