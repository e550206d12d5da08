import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/** listen returns a server on the port, or undefined if the port is in use. */
async function listen(port) {
  const server = createServer().listen(port, "127.0.0.1");
  try {
    await once(server, "listening");
  } catch (error) {
    if (error.code === "EADDRINUSE") return undefined;
    throw error;
  }
  return server;
}

let next = 0, left = 0;

/**
 * freePort returns an unused port below the range of outgoing connections. Otherwise, an outgoing connection
 * could take the port before a server listens on it. The ports are in blocks of 100. The process that listens on the
 * first port of a block gives the others to its servers, as internal/process/ports.go does.
 */
export async function freePort() {
  for (;;) {
    if (left === 0) {
      const first = 10_000 + 100 * randomInt(200);
      const server = await listen(first);
      if (server === undefined) continue;
      server.unref();
      [next, left] = [first + 1, 99];
    }
    const port = next++;
    left--;
    const server = await listen(port);
    if (server === undefined) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}
