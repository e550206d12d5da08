// A flow with the types that openapi-typescript makes, and with openapi-fetch: node flow.js ADDRESS TENANT EMAIL PASSWORD

import assert from "node:assert/strict";
import createClient from "openapi-fetch";
import type { components, paths } from "../.generated/openapi-typescript/rolecall";

const [baseUrl, tenant, email, password] = process.argv.slice(2) as [string, string, string, string];
const service = createClient<paths>({ baseUrl });
const header = { "x-tenant-schema": tenant };

/** must returns the data of a response, or throws its problem. */
function must<T>({ data, error, response }: { data?: T; error?: unknown; response: Response }): T {
  if (data === undefined) throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`);
  return data;
}

async function main(): Promise<void> {
  const signIn = must(await service.POST("/auths/login", { params: { header }, body: { email, password, transport: "bearer" } }));
  service.use({
    onRequest({ request }) {
      request.headers.set("authorization", `Bearer ${signIn.token}`);
    },
  });
  await users();
  await settings();
}

async function users(): Promise<void> {
  const create = {
    params: { header: { ...header, "idempotency-key": "openapi-fetch-1" } },
    body: { email: "grace@fetch.example", name: "Grace Hopper", department: "Sales" },
  };
  const { id } = must(await service.POST("/users", create));
  assert.equal(must(await service.POST("/users", create)).id, id);

  const update = async (body: components["schemas"]["UpdateUser"]) => {
    const { name, department } = must(await service.PATCH("/users/{id}", { params: { header, path: { id } }, body }));
    return { name, department };
  };
  assert.deepEqual(await update({ name: "Grace Murray Hopper" }), { name: "Grace Murray Hopper", department: "Sales" });
  assert.deepEqual(await update({ department: null }), { name: "Grace Murray Hopper", department: null });

  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = must(await service.GET("/users", { params: { header, query: { limit: 1, ...(cursor && { cursor }) } } }));
    ids.push(...page.items.map((user) => user.id));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  assert(ids.length === 2 && ids.includes(id), `listed ${ids}`);

  const { response } = await service.DELETE("/users/{id}", { params: { header, path: { id } } });
  assert.equal(response.status, 204);
  const { error } = await service.GET("/users/{id}", { params: { header, path: { id } } });
  assert.deepEqual([error?.status, error?.code], [404, "not-found"]);
}

async function settings(): Promise<void> {
  const before = must(await service.GET("/tenant", { params: { header } }));
  const body = { settings: { brandColor: "#336699" } };
  const after = must(await service.PATCH("/tenant", { params: { header }, body }));
  assert.deepEqual(after.settings, { ...before.settings, ...body.settings });
}

void main();
