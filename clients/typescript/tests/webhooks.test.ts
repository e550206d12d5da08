import assert from "node:assert/strict";
import { createHmac, randomBytes } from "node:crypto";
import { test } from "node:test";
import { DeliveryError, WebhookVerifier } from "../src/index.js";

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
