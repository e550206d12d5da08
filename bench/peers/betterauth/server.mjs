// A better-auth service on PostgreSQL, with one process for each core.
// "node server.mjs migrate" creates its tables and an administrator.
import cluster from "node:cluster";
import http from "node:http";
import os from "node:os";
import { hash, verify } from "@node-rs/argon2";
import { betterAuth } from "better-auth";
import { getMigrations } from "better-auth/db/migration";
import { toNodeHandler } from "better-auth/node";
import { admin } from "better-auth/plugins";
import pg from "pg";

const { BASE_URL, SECRET, DATABASE_URL, ADMIN_EMAIL, ADMIN_PASSWORD } = process.env;
const cores = os.availableParallelism();
const argon2id = { memoryCost: 19456, timeCost: 2, parallelism: 1 };
const options = {
  baseURL: BASE_URL,
  secret: SECRET,
  database: new pg.Pool({ connectionString: DATABASE_URL, max: Math.ceil(32 / cores) }),
  emailAndPassword: {
    enabled: true,
    password: {
      hash: (password) => hash(password, argon2id),
      verify: ({ hash: stored, password }) => verify(stored, password),
    },
  },
  plugins: [admin()],
  rateLimit: { enabled: false },
  telemetry: { enabled: false },
};

if (process.argv[2] === "migrate") {
  const { runMigrations } = await getMigrations(options);
  await runMigrations();
  await betterAuth(options).api.createUser({
    body: { email: ADMIN_EMAIL, password: ADMIN_PASSWORD, name: "Administrator", role: "admin" },
  });
  await options.database.end();
} else if (cluster.isPrimary) {
  for (let i = 0; i < cores; i++) cluster.fork();
  process.on("SIGTERM", () => {
    for (const worker of Object.values(cluster.workers)) worker.process.kill();
    process.exit(0);
  });
} else {
  const { hostname, port } = new URL(BASE_URL);
  http.createServer(toNodeHandler(betterAuth(options))).listen(Number(port), hostname);
}
