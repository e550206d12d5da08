// Tests the helper for tests of applications.

import assert from "node:assert/strict";
import { mkdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { can, ProblemError, Rolecall } from "../src/index.js";
import { password, RolecallServer } from "../src/testing.js";
import { hanging } from "./program.js";

describe("the helper for tests of applications", hanging, () => {
  let server: RolecallServer;
  before(async () => { server = await RolecallServer.start({ flags: ["--metrics-listen", "127.0.0.1:0"] }); });
  after(() => server.stop());

  test("tenants of tests are separate", async () => {
    const [one, other] = await Promise.all([server.tenant(), server.tenant()]);
    const user = await one.user({ name: "Grace Hopper", department: "Sales", permissions: ["shop/invoices:approve"], reach: ["Sales"] });
    const { data: session } = await user.client.GET("/auths/session");
    assert.equal(session.principal.name, "Grace Hopper");
    assert.ok(can(session, "shop/invoices:approve", { department: "Sales" }));
    assert.ok(!can(session, "shop/invoices:approve", { department: "Design" }));
    await new Rolecall({ baseUrl: server.url, tenant: one.name }).signIn({ email: user.email, password });
    await assert.rejects(other.operator.GET("/users/{id}", { params: { path: { id: user.id } } }), ProblemError);
    for (const tenant of [one, other]) assert.ok(can((await tenant.owner.client.GET("/auths/session")).data, "users:delete"));
    assert.deepEqual((await (await one.user()).client.GET("/auths/session")).data.permissions, []);
  });

  test("a reset deletes tenants and mails", async () => {
    const tenant = await server.tenant();
    await mkdir(server.mailbox, { recursive: true });
    await writeFile(join(server.mailbox, "mail.eml"), "");
    await server.reset();
    await assert.rejects(tenant.owner.client.GET("/auths/session"), ProblemError);
    await assert.rejects(stat(join(server.mailbox, "mail.eml")));
    await (await server.tenant()).owner.client.GET("/auths/session");
  });

  test("a start that fails says why", async () => {
    await assert.rejects(RolecallServer.start({ program: "no-such-program" }), /ENOENT/);
    await assert.rejects(RolecallServer.start({ flags: ["--public-url", "nonsense"] }), /public-url/);
  });
});
