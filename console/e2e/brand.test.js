import { strict as assert } from "node:assert";
import { call, checkAccess, checkShifts, checkWidth, newContext, scenario, signIn, world } from "./harness.js";

/**
 * draw returns an image of the size in the format, such as image/png. With noise, each pixel has
 * another color, so the image hardly compresses.
 */
async function draw(page, width, height, type, noise = false) {
  const bytes = await page.evaluate(async ([width, height, type, noise]) => {
    const canvas = new OffscreenCanvas(width, height);
    const context = canvas.getContext("2d");
    context.fillStyle = "#0b3d2e";
    context.fillRect(0, 0, width, height);
    if (noise) {
      const data = context.getImageData(0, 0, width, height);
      for (let i = 0; i < data.data.length; i += 4) crypto.getRandomValues(data.data.subarray(i, i + 3));
      context.putImageData(data, 0, 0);
    }
    return [...new Uint8Array(await (await canvas.convertToBlob({ type })).arrayBuffer())];
  }, [width, height, type, noise]);
  return Buffer.from(bytes);
}

const file = (buffer, name = "logo.png", mimeType = "image/png") => ({ name, mimeType, buffer });

/** upload opens the form for the logo, chooses the file and sends the form. */
async function upload(page, chosen) {
  await page.goto("/console/demo/settings/logo");
  await page.getByLabel("Image file").setInputFiles(chosen);
  await page.getByRole("button", { name: "Save" }).click();
}

/** remove removes the logo, if the tenant has one, for the next scenario. */
const remove = (page) => call(page, "DELETE", "/tenant/logo");

scenario("an administrator sets, replaces and removes the logo of the sign-in page", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/settings");
  await page.getByRole("link", { name: "Upload" }).click();
  await page.getByRole("heading", { name: "Set the logo" }).waitFor();
  await checkAccess(page);
  for (const wrong of [
    file(Buffer.from('<svg xmlns="http://www.w3.org/2000/svg" width="64" height="64"/>')),
    file(Buffer.from("<!DOCTYPE html><title>Not an image</title>")),
    file((await draw(page, 320, 100, "image/png")).subarray(0, 60)),
  ]) {
    await upload(page, wrong);
    await page.getByText("Must be a complete image in the format PNG, JPEG or WebP.").waitFor();
    await checkAccess(page);
  }
  await upload(page, file(Buffer.alloc(3 << 20)));
  await page.getByText("Must have at most 32 KiB.").waitFor();
  await upload(page, file(await draw(page, 8, 8, "image/png")));
  await page.getByText("Must have a width and a height from 16 to 1,024 pixels.").waitFor();

  await upload(page, file(await draw(page, 320, 100, "image/png")));
  await page.getByText("Logo saved.").waitFor();
  const logo = page.getByRole("img", { name: "Demo" });
  await logo.waitFor();
  await page.getByText("PNG, 320 × 100 pixels, set").waitFor();
  await checkAccess(page);
  for (const [type, format] of [["image/webp", "WebP"], ["image/jpeg", "JPEG"]]) {
    await upload(page, file(await draw(page, 500, 100, type)));
    await page.getByText(`${format}, 500 × 100 pixels, set`).waitFor();
  }
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    for (const path of ["sign-in", "invitation#x", "password-reset", "email-change#x"]) {
      await page.goto("about:blank");
      await page.goto(`/console/demo/${path}`);
      await logo.waitFor();
      const shown = await logo.evaluate((e) => ({ complete: e.complete, natural: e.naturalWidth, width: e.width, height: e.height, plate: getComputedStyle(e.parentElement).backgroundColor }));
      assert.deepEqual(shown, { complete: true, natural: 500, width: 256, height: 51, plate: "rgb(255, 255, 255)" }, path);
      for (const width of [320, 1024]) {
        await page.setViewportSize({ width, height: 844 });
        await checkWidth(page);
        await checkAccess(page);
      }
    }
  }
  await page.emulateMedia({ colorScheme: "light" });
  await page.goto("/console/demo/settings");
  await page.getByRole("link", { name: "Remove" }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("Remove the logo?").waitFor();
  await checkAccess(page);
  await dialog.getByRole("button", { name: "Remove" }).click();
  await page.getByText("Logo removed.").waitFor();
  await page.goto("/console/demo/sign-in");
  await page.getByText("Rolecall", { exact: true }).waitFor();
  assert.equal(await logo.count(), 0);
});

