// Opens reports that norma made in headless Chromium and fails on anything that a reader would not want: errors and
// requests.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { launch } from "../../web/tools/browser.mjs";

const program = process.env.NORMA ?? fileURLToPath(new URL("../../build/release/bin/norma", import.meta.url));
const there = existsSync(program);
export const browser = there ? await launch() : null;
export const skip = !there ? `needs ${program}` : browser === null && "needs chromium and playwright-core";
const folder = mkdtempSync(join(tmpdir(), "norma-web-"));
let count = 0;

export async function close() {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}

// What `norma plot` makes of results.
export function plot(results, ending, ...options) {
  const input = join(folder, `results-${++count}.json`), output = join(folder, `plot-${count}.${ending}`);
  writeFileSync(input, typeof results === "string" ? results : JSON.stringify(results));
  execFileSync(program, ["plot", input, "--out", output, ...options]);
  return output;
}
export const plotted = (results, ending, ...options) => readFileSync(plot(results, ending, ...options));

export async function open(results, { hash = "", ...context } = {}) {
  const session = await browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", acceptDownloads: true, ...context });
  const page = await session.newPage();
  const complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) complaints.push(`request: ${request.url()}`); });
  await page.goto(pathToFileURL(plot(results, "html")).href + hash);
  await page.waitForSelector(context.javaScriptEnabled === false ? "footer" : "html[data-ready]");
  return {
    page,
    // Ends the session; nothing may have gone wrong in it.
    async done(expected = /^$/) {
      await session.close();
      assert.deepEqual(complaints.filter((complaint) => !expected.test(complaint)), []);
    },
  };
}

export const openAll = (page) => page.evaluate(() => { for (const one of document.querySelectorAll("details:not(.menu)")) one.open = true; });

export async function downloaded(page, menu, item) {
  await page.locator(`${menu} > summary`).click();
  const [file] = await Promise.all([page.waitForEvent("download"), page.locator(`${menu} li button`, { hasText: item }).first().click()]);
  const chunks = [];
  for await (const chunk of await file.createReadStream()) chunks.push(chunk);
  return { name: file.suggestedFilename(), bytes: Buffer.concat(chunks) };
}
