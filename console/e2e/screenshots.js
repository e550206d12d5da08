// Takes the pictures that the README shows. Run it with make screenshots.

import { mkdir, writeFile } from "node:fs/promises";
import { call, scenario, signIn } from "./harness.js";

const folder = new URL("../../docs/pictures/", import.meta.url);
const width = 1440;

/** The pictures. Each shows the page at path, with the id of the first item of list. */
const pictures = [
  { name: "user", colorScheme: "light", height: 900, path: "/users/{}", list: "/users?q=radia+liskov" },
  { name: "role", colorScheme: "dark", height: 900, path: "/roles/{}/edit", list: "/roles?q=department+lead" },
];

for (const { name, colorScheme, height, path, list } of pictures) {
  scenario(`takes the screenshot of a ${name}`, async (page) => {
    await signIn(page);
    const { body } = await call(page, "GET", list);
    await page.goto(`/console/demo${path.replace("{}", body.items[0].id)}`, { waitUntil: "networkidle" });
    await page.evaluate(() => document.activeElement.blur());
    const protocol = await page.context().newCDPSession(page);
    const { data } = await protocol.send("Page.captureScreenshot", { format: "webp", quality: 85 });
    await mkdir(folder, { recursive: true });
    await writeFile(new URL(`${name}.webp`, folder), Buffer.from(data, "base64"));
  }, { colorScheme, viewport: { width, height } });
}
