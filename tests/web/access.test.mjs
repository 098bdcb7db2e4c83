// What readers need who do not see the page, or not its colours.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, describe, it } from "node:test";
import { sample } from "../../web/sample/sample.mjs";
import { close, open, openAll, skip } from "./harness.mjs";

const axe = readFileSync(new URL("../../web/node_modules/axe-core/axe.min.js", import.meta.url), "utf8");

describe("access", { skip }, () => {
  after(close);
  const results = sample({ depths: [4], points: 8, seeds: 2, schemes: 3 });

  for (const [name, context] of Object.entries({ light: {}, dark: { colorScheme: "dark" }, phone: { viewport: { width: 390, height: 844 } } })) {
    it(`axe-core has no serious finding: ${name}`, async () => {
      const { page, done } = await open(results, { bypassCSP: true, ...context });
      await openAll(page);
      await page.evaluate(axe);
      // The marks inside a drawing are not for axe; that each drawing has a name is asked below.
      const found = await page.evaluate(() => window.axe.run({ include: [["html"]], exclude: [[".drawing svg"]] }, { resultTypes: ["violations"] }));
      assert.deepEqual(await page.locator("svg:not([aria-hidden])").evaluateAll((all) => all.filter((one) => !one.getAttribute("aria-label")).length), 0);
      const serious = found.violations.filter((one) => ["serious", "critical"].includes(one.impact));
      assert.deepEqual(serious.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.html.slice(0, 160)).join(" | ")}`), []);
      await done();
    });
  }

  it("has one title, headings without gaps, landmarks and unique ids", async () => {
    const { page, done } = await open(results);
    const found = await page.evaluate(() => ({
      h1: document.querySelectorAll("h1").length, main: document.querySelectorAll("main").length,
      levels: [...document.querySelectorAll("h1, h2, h3, h4")].map((one) => Number(one.localName[1])), ids: [...document.querySelectorAll("[id]")].map((one) => one.id),
    }));
    assert.deepEqual([found.h1, found.main], [1, 1]);
    found.levels.forEach((level, i) => assert.ok(i === 0 || level <= found.levels[i - 1] + 1, `heading ${i} jumps to h${level}`));
    assert.equal(new Set(found.ids).size, found.ids.length);
    await done();
  });

  it("tells schemes apart without colour, and reads points with keys", async () => {
    const { page, done } = await open(results);
    const markers = await page.locator(".scheme > summary .swatch path").evaluateAll((all) => all.map((one) => one.getAttribute("d")));
    assert.equal(new Set(markers).size, results.schemes.length);
    await page.locator("#loss .drawing.wide").focus();
    await page.keyboard.press("ArrowRight");
    const first = await page.locator("#tip").innerText();
    assert.match(first, /: \d\.\d{3} \[\d\.\d{3}, \d\.\d{3}\]/);
    await page.keyboard.press("ArrowRight");
    assert.notEqual(await page.locator("#tip").innerText(), first);
    await page.keyboard.press("Escape");
    assert.ok(await page.locator("#tip").isHidden());
    await done();
  });

  it("is whole without its program", async () => {
    const { page, done } = await open(results, { javaScriptEnabled: false });
    assert.ok(await page.locator("#loss .drawing.wide svg").isVisible());
    assert.ok((await page.locator("main figure svg path").count()) > 500);
    await done();
  });
});
