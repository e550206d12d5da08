// Mail that waits in files until it is sent.

import { mkdirSync } from "node:fs";
import { open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

/** A mail that Rolecall passes to the application. Notices have neither link nor token. */
interface Mail {
  data: { kind: string; to: string; name: string; tenant: { displayName: string }; link?: string; expiresAt: string };
}

const pauseAfterFailure = 5_000;

/** Outbox stores mails in a folder, and sends them one after the other. After a crash, it goes on. */
export class Outbox {
  readonly #waiting: string;
  readonly #sent: string;
  #wake = () => {};

  constructor(folder: string) {
    [this.#waiting, this.#sent] = [join(folder, "waiting"), join(folder, "sent")];
    for (const part of [this.#waiting, this.#sent]) mkdirSync(part, { recursive: true });
  }

  /** Stores a mail. Rolecall can send it twice, with the same id. */
  async store(id: string, body: Buffer): Promise<void> {
    if (!/^[\w-]{1,100}$/.test(id)) throw new Error("the id of the mail is not a file name");
    if (!(await readdir(this.#sent)).includes(`${id}.txt`)) await write(this.#waiting, `${id}.json`, body);
    this.#wake();
  }

  /** Sends mails until the process ends. */
  async run(): Promise<never> {
    for (;;) {
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      try {
        const names = (await readdir(this.#waiting)).filter((name) => name.endsWith(".json"));
        for (const name of names) await this.#send(name);
        if (names.length === 0) await woken;
      } catch (error) {
        console.error(error);
        await new Promise((resolve) => setTimeout(resolve, pauseAfterFailure));
      }
    }
  }

  /**
   * Sends a mail in the words of the application. This example writes it to a file. With a mail provider, pass the id
   * as the Message-ID: a crash before the last line sends the mail again.
   */
  async #send(name: string): Promise<void> {
    const { data } = JSON.parse(await readFile(join(this.#waiting, name), "utf8")) as Mail;
    const texts: Record<string, string> = {
      invitation: `Welcome to the shop of ${data.tenant.displayName}! Choose a password: ${data.link}`,
      "password-reset": `Choose a new password for the shop: ${data.link}`,
      "email-change": `Confirm your new address: ${data.link}`,
    };
    const text = `To: ${data.to}\n\nDear ${data.name},\n\n${texts[data.kind] ?? `your account has changed: ${data.kind}.`}\n`;
    await write(this.#sent, name.replace(/json$/, "txt"), text);
    await rm(join(this.#waiting, name));
  }
}

/** Writes a file that a crash leaves either complete or absent. */
async function write(folder: string, name: string, content: Buffer | string): Promise<void> {
  const partial = join(folder, `${name}.partial`);
  const file = await open(partial, "w");
  try {
    await file.writeFile(content);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(partial, join(folder, name));
  const directory = await open(folder);
  try {
    await directory.sync(); // the new name
  } finally {
    await directory.close();
  }
}
