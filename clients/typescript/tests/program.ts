// Starts the real program for tests, on each store.

import { execFile, spawn, type ChildProcess } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { randomBytes } from "node:crypto";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { Rolecall, type RolecallOptions, type Schemas } from "../src/index.js";

const program = process.env["ROLECALL_PROGRAM"];
if (!program) throw new Error("ROLECALL_PROGRAM is not set: run clients/typescript/test");

/** The time in milliseconds after which a wait counts as hanging. ROLECALL_TEST_PATIENCE is a factor of it. */
export const patience = 60_000 * Number(process.env["ROLECALL_TEST_PATIENCE"] || 1);

/** The limit of a test with many steps, against hanging. */
export const hanging = { timeout: 10 * patience };

/** Calls find until it returns a value other than undefined. */
export async function until<T>(find: () => Promise<T | undefined> | T | undefined): Promise<T> {
  for (const end = Date.now() + patience; ; ) {
    const found = await find();
    if (found !== undefined) return found;
    if (Date.now() > end) throw new Error("waited too long");
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/** The root of the repository. Tests run in .build/tests. */
export const repository = new URL("../../../../", import.meta.url);

export const ownerEmail = "owner@example.com";
export const password = "correct horse battery staple";

/** The stores that the tests run on. */
export const stores = process.env["ROLECALL_TEST_POSTGRES"] ? (["sqlite", "postgres"] as const) : (["sqlite"] as const);

/** Runs a program, and returns its output. */
export function run(file: string, words: string[], { input = "", cwd }: { input?: string; cwd?: string } = {}): Promise<string> {
  return new Promise((resolve, reject) => {
    const child = execFile(file, words, { cwd, maxBuffer: 1 << 26 }, (error, stdout, stderr) => {
      if (error) reject(new Error(`${file} ${words.join(" ")}: ${error.message}\n${stdout}${stderr}`));
      else resolve(stdout);
    });
    child.stdin!.on("error", () => undefined).end(input); // the program can end before it reads
  });
}

/** Settings are how the program is started. Without flags, mail is written to the folder mail. */
export interface Settings {
  flags?: string[];
  environment?: NodeJS.ProcessEnv;
}

/** A running program with an own database, which has the tenant acme. */
export class World {
  base = "";
  operatorKey = "";
  log = "";
  #process: ChildProcess | undefined;
  #count = 0;

  private constructor(readonly folder: string, readonly database: string) {}

  /** Starts the program with a new database. The function prepare can write files, and adds flags and variables. */
  static async start(store: "sqlite" | "postgres", prepare: (folder: string) => Promise<Settings> | Settings = () => ({})): Promise<World> {
    const folder = await mkdtemp(join(tmpdir(), "rolecall-client-"));
    const settings = await prepare(folder);
    const database = store === "sqlite" ? join(folder, "rolecall.db") : await ownDatabase(process.env["ROLECALL_TEST_POSTGRES"]!);
    const world = new World(folder, database);
    await world.command("migrate");
    await world.createTenant("acme");
    world.operatorKey = (JSON.parse(await world.command("operator-key", "create", "Tests", "--json")) as { key: string }).key;
    await world.#serve(settings);
    return world;
  }

  async #serve({ flags = ["--mailbox", join(this.folder, "mail")], environment = {} }: Settings): Promise<void> {
    const child = spawn(program!, ["serve", "--listen", "127.0.0.1:0", "--database", this.database, ...flags], {
      env: { ...process.env, ...environment }, stdio: ["ignore", "ignore", "pipe"],
    });
    this.#process = child;
    this.base = await new Promise<string>((resolve, reject) => {
      createInterface(child.stderr).on("line", (line) => {
        this.log += `${line}\n`;
        const found = /"msg":"(?:serving|listening)".*"address":"(127\.0\.0\.1:\d+)"/.exec(line);
        if (found) resolve(`http://${found[1]}`);
      });
      child.on("exit", () => reject(new Error(`the program ended: ${this.log}`)));
    });
  }

  /** The id of the process. */
  get pid(): number {
    return this.#process!.pid!;
  }

  async stop(): Promise<void> {
    const child = this.#process;
    if (child !== undefined && child.exitCode === null) {
      await new Promise((resolve) => {
        child.removeAllListeners("exit").on("exit", resolve);
        child.kill("SIGTERM");
      });
    }
    await rm(this.folder, { recursive: true, force: true });
  }

  /** Runs a command of the program on the database. */
  command(...words: string[]): Promise<string> {
    return run(program!, [...words, "--database", this.database]);
  }

  /** Creates a tenant, whose owner has ownerEmail and password. */
  async createTenant(name: string): Promise<void> {
    await run(program!, ["tenant", "create", name, "--owner-email", ownerEmail, "--owner-name", "Ada Lovelace", "--password-stdin", "--database", this.database], { input: password });
  }

  /** Returns a client without credentials. */
  anonymous(options: Partial<RolecallOptions> = {}): Rolecall {
    return new Rolecall({ baseUrl: this.base, tenant: "acme", ...options });
  }

  /** Returns a client of the owner, with a separate session. */
  async owner(options: Partial<RolecallOptions> = {}): Promise<Rolecall> {
    const owner = this.anonymous(options);
    await owner.signIn({ email: ownerEmail, password, transport: "bearer" });
    return owner;
  }

  /** Returns a number that no other call returns. */
  next(): number {
    return ++this.#count;
  }

  /** Creates an active user with the permissions, and returns the user, the role and a client with a session. */
  async member(owner: Rolecall, permissions: string[], assignment: Schemas["AssignRole"] = {}): Promise<{ user: Schemas["User"]; role: Schemas["Role"]; email: string; client: Rolecall }> {
    const email = `member-${this.next()}@example.com`;
    const { data: user } = await owner.POST("/users", { body: { email, name: "Grace Hopper" } });
    const { data: role } = await owner.POST("/roles", { body: { name: `Role ${this.next()}`, permissions } });
    await owner.PUT("/users/{id}/roles/{roleId}", { params: { path: { id: user.id, roleId: role.id } }, body: assignment });
    await run(program!, ["user", "set-password", "--tenant", "acme", "--email", email, "--password-stdin", "--database", this.database], { input: password });
    const client = this.anonymous();
    await client.signIn({ email, password, transport: "bearer" });
    return { user, role, email, client };
  }

  /** Creates a service account with the permissions, and returns its id and an API token. */
  async serviceAccount(owner: Rolecall, ...permissions: string[]): Promise<{ id: string; token: string; tokenId: string }> {
    const { data: account } = await owner.POST("/service-accounts", { body: { name: `Account ${this.next()}` } });
    const { data: role } = await owner.POST("/roles", { body: { name: `Role ${this.next()}`, permissions } });
    await owner.PUT("/service-accounts/{id}/roles/{roleId}", { params: { path: { id: account.id, roleId: role.id } } });
    const { data } = await owner.POST("/service-accounts/{id}/tokens", { params: { path: { id: account.id } }, body: { name: "Token", permissions, expiresAt: inAnHour() } });
    return { id: account.id, token: data.token!, tokenId: data.id };
  }
}

export function inAnHour(): string {
  return new Date(Date.now() + 3_600_000).toISOString();
}

/** Creates a PostgreSQL database and a role that owns it, and returns the URL for this role. */
async function ownDatabase(server: string): Promise<string> {
  const name = `client_${randomBytes(6).toString("hex")}`;
  await run("psql", [server, "-q", "-v", "ON_ERROR_STOP=1", "-c", `create role ${name} login`, "-c", `create database ${name} owner ${name}`]);
  return server.replace(/^postgres(?:ql)?:\/\/(?:[^@/]*@)?([^/?]*)(?:\/[^?]*)?/, `postgres://${name}@$1/${name}`);
}

/**
 * A TCP proxy in front of the program. cut is called when a response arrives. If it returns true, the proxy
 * breaks the connection instead of passing the response on.
 */
export class Proxy {
  readonly #server = createServer((socket) => this.#accept(socket));
  readonly #sockets = new Set<Socket>();
  /** Whether new connections are refused, and existing ones are cut. */
  #isDown = false;

  private constructor(private readonly target: string, private readonly cut: () => boolean) {}

  static async start(target: string, cut: () => boolean = () => false): Promise<Proxy> {
    const proxy = new Proxy(target, cut);
    await new Promise<void>((resolve) => proxy.#server.listen(0, "127.0.0.1", resolve));
    return proxy;
  }

  get base(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Cuts all connections, and new ones at once, until it is called with false. */
  set isDown(isDown: boolean) {
    this.#isDown = isDown;
    if (isDown) for (const socket of this.#sockets) socket.destroy();
  }

  async stop(): Promise<void> {
    this.isDown = true;
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #accept(near: Socket): void {
    const { hostname, port } = new URL(this.target);
    const far = connect(Number(port), hostname);
    for (const [socket, other] of [[near, far], [far, near]] as const) {
      this.#sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => {
        this.#sockets.delete(socket);
        other.destroy();
      });
    }
    if (this.#isDown) near.destroy();
    near.on("data", (bytes) => far.write(bytes));
    far.on("data", (bytes) => (this.cut() ? near.destroy() : near.write(bytes)));
  }
}
