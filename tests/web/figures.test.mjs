// What the program of the page adds to a figure, and that its files are those of `norma plot`.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { sample } from "../../web/sample/sample.mjs";
import { close, downloaded, open, plotted, skip } from "./harness.mjs";

describe("figures", { skip }, () => {
  const results = sample({ depths: [6], points: 20, seeds: 2 });
  let report, page;
  before(async () => { report = await open(results); page = report.page; });
  after(async () => { try { await report.done(); } finally { await close(); } });
  const menu = "#stability .menu";
  const paths = (svg) => [...svg.matchAll(/ d="([^"]+)"/g)].map((found) => found[1]);
  const words = (svg) => [...svg.matchAll(/<text[^>]*>([^<]*)<\/text>/g)].map((found) => found[1]);

  it("saves the SVG that norma plot draws", async () => {
    const { name, bytes } = await downloaded(page, menu, "SVG");
    const own = plotted(results, "svg", "--figure", "stability").toString();
    assert.equal(name, "norma-study-stability.svg");
    assert.deepEqual(paths(bytes.toString()), paths(own));
    assert.deepEqual(words(bytes.toString()), words(own));
    assert.doesNotMatch(bytes.toString(), /class=|data-s=/);
  });

  it("saves the PDF and the CSV that norma plot writes, byte by byte", async () => {
    assert.ok((await downloaded(page, menu, "PDF")).bytes.equals(plotted(results, "pdf", "--figure", "stability", "--width", "column")));
    assert.ok((await downloaded(page, menu, "CSV")).bytes.equals(plotted(results, "csv", "--figure", "stability")));
  });

  it("saves a PNG of the same size as norma plot", async () => {
    const { bytes } = await downloaded(page, menu, "PNG"), own = plotted(results, "png", "--figure", "stability");
    assert.equal(bytes.subarray(1, 4).toString(), "PNG");
    assert.deepEqual(bytes.subarray(16, 24), own.subarray(16, 24));
  });

  it("says what is pointed at, with its interval, and brings its scheme forward everywhere", async () => {
    await page.locator("#loss .drawing.wide svg").scrollIntoViewIfNeeded();
    const row = results.tuned.find((one) => one.scheme === "admin"), text = `${row.loss.mean.toFixed(3)} [`;
    const spots = await page.evaluate(() => JSON.parse(document.querySelector("#loss .figure-data").textContent).wide);
    const spot = spots.find((one) => one[3].startsWith("Admin: ")), box = await page.locator("#loss .drawing.wide svg").boundingBox(), scale = box.width / 720;
    await page.mouse.move(box.x + spot[0] * scale, box.y + spot[1] * scale);
    assert.ok((await page.locator("#tip").innerText()).includes(text));
    const index = results.schemes.findIndex((one) => one.name === "admin");
    assert.ok((await page.locator(`#curves [data-s="${index}"].on`).count()) > 0);
    assert.equal(await page.locator(`[data-s].on:not([data-s="${index}"])`).count(), 0);
    await page.mouse.move(2, 2);
    assert.equal(await page.locator("[data-s].on").count(), 0);
  });

  it("shows its numbers as a table", async () => {
    await page.locator("#loss .numbers > summary").click();
    await page.locator("#loss .numbers tbody tr").first().waitFor();
    const rows = await page.locator("#loss .numbers tbody tr").count();
    assert.equal(rows, results.tuned.length);
    await page.locator("#loss .numbers > summary").click();
  });

  it("is linked to, also where it is folded away", async () => {
    const other = await open(results, { hash: "#likeness" });
    assert.ok(await other.page.locator("#likeness svg").first().isVisible());
    await other.done();
  });

  it("gives back the data it was made from", async () => {
    const tools = "#tools .menu";
    assert.deepEqual(JSON.parse((await downloaded(page, tools, "results.json")).bytes), JSON.parse(JSON.stringify(results)));
    assert.equal((await downloaded(page, tools, "runs.csv")).bytes.toString().trim().split("\r\n").length, 1 + results.runs.length);
    assert.equal((await downloaded(page, tools, "maps.csv")).bytes.toString().trim().split("\r\n").length, 1 + results.maps.length * 18);
  });

  // A map's low losses stand out from the page, its guessing level fades into it.
  it("makes low losses the marks that stand out, on light paper and on dark", async () => {
    const cells = '#loss .drawing.wide path[fill^="light-dark"]';
    const contrast = () => page.evaluate((found) => {
      const light = (colour) => {
        const [r, g, b] = colour.match(/\d+/g).slice(0, 3).map((part) => (part / 255) ** 2.2);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const paper = light(getComputedStyle(document.body).backgroundColor);
      const key = [...document.querySelectorAll(found)].slice(-9, -1).map((one) => light(getComputedStyle(one).fill));
      return key.map((one) => (Math.max(one, paper) + 0.05) / (Math.min(one, paper) + 0.05));
    }, cells);
    for (const theme of ["light", "dark"]) {
      await page.locator("#tools select").selectOption(theme);
      const key = await contrast();  // from low loss to guessing
      assert.ok(key.every((one, i) => i === 0 || one < key[i - 1]), `${theme}: ${key}`);
      assert.ok(key[0] > 5 && key.at(-1) < 1.5, `${theme}: ${key}`);
    }
    await page.locator("#tools select").selectOption("auto");
    const { bytes } = await downloaded(page, "#loss .menu", "SVG");
    assert.doesNotMatch(bytes.toString(), /light-dark/);
  });

  it("follows the colours that a reader chooses", async () => {
    const back = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await back();
    await page.locator("#tools select").selectOption("dark");
    assert.notEqual(await back(), light);
    await page.locator("#tools select").selectOption("auto");
    assert.equal(await back(), light);
  });
});
