// Calls every operation of the OpenAPI document against the real program, and compares the response with the
// document. Operations that are added later are called as well, with the example of the document.

import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { deflateSync } from "node:zlib";
import { after, before, describe, test } from "node:test";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { parse } from "yaml";
import { ProblemError, Rolecall } from "../src/index.js";
import { inAnHour, ownerEmail, password, repository, stores, until, World } from "./program.js";

interface Media { schema?: object; example?: unknown }
interface Body { content?: Record<string, Media> }
interface Operation {
  operationId: string;
  security: object[];
  requestBody?: Body & { required?: boolean };
  responses: Record<string, Body & { $ref?: string }>;
  parameters?: { $ref?: string; name?: string; in?: string; required?: boolean }[];
}

const document = parse(await readFile(new URL("openapi/openapi.yaml", repository), "utf8")) as {
  paths: Record<string, Record<string, Operation>>;
  components: { responses: Record<string, Body>; parameters: Record<string, { name: string; in: string; required?: boolean }> };
};
const ajv = new Ajv2020({ strict: false, allErrors: true });
(formats as unknown as (ajv: Ajv2020) => void)(ajv);
ajv.addSchema(document, "document");

const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).filter(([method]) => method !== "parameters").map(([method, operation]) => ({ path, method, operation })));

/** Returns the validator of the body of a response, or undefined if the document describes none. */
function validatorOf(path: string, method: string, status: number, mediaType: string): ValidateFunction | undefined {
  const escape = (part: string) => part.replaceAll("~", "~0").replaceAll("/", "~1").replaceAll("%", "%25").replaceAll("{", "%7B").replaceAll("}", "%7D");
  let at = `/paths/${escape(path)}/${method}/responses/${status}`;
  let response = document.paths[path]![method]!.responses[status];
  assert.ok(response, `${method} ${path} has an undocumented status ${status}`);
  if (response.$ref) {
    at = response.$ref.slice(1);
    response = document.components.responses[at.split("/").at(-1)!]!;
  }
  if (response.content === undefined) return undefined;
  assert.ok(response.content[mediaType], `${method} ${path} ${status} has an undocumented type ${mediaType}`);
  return ajv.compile({ $ref: `document#${at}/content/${escape(mediaType)}/schema` });
}

/** A white PNG image of 16 times 16 pixels. */
const logo = png(16);

function png(size: number): Buffer {
  const chunk = (type: string, data: Buffer) => {
    const content = Buffer.concat([Buffer.from(type), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(content));
    return Buffer.concat([length, content, sum]);
  };
  const header = Buffer.alloc(13);
  header.writeUInt32BE(size, 0);
  header.writeUInt32BE(size, 4);
  header.set([8, 2], 8); // 8 bits, RGB
  const line = Buffer.concat([Buffer.alloc(1), Buffer.alloc(3 * size, 0xff)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: size }, () => line)));
  return Buffer.concat([Buffer.from("89504e470d0a1a0a", "hex"), chunk("IHDR", header), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))]);
}

function crc32(bytes: Buffer): number {
  let crc = 0xffffffff;
  for (const byte of bytes) {
    crc ^= byte;
    for (let bit = 0; bit < 8; bit++) crc = (crc >>> 1) ^ (crc & 1 ? 0xedb88320 : 0);
  }
  return (crc ^ 0xffffffff) >>> 0;
}

