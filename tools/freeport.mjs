import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:net";

/**
 * freePort returns an unused port below the range of outgoing connections. Otherwise, an outgoing connection
 * could take the port before a server listens on it.
 */
export async function freePort() {
  for (;;) {
    const server = createServer().listen(randomInt(10_000, 30_000), "127.0.0.1");
    try {
      await once(server, "listening");
    } catch (error) {
      if (error.code === "EADDRINUSE") continue;
      throw error;
    }
    const { port } = server.address();
    server.close();
    await once(server, "close");
    return port;
  }
}
