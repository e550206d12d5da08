// A flow with the code that openapi-generator makes for fetch: node flow.js ADDRESS TENANT EMAIL PASSWORD

import assert from "node:assert/strict";
import { AuthsApi, Configuration, ResponseError, TenantApi, UsersApi } from "../.generated/typescript-fetch/rolecall";
import { LoginTransportEnum, ProblemFromJSON, type UpdateUser } from "../.generated/typescript-fetch/rolecall";

const [basePath, xTenantSchema, email, password] = process.argv.slice(2) as [string, string, string, string];

async function main(): Promise<void> {
  const login = { email, password, transport: LoginTransportEnum.Bearer };
  const signIn = await new AuthsApi(new Configuration({ basePath })).authsLogin({ xTenantSchema, login });
  assert(signIn.token !== undefined);
  const configuration = new Configuration({ basePath, accessToken: signIn.token });
  await users(new UsersApi(configuration));
  await settings(new TenantApi(configuration));
}

async function users(api: UsersApi): Promise<void> {
  const createUser = { email: "grace@typescript.example", name: "Grace Hopper", department: "Sales" };
  const create = { xTenantSchema, idempotencyKey: "typescript-fetch-1", createUser };
  const { id } = await api.usersCreateUser(create);
  assert.equal((await api.usersCreateUser(create)).id, id);

  const update = async (updateUser: UpdateUser) => {
    const { name, department } = await api.usersUpdateUser({ xTenantSchema, id, updateUser });
    return { name, department: department ?? null }; // the generated code reads null as undefined
  };
  assert.deepEqual(await update({ name: "Grace Murray Hopper" }), { name: "Grace Murray Hopper", department: "Sales" });
  assert.deepEqual(await update({ department: null }), { name: "Grace Murray Hopper", department: null });

  const ids: string[] = [];
  let cursor: string | undefined;
  do {
    const page = await api.usersListUsers({ xTenantSchema, limit: 1, cursor });
    ids.push(...page.items.map((user) => user.id));
    cursor = page.nextCursor ?? undefined;
  } while (cursor !== undefined);
  assert(ids.length === 2 && ids.includes(id), `listed ${ids}`);

  await api.usersDeleteUser({ xTenantSchema, id });
  const failure = await api.usersGetUser({ xTenantSchema, id }).catch((error: unknown) => error);
  assert(failure instanceof ResponseError, `the deleted user is ${failure}`);
  const problem = ProblemFromJSON(await failure.response.json());
  assert.deepEqual([problem.status, problem.code], [404, "not-found"]);
}

async function settings(api: TenantApi): Promise<void> {
  const before = await api.tenantGetTenant({ xTenantSchema });
  const settings = { brandColor: "#336699" };
  const after = await api.tenantUpdateTenant({ xTenantSchema, updateTenant: { settings } });
  assert.deepEqual(after.settings, { ...before.settings, ...settings });
}

void main();