for (const store of stores) {
  describe(`operations on ${store}`, () => {
    let world: World;
    let owner: Rolecall;
    let operator: Rolecall;
    before(async () => {
      world = await World.start(store);
      owner = await world.owner();
      operator = new Rolecall({ baseUrl: world.base, token: world.operatorKey });
    });
    after(() => world.stop());

    const user = async () => (await owner.POST("/users", { body: { email: `user-${world.next()}@example.com`, name: "Grace Hopper" } })).data.id;
    const role = async () => (await owner.POST("/roles", { body: { name: `Role ${world.next()}`, permissions: ["users:read"] } })).data.id;
    const group = async () => (await owner.POST("/groups", { body: { name: `Group ${world.next()}` } })).data.id;
    const account = async () => (await world.serviceAccount(owner, "changes:read")).id;
    const webhook = async () => {
      const { data } = await owner.POST("/webhooks", { body: { url: "https://hooks.example.com/x", serviceAccountId: await account() } });
      return data.id;
    };
    const operatorWebhook = async () => (await operator.POST("/operator/webhooks", { body: { url: "https://hooks.example.com/x" } })).data.id;
    const job = async () => (await owner.POST("/jobs/suspend-users", { body: { users: { department: "None here" } } })).data.id;
    const directory = async () => (await owner.POST("/directories", { body: { name: `Directory ${world.next()}` } })).data.id;
    const directoryToken = () => ({ name: "Provider", expiresAt: inAnHour() });

    const connection = async () => {
      const body = { name: `Connection ${world.next()}`, issuer: `https://login-${world.next()}.example`, clientId: "rolecall", clientSecret: "a client secret" };
      return (await owner.POST("/connections", { body })).data.id;
    };
    const tenant = async () => {
      const name = `tenant-${world.next()}`;
      await world.createTenant(name);
      return name;
    };
    /** Returns the first event, when it is in the log. */
    const event = async () => {
      let first = "";
      for await (const { id } of owner.items("/events")) first = id;
      await until(() => owner.GET("/events/{id}/proof", { params: { path: { id: first } } }).catch(() => undefined));
      return first;
    };

    /** What a call needs that the example of the document does not have. */
    interface Call { path?: Record<string, string>; query?: object; header?: object; body?: unknown; as?: Rolecall; parseAs?: "text" | "arrayBuffer"; status?: number }

    const id = (of: () => Promise<string>) => async (): Promise<Call> => ({ path: { id: await of() } });
    const session = () => world.owner();
    const withTotp = async (): Promise<Rolecall> => {
      const { client } = await world.member(owner, []);
      await client.POST("/auths/totp", {});
      return client;
    };
    const suspendedTenant = async () => {
      const name = await tenant();
      await operator.POST("/operator/tenants/{name}/suspend", { params: { path: { name } }, body: { reason: "test" } });
      return { path: { name } };
    };
    const deletedTenant = async () => {
      const name = await tenant();
      const { response } = await operator.GET("/operator/tenants/{name}", { params: { path: { name } } });
      await operator.DELETE("/operator/tenants/{name}", { params: { path: { name }, header: { "if-match": response.headers.get("etag")! } } });
      return { path: { name } };
    };
    const assignment = async (kind: "users" | "service-accounts") => {
      const call = { path: { id: kind === "users" ? await user() : await account(), roleId: await role() } };
      await owner.PUT(kind === "users" ? "/users/{id}/roles/{roleId}" : "/service-accounts/{id}/roles/{roleId}", { params: call });
      return call;
    };
    const groupRole = async () => {
      const call = { path: { id: await group(), roleId: await role() } };
      await owner.PUT("/groups/{id}/roles/{roleId}", { params: call });
      return call;
    };
    const member = async () => {
      const call = { path: { id: await group(), userId: await user() } };
      await owner.PUT("/groups/{id}/users/{userId}", { params: call });
      return call;
    };
    const exported = async (): Promise<Call> => ({ parseAs: "text" });
    const none = "00000000-0000-7000-8000-000000000000";

    const calls: Record<string, () => Promise<Call>> = {
      "GET /access": async () => ({ query: { permission: "users:read" } }),
      "GET /auths/check": async () => ({ query: { permission: "users:read" } }),
      "POST /auths/confirm": async () => ({ as: await session(), body: { password } }),
      "POST /auths/login": async () => ({ as: world.anonymous(), body: { email: ownerEmail, password } }),
      "POST /auths/refresh": async () => ({ as: await session() }),
      "POST /auths/logout": async () => ({ as: await session() }),
      "PUT /auths/password": async () => ({ as: (await world.member(owner, [])).client, body: { currentPassword: password, newPassword: "another correct horse" } }),
      "POST /auths/recovery-codes": async () => ({ as: (await world.member(owner, [])).client, status: 409 }),
      "POST /auths/passkeys/options": async () => ({ as: await session(), status: 409 }), // needs --public-url
      "POST /auths/passkeys/sign-in-options": async () => ({ status: 409 }),
      "POST /auths/passkeys": async () => ({ status: 409 }),
      "POST /auths/passkeys/sign-in": async () => ({ as: world.anonymous(), status: 401 }),
      "DELETE /auths/passkeys/{passkeyId}": async () => ({ path: { passkeyId: none }, status: 404 }),
      "PATCH /auths/passkeys/{passkeyId}": async () => ({ path: { passkeyId: none }, status: 404 }),
      "POST /auths/totp": async () => ({ as: (await world.member(owner, [])).client }),
      "DELETE /auths/totp": async () => ({ as: await withTotp(), status: 404 }), // it is not confirmed
      "POST /auths/totp/confirm": async () => ({ as: await withTotp(), body: { code: "000000" }, status: 422 }),
      "POST /auths/email-changes/complete": async () => ({ as: world.anonymous(), status: 401 }),
      "POST /auths/invitations/accept": async () => ({ as: world.anonymous(), status: 401 }),
      "POST /auths/oidc/start": async () => ({ as: world.anonymous(), status: 422 }), // needs --oidc-return-urls
      "POST /auths/oidc/sign-out": async () => ({ as: world.anonymous(), status: 422 }),
      "POST /auths/codes/exchange": async () => ({ as: world.anonymous(), status: 401 }),
      "POST /auths/oidc/link": async () => ({ as: await session(), status: 422 }),
      "POST /auths/login/enrolment": async () => ({ as: world.anonymous(), status: 401 }),
      "POST /auths/login/second-factor": async () => ({ as: world.anonymous(), status: 401 }),
      "POST /auths/password-resets/complete": async () => ({ as: world.anonymous(), status: 401 }),
      "GET /events/consistency": async () => {
        await event();
        return { query: { from: 1 } };
      },
      "GET /events/{id}/proof": id(event),
      "GET /exports/events": exported,
      "GET /exports/users": exported,
      "GET /exports/roles/{id}/users": async () => ({ path: { id: await role() }, parseAs: "text" }),
      "POST /jobs/assign-role": async () => ({ body: { users: { department: "None here" }, roleId: await role() } }),
      "POST /jobs/unassign-role": async () => ({ body: { users: { department: "None here" }, roleId: await role() } }),
      "POST /jobs/suspend-users": async () => ({ body: { users: { department: "None here" } } }),
      "POST /jobs/{id}/cancel": id(job),
      "POST /operator/tenants": async () => ({ body: { name: `tenant-${world.next()}`, owner: { email: ownerEmail, name: "Ada Lovelace" } } }),
      "GET /operator/events/consistency": async () => {
        await operator.GET("/operator/events/checkpoint"); // adds the recent events to the log
        return { query: { from: 1 } };
      },
      "GET /operator/events/{id}/proof": id(async () => {
        const { data } = await operator.GET("/operator/events", { params: { query: { limit: 1 } } });
        return data!.items[0]!.id;
      }),
      "GET /operator/users": async () => ({ query: { email: ownerEmail } }),
      "DELETE /users/{id}/identities/{identityId}": async () => ({ path: { id: await user(), identityId: none }, status: 404 }),
      "DELETE /operator/tenants/{name}": async () => {
        const path = { name: await tenant() };
        const { response } = await operator.GET("/operator/tenants/{name}", { params: { path } });
        return { path, header: { "if-match": response.headers.get("etag")! } };
      },
      "POST /operator/tenants/{name}/resume": suspendedTenant,
      "POST /operator/tenants/{name}/restore": deletedTenant,
      "DELETE /users/{id}/roles/{roleId}": () => assignment("users"),
      "PUT /users/{id}/roles/{roleId}": async () => ({ path: { id: await user(), roleId: await role() } }),
      "DELETE /service-accounts/{id}/roles/{roleId}": () => assignment("service-accounts"),
      "PUT /service-accounts/{id}/roles/{roleId}": async () => ({ path: { id: await account(), roleId: await role() } }),
      "GET /groups/{id}/roles": async () => ({ path: { id: (await groupRole()).path.id } }),
      "DELETE /groups/{id}/roles/{roleId}": groupRole,
      "PUT /groups/{id}/roles/{roleId}": async () => ({ path: { id: await group(), roleId: await role() } }),
      "GET /groups/{id}/users": async () => ({ path: { id: (await member()).path.id } }),
      "DELETE /groups/{id}/users/{userId}": member,
      "PUT /groups/{id}/users/{userId}": async () => ({ path: { id: await group(), userId: await user() } }),
      "POST /groups": async () => ({ body: { name: `Group ${world.next()}` } }),
      "PATCH /groups/{id}": async () => ({ path: { id: await group() }, body: { description: "New" } }),
      "GET /users/{id}/groups": async () => ({ path: { id: (await member()).path.userId } }),
      "POST /service-accounts/{id}/resume": async () => {
        const path = { id: await account() };
        await owner.POST("/service-accounts/{id}/suspend", { params: { path }, body: { reason: "test" } });
        return { path };
      },
      "POST /service-accounts/{id}/tokens": async () => ({ path: { id: await account() }, body: { name: "Token", permissions: ["changes:read"], expiresAt: inAnHour() } }),
      "DELETE /service-accounts/{id}/tokens/{tokenId}": async () => {
        const { id, tokenId } = await world.serviceAccount(owner, "changes:read");
        return { path: { id, tokenId } };
      },
      "POST /users": async () => ({ body: { email: `user-${world.next()}@example.com`, name: "Grace Hopper" } }),
      "POST /roles": async () => ({ body: { name: `Role ${world.next()}`, permissions: ["users:read"] } }),
      "POST /users/{id}/erase": id(user),
      "POST /users/{id}/restore": async () => {
        const path = { id: await user() };
        await owner.DELETE("/users/{id}", { params: { path } });
        return { path };
      },
      "POST /users/{id}/resume": async () => {
        const path = { id: (await world.member(owner, [])).user.id };
        await owner.POST("/users/{id}/suspend", { params: { path }, body: { reason: "test" } });
        return { path };
      },
      "POST /users/{id}/email-changes": async () => ({ path: { id: await user() }, body: { email: `new-${world.next()}@example.com` } }),
      "DELETE /users/{id}/invitations": async () => {
        const path = { id: await user() };
        await owner.POST("/users/{id}/invitations", { params: { path } });
        return { path };
      },
      "POST /users/{id}/password-resets": async () => ({ path: { id: (await world.member(owner, [])).user.id } }),
      "DELETE /users/{id}/sessions/{sessionId}": async () => {
        const { user, client } = await world.member(owner, []);
        return { path: { id: user.id, sessionId: (await client.GET("/auths/session")).data.session!.id } };
      },
      "POST /users/{id}/tokens": async () => {
        const { user, client } = await world.member(owner, ["users:read"]);
        return { as: client, path: { id: user.id }, body: { name: "Token", permissions: ["users:read"], expiresAt: inAnHour() } };
      },
      "DELETE /users/{id}/tokens/{tokenId}": async () => {
        const { user, client } = await world.member(owner, ["users:read"]);
        const { data } = await client.POST("/users/{id}/tokens", { params: { path: { id: user.id } }, body: { name: "Token", permissions: ["users:read"], expiresAt: inAnHour() } });
        return { path: { id: user.id, tokenId: data.id } };
      },
      "POST /webhooks": async () => ({ body: { url: "https://hooks.example.com/x", serviceAccountId: await account() } }),
      "PATCH /webhooks/{id}": async () => ({ path: { id: await webhook() }, body: { types: ["user.created"] } }),
      "POST /webhooks/{id}/replay": async () => ({ path: { id: await webhook() }, body: { from: new Date(Date.now() - 1000).toISOString(), to: new Date().toISOString() } }),
      "POST /directories": async () => ({ body: { name: `Directory ${world.next()}` } }),
      "PATCH /directories/{id}": async () => ({ path: { id: await directory() }, body: { paused: true } }),
      "POST /directories/{id}/tokens": async () => ({ path: { id: await directory() }, body: directoryToken() }),
      "DELETE /directories/{id}/tokens/{tokenId}": async () => {
        const id = await directory();
        return { path: { id, tokenId: (await owner.POST("/directories/{id}/tokens", { params: { path: { id } }, body: directoryToken() })).data.id } };
      },
      "POST /operator/webhooks": async () => ({ body: { url: "https://hooks.example.com/x" } }),
      "PATCH /operator/webhooks/{id}": async () => ({ path: { id: await operatorWebhook() }, body: { types: ["user.created"] } }),
      "GET /tenant/logo": async () => {
        await owner.PUT("/tenant/logo", { body: logo as never, headers: { "content-type": "image/png" } });
        return { parseAs: "arrayBuffer" };
      },
      "PUT /tenant/logo": async () => ({ body: logo, header: { "content-type": "image/png" } }),
      "DELETE /tenant/logo": async () => {
        await owner.PUT("/tenant/logo", { body: logo as never, headers: { "content-type": "image/png" } });
        return {};
      },
    };
    const ids: [RegExp, () => Promise<string>][] = [
      [/^\/users\/\{id\}/, user], [/^\/roles\/\{id\}/, role], [/^\/groups\/\{id\}/, group], [/^\/service-accounts\/\{id\}/, account],
      [/^\/webhooks\/\{id\}/, webhook], [/^\/operator\/webhooks\/\{id\}/, operatorWebhook], [/^\/jobs\/\{id\}/, job], [/^\/connections\/\{id\}/, connection], [/^\/directories\/\{id\}/, directory],
    ];

    for (const { path, method, operation } of operations) {
      const line = `${method.toUpperCase()} ${path}`;
      test(line, async () => {
        const call = (await calls[line]?.()) ?? {};
        if (path.includes("{id}") && !call.path) call.path = { id: await ids.find(([pattern]) => pattern.test(path))![1]() };
        if (path.includes("{name}") && !call.path) call.path = { name: await tenant() };
        const example = operation.requestBody?.content?.["application/json"]?.example;
        const isOperators = path.startsWith("/operator/");
        const client = call.as ?? (isOperators ? operator : owner);
        const send = client[method.toUpperCase() as "GET"] as unknown as (path: string, init: object) => Promise<{ data: unknown; response: Response }>;
        const init = {
          params: { path: call.path, query: call.query }, headers: call.header, body: call.body ?? example,
          ...(call.parseAs ? { parseAs: call.parseAs } : {}),
        };
        const success = Number(Object.keys(operation.responses).find((status) => status.startsWith("2")));
        const { data, response } = await send(path, init).catch((error: unknown) => {
          assert.ok(error instanceof ProblemError, String(error));
          assert.ok(call.status !== undefined, error.message);
          return { data: error.body, response: error.response };
        });
        assert.ok(response.status === (call.status ?? success) || (call.status === undefined && response.status in operation.responses && response.ok), `${response.status} ${JSON.stringify(data)}`);
        const mediaType = response.headers.get("content-type")?.split(";")[0] ?? "";
        const validate = validatorOf(path, method, response.status, mediaType);
        if (validate === undefined) assert.ok(data === undefined, "the document describes no body");
        else if (mediaType.endsWith("json")) assert.ok(validate(data), JSON.stringify(validate.errors));
        else assert.ok(data !== undefined);
      });
    }
  });
}