scenario("a logo can be set without scripts", async (page) => {
  const image = await draw(page, 64, 64, "image/png");
  await signIn(page);
  const context = await newContext({ storageState: await page.context().storageState(), javaScriptEnabled: false });
  try {
    const plain = await context.newPage();
    await upload(plain, file(image));
    await plain.getByText("PNG, 64 × 64 pixels, set").waitFor();
    await plain.goto("/console/demo/settings/edit");
    assert.equal(await plain.getByLabel("Color", { exact: true }).isVisible(), true);
    assert.equal(await plain.getByLabel("Pick a color").isVisible(), false);
    await plain.goto("/console/demo/settings/logo/remove");
    await plain.getByRole("button", { name: "Remove" }).click();
    await plain.getByText("No logo.").waitFor();
  } finally {
    await context.close();
    await remove(page);
  }
});

scenario("the sign-in page with the largest logo loads less than 100 kB without layout shifts", async (page) => {
  await signIn(page);
  const image = await draw(page, 96, 97, "image/png", true);
  assert.ok(image.length > 30_000 && image.length <= 32 << 10, `${image.length} bytes`);
  await upload(page, file(image));
  await page.getByText("Logo saved.").waitFor();
  const context = await newContext(); // nothing is cached
  try {
    const cold = await context.newPage();
    const protocol = await context.newCDPSession(cold);
    await protocol.send("Network.enable");
    let bytes = 0;
    protocol.on("Network.loadingFinished", (e) => (bytes += e.encodedDataLength));
    await cold.goto("/console/demo/sign-in", { waitUntil: "networkidle" });
    assert.ok(bytes > image.length && bytes < 100_000, `${bytes} bytes`);
    await checkShifts(cold);
  } finally {
    await context.close();
    await remove(page);
  }
});

scenario("the form of the settings shows a sample of the color before it is saved", async (page) => {
  await signIn(page);
  await page.goto("/console/demo/settings/edit");
  const field = page.getByLabel("Color", { exact: true });
  const picker = page.getByLabel("Pick a color");
  const colors = () => page.locator(".color-sample").evaluate((e) => {
    const button = getComputedStyle(e.querySelector(".button"));
    return [getComputedStyle(e).borderTopColor, button.backgroundColor, button.color];
  });
  const standard = await colors();
  const texts = new Set();
  for (const color of ["#ffcc00", "#0B3D2E", "#777777", "#767676", "#757575", "#747474", "#0000ff", "#ff0000", "#00ff00"]) {
    await field.fill(color);
    assert.equal(await picker.inputValue(), color.toLowerCase());
    const style = await (await page.request.get(`/console/-/brand/${color.slice(1).toLowerCase()}.css`)).text();
    const text = style.match(/brand-sample .* color: (#\w+)/)[1]; // on the sign-in page
    const rgb = (hex) => `rgb(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(", ")})`;
    assert.deepEqual(await colors(), [rgb(color), rgb(color), rgb(text)], color);
    texts.add(text);
    await checkAccess(page);
  }
  assert.deepEqual([...texts].sort(), ["#000000", "#ffffff"]);
  await field.fill("#ffc");
  assert.deepEqual(await colors(), standard);
  await picker.fill("#3366ff");
  assert.equal(await field.inputValue(), "#3366ff");
  assert.deepEqual((await colors()).slice(0, 2), ["rgb(51, 102, 255)", "rgb(51, 102, 255)"]);
  await page.getByRole("button", { name: "Save" }).click();
  await page.locator(".brand-sample", { hasText: "#3366ff" }).waitFor();
  await page.goto("/console/demo/settings/edit");
  assert.deepEqual((await colors()).slice(0, 2), ["rgb(51, 102, 255)", "rgb(51, 102, 255)"]);
  await call(page, "PATCH", "/tenant", { settings: { brandColor: null } });
});
