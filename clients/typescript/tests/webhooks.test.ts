import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { DeliveryError, WebhookVerifier } from "../src/index.js";
import { hanging, run, World } from "./program.js";

const now = Date.parse("2030-01-31T12:00:00Z");
const [secret, other] = [randomBytes(32), randomBytes(32)].map((key) => `whsec_${key.toString("base64")}`) as [string, string];
const body = JSON.stringify({ id: "1", type: "user.created", data: { members: ["Zoë"] } });

function sign(key: string, { id = "msg_1", seconds = now / 1000, content = body } = {}): string {
  const mac = createHmac("sha256", Buffer.from(key.slice(6), "base64")).update(`${id}.${seconds}.${content}`);
  return `v1,${mac.digest("base64")}`;
}

function headers(signature: string, { id = "msg_1", seconds = now / 1000 } = {}) {
  return { "webhook-id": id, "webhook-timestamp": String(seconds), "webhook-signature": signature };
}

const verifier = new WebhookVerifier(secret, () => now);

test("the example of Standard Webhooks is valid", async () => {
  const example = new WebhookVerifier("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", () => 1_614_265_330_000);
  const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
  await example.verify(headers(signature, { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", seconds: 1_614_265_330 }), '{"test": 2432232314}');
});

test("a valid delivery returns its item, from text, bytes and all kinds of headers", async () => {
  const valid = headers(sign(secret));
  for (const content of [body, new TextEncoder().encode(body), new Uint8Array(Buffer.from(body)).buffer]) {
    assert.deepEqual(await verifier.verify(valid, content), JSON.parse(body));
    assert.deepEqual(await verifier.verify(new Headers(valid), content), JSON.parse(body));
  }
});

test("one of several signatures and secrets must match", async () => {
  await verifier.verify(headers(`${sign(other)} v1a,abc v1,% ${sign(secret)}`), body);
  await new WebhookVerifier([other, secret], () => now).verify(headers(sign(secret)), body);
  await assert.rejects(verifier.verify(headers(sign(other)), body), DeliveryError);
});

test("the time must be within five minutes", async () => {
  for (const seconds of [now / 1000 - 300, now / 1000 + 300]) await verifier.verify(headers(sign(secret, { seconds }), { seconds }), body);
  for (const seconds of [now / 1000 - 301, now / 1000 + 301, 0]) {
    await assert.rejects(verifier.verify(headers(sign(secret, { seconds }), { seconds }), body), DeliveryError);
  }
});

test("changed deliveries are invalid", async () => {
  const signature = sign(secret);
  await assert.rejects(verifier.verify(headers(signature), body.replace("1", "2")), DeliveryError);
  await assert.rejects(verifier.verify(headers(signature, { id: "msg_2" }), body), DeliveryError);
  await assert.rejects(verifier.verify(headers(signature, { seconds: now / 1000 + 1 }), body), DeliveryError);
  await assert.rejects(verifier.verify(headers(signature.replace("v1,", "v2,")), body), DeliveryError);
  for (const signature of ["", "v1,", "v1", sign(secret).slice(0, -4)]) await assert.rejects(verifier.verify(headers(signature), body), DeliveryError);
  for (const lacking of ["webhook-id", "webhook-timestamp", "webhook-signature"]) {
    await assert.rejects(verifier.verify({ ...headers(signature), [lacking]: undefined }, body), DeliveryError);
  }
  await assert.rejects(verifier.verify({ ...headers(signature), "webhook-timestamp": "1e9" }, body), DeliveryError);
});

test("a malformed secret is refused, and not in the error", () => {
  for (const secret of ["", "whsec_", "whsec_§secret§", []]) {
    assert.throws(() => new WebhookVerifier(secret), (error: Error) => error instanceof TypeError && !error.message.includes("§"));
  }
});

// Mail requests are signed as deliveries of webhooks are. Unlike these, they can be sent to this machine.
test("a request that the program has signed is valid", hanging, async () => {
  let received: (request: { headers: Record<string, string | string[] | undefined>; body: Buffer }) => void;
  const delivery = new Promise<Parameters<typeof received>[0]>((resolve) => (received = resolve));
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    response.writeHead(204).end();
    received({ headers: request.headers, body: Buffer.concat(chunks) });
  });
  const world = await World.start("sqlite", async (folder) => {
    const file = (name: string) => join(folder, name);
    const certificate = ["-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"];
    await run("openssl", ["req", ...certificate, "-keyout", file("key.pem"), "-out", file("cert.pem")]);
    server.setSecureContext({ key: await readFile(file("key.pem")), cert: await readFile(file("cert.pem")) });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    await writeFile(file("secret"), secret, { mode: 0o600 });
    const hook = ["--mail-webhook", `https://127.0.0.1:${(server.address() as AddressInfo).port}/`, "--mail-webhook-key-file", file("secret"), "--mail-webhook-networks", "127.0.0.0/8"];
    return { flags: ["--public-url", "http://127.0.0.1", ...hook], environment: { SSL_CERT_FILE: file("cert.pem") } };
  });
  try {
    const owner = await world.owner();
    await owner.POST("/users", { body: { email: "zoe@example.com", name: "Zoë Zed", invite: true } });
    const { headers, body } = await delivery;
    const item: unknown = await new WebhookVerifier(secret).verify(headers, body);
    assert.equal((item as { type: string }).type, "mail.invitation");
    await assert.rejects(new WebhookVerifier(other).verify(headers, body), DeliveryError);
    await assert.rejects(new WebhookVerifier(secret).verify(headers, body.subarray(1)), DeliveryError);
  } finally {
    await world.stop();
    server.close().closeAllConnections();
  }
});
