import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { can, covers } from "../src/index.js";
import { repository } from "./program.js";

test("can agrees with every row of the published table", async () => {
  const text = await readFile(new URL("docs/permissions.md", repository), "utf8");
  const rows = [...text.matchAll(/^\| `([^`]+)` \| `([^`]+)` \| (yes|no) \|$/gm)];
  assert.ok(rows.length >= 46, `the table has ${rows.length} rows`);
  for (const [row, held = "", required = "", answer] of rows) {
    const expected = answer === "yes";
    assert.equal(covers(held, required), expected, row);
    assert.equal(can({ permissions: [held], scopedPermissions: [] }, required), expected, row);
    const scoped = { permissions: [], scopedPermissions: [{ reach: { departments: ["Sales", "Design"] }, permissions: ["shop/z:z", held] }] };
    assert.equal(can(scoped, required, { department: "Design" }), expected && required.includes("/"), row);
    assert.equal(can(scoped, required, { department: "sales" }), false, row);
    assert.equal(can(scoped, required), false, row);
  }
});

test("can returns false for malformed values", () => {
  const all = { permissions: ["*:*", "*/*:*"], scopedPermissions: [] };
  for (const permission of ["", "users", "users:", ":read", "Users:read", "a/b/c:d", "a:b\n", "shop/:read", `a:${"b".repeat(65)}`, "users.email.x:read"]) {
    assert.equal(can(all, permission), false, permission);
    assert.equal(can({ permissions: [permission], scopedPermissions: [] }, "users:read"), false, permission);
  }
  assert.equal(can({} as typeof all, "users:read"), false);
  assert.equal(can(null as unknown as typeof all, "users:read"), false);
  const nameless = { permissions: [], scopedPermissions: [{ reach: { departments: [""] }, permissions: ["shop/*:*"] }] };
  assert.equal(can(nameless, "shop/a:b", { department: "" }), false);
});
