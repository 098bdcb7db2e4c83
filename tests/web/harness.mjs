// Opens reports in headless Chromium and fails on anything that a reader would not want: errors and requests.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { launch } from "../../web/tools/browser.mjs";
import { makeReport } from "../../web/tools/make_report.mjs";

export const browser = await launch();
const folder = mkdtempSync(join(tmpdir(), "norma-web-"));
let count = 0;

export async function close() {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
}

export async function open(results, { hash = "", ready = "true", ...context } = {}) {
  const session = await browser.newContext({ viewport: { width: 1320, height: 900 }, reducedMotion: "reduce", acceptDownloads: true, ...context });
  const page = await session.newPage();
  const complaints = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("request", (request) => { if (!/^(file|data|blob):/.test(request.url())) complaints.push(`request: ${request.url()}`); });
  const show = async (given) => {
    const file = join(folder, `report-${++count}.html`);
    writeFileSync(file, makeReport(given));
    await page.goto(pathToFileURL(file).href + hash);
    await page.waitForSelector("html[data-ready]");
    assert.equal(await page.evaluate(() => document.documentElement.dataset.ready), ready);
  };
  await show(results);
  return {
    page, complaints,
    show,  // another report in the same tab, which is quicker
    // Ends the session; nothing may have gone wrong in it.
    async done(expected = /^$/) {
      await session.close();
      assert.deepEqual(complaints.filter((complaint) => !expected.test(complaint)), []);
    },
  };
}

// The exact values behind the cells of a table, row by row: numbers where a cell has one, its text elsewhere.
export const tableValues = (page, selector) => page.locator(selector).evaluate((table) => [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => {
  const data = cell.querySelector("data");
  return data ? Number(data.value) : cell.textContent;
})));

export const numberOf = (value) => (typeof value === "number" ? value : value === "inf" ? Infinity : value === "-inf" ? -Infinity : NaN);
export const tiny = () => ({ norma: "0.1.0", kind: "study", created: "2026-01-01T00:00:00Z" });
