/**
 * Starts Rolecall for the tests of an application, in Node.js. Each test gets a new tenant, so tests can run at
 * the same time and in any order.
 *
 *     const rolecall = await RolecallServer.start();
 *     const tenant = await rolecall.tenant();
 *     const clerk = await tenant.user({ permissions: ["shop/invoices:approve"], reach: ["Sales"] });
 *
 * @packageDocumentation
 */
import { execFile, spawn, type ChildProcess } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { promisify } from "node:util";
import { Rolecall, type Schemas } from "./client.js";

/** The password of all users of the tests. */
export const password = "a long password of the tests";

/** With a loopback address, cookies have no attribute Secure, so tests over plain HTTP receive them. */
const publicUrl = "http://localhost";

/** ServerOptions are the options of a server. */
export interface ServerOptions {
  /** The file of the program. Default: the variable ROLECALL_PROGRAM, or rolecall in the PATH. */
  program?: string;
  /** Further flags of rolecall serve. */
  flags?: string[];
}

/** TestUser is an active user with a session. Its email address and the password sign in. */
export interface TestUser {
  id: string;
  email: string;
  /** Has a session of the user: client.token is the token. */
  client: Rolecall;
}

/** NewTestUser describes a user to create. */
export interface NewTestUser {
  name?: string;
  department?: string;
  /** The permissions of a new role that the user gets. */
  permissions?: string[];
  /** The departments in which the user has the role. Default: the whole tenant. */
  reach?: string[];
}

/** RolecallServer is a running Rolecall with an own SQLite database. */
export class RolecallServer {
  /** For example http://127.0.0.1:41234. */
  readonly url: string;
  /** Has the scope all. */
  readonly operatorKey: string;
  /** The folder with a file for each mail. */
  readonly mailbox: string;
  readonly #folder: string;
  readonly #process: ChildProcess;
  #tenants: string[] = [];

  private constructor(folder: string, process: ChildProcess, url: string, operatorKey: string) {
    this.#folder = folder;
    this.#process = process;
    this.url = url;
    this.operatorKey = operatorKey;
    this.mailbox = join(folder, "mail");
  }

  /** Starts the program with an empty database, in a temporary folder. It listens on a free port of this machine. */
  static async start({ program = process.env["ROLECALL_PROGRAM"] || "rolecall", flags = [] }: ServerOptions = {}): Promise<RolecallServer> {
    const folder = await mkdtemp(join(tmpdir(), "rolecall-test-"));
    try {
      const database = ["--database", join(folder, "rolecall.db")];
      const run = async (...words: string[]) => (await promisify(execFile)(program, [...words, ...database], { cwd: folder })).stdout;
      await run("migrate");
      const { key } = JSON.parse(await run("operator-key", "create", "Tests", "--json")) as { key: string };
      const child = spawn(program, ["serve", "--listen", "127.0.0.1:0", "--public-url", publicUrl, "--mailbox", join(folder, "mail"), ...database, ...flags], { cwd: folder, stdio: ["ignore", "ignore", "pipe"] });
      return new RolecallServer(folder, child, await addressOf(child), key);
    } catch (error) {
      await rm(folder, { recursive: true, force: true });
      throw error;
    }
  }

  /** Creates a tenant with an owner. */
  async tenant(): Promise<TestTenant> {
    const name = random("test");
    const email = `${random("owner")}@example.com`;
    const { data } = await this.#operator().POST("/operator/tenants", { body: { name, owner: { email, name: "Test Owner" }, delivery: "return" } });
    this.#tenants.push(name);
    const client = await accept(this.url, name, data.invitation.token!);
    return new TestTenant(name, { id: data.owner.id, email, client }, this.#operator(name), this.url);
  }

  /**
   * Deletes the tenants and the mails of all tests so far. New tenants do not need it. Call it if a process runs
   * tests for a long time, or before a test that reads the changes of all tenants.
   */
  async reset(): Promise<void> {
    const operator = this.#operator();
    const names = this.#tenants;
    this.#tenants = [];
    for (const name of names) {
      const { response } = await operator.GET("/operator/tenants/{name}", { params: { path: { name } } });
      await operator.DELETE("/operator/tenants/{name}", { params: { path: { name }, header: { "if-match": response.headers.get("etag")! } } });
    }
    for (const mail of await readdir(this.mailbox).catch(() => [])) await rm(join(this.mailbox, mail));
  }

  /** Stops the program, and removes its data. */
  async stop(): Promise<void> {
    if (this.#process.exitCode === null && this.#process.signalCode === null) {
      await new Promise((resolve) => {
        this.#process.once("exit", resolve);
        this.#process.kill("SIGTERM");
      });
    }
    await rm(this.#folder, { recursive: true, force: true });
  }

  #operator(tenant?: string): Rolecall {
    return new Rolecall({ baseUrl: this.url, token: this.operatorKey, ...(tenant === undefined ? {} : { tenant }) });
  }
}

/** TestTenant is a tenant for one test. */
export class TestTenant {
  constructor(
    readonly name: string,
    readonly owner: TestUser,
    /** Acts as an owner, without step-up. */
    readonly operator: Rolecall,
    private readonly url: string,
  ) {}

  /** Creates an active user with a session. */
  async user({ name = "Test User", department, permissions = [], reach }: NewTestUser = {}): Promise<TestUser> {
    const email = `${random("user")}@example.com`;
    const { data: user } = await this.operator.POST("/users", { body: { email, name, ...(department === undefined ? {} : { department }) } });
    if (permissions.length > 0) {
      const { data: role } = await this.operator.POST("/roles", { body: { name: random("Role"), permissions } });
      const body: Schemas["AssignRole"] = reach === undefined ? {} : { reach: { departments: reach } };
      await this.operator.PUT("/users/{id}/roles/{roleId}", { params: { path: { id: user.id, roleId: role.id } }, body });
    }
    const { data: invitation } = await this.operator.POST("/users/{id}/invitations", { params: { path: { id: user.id } }, body: { delivery: "return" } });
    return { id: user.id, email, client: await accept(this.url, this.name, invitation.token!) };
  }
}

/** Sets the password of an invited user, and returns a client with the session of the user. */
async function accept(baseUrl: string, tenant: string, token: string): Promise<Rolecall> {
  const client = new Rolecall({ baseUrl, tenant });
  await client.POST("/auths/invitations/accept", { body: { token, password, transport: "bearer" } });
  return client;
}

/** Waits until the program serves, and returns its address. */
function addressOf(child: ChildProcess): Promise<string> {
  return new Promise((resolve, reject) => {
    let log = "";
    createInterface(child.stderr!).on("line", (line) => {
      log += `${line}\n`;
      const address = /"msg":"serving".*"address":"([^"]+)"/.exec(line)?.[1];
      if (address !== undefined) resolve(`http://${address}`);
    });
    child.on("error", reject).on("exit", () => reject(new Error(`rolecall serve ended:\n${log}`)));
  });
}

/** Returns the prefix with a random part. */
function random(prefix: string): string {
  return `${prefix}-${randomBytes(8).toString("hex")}`;
}
