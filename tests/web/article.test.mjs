// A person finishes it: its length, its order, what is seen first, and one form for every number.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { sample } from "../../web/sample/sample.mjs";
import { close, open, skip } from "./harness.mjs";

describe("article", { skip }, () => {
  const results = sample({ depths: [24], points: 40, seeds: 3 });
  let report, page;
  before(async () => { report = await open(results); page = report.page; });
  after(async () => { try { await report.done(); } finally { await close(); } });

  it("opens with the answer and one figure, in the first screen", async () => {
    const [sentence] = results.advice.words.split(/(?<=\.) /);
    assert.ok((await page.locator("h1").innerText()).startsWith(sentence.slice(0, 40)));
    const seen = await page.locator("#loss .drawing.wide svg").boundingBox();
    assert.ok(seen.y > 0 && seen.y + seen.height < 800, JSON.stringify(seen));
    assert.equal(await page.locator("main figure").first().getAttribute("id"), "loss");
  });

  it("is short", async () => {
    const [height, words] = await page.evaluate(() => [document.documentElement.scrollHeight, document.body.innerText.split(/\s+/).length]);
    assert.ok(height < 4500, `${height} pixels`);
    assert.ok(words < 1200, `${words} words`);
  });

  it("goes from stability to curves, depth and only then initialisation; the rest is folded", async () => {
    const ids = await page.locator("main > section").evaluateAll((all) => all.map((one) => one.id));
    assert.deepEqual(ids, ["schemes", "stability-section", "training", "depth-section", "init-section", "method"]);
    const shown = await page.locator("main figure").evaluateAll((all) => all.filter((one) => one.checkVisibility()).map((one) => one.id));
    assert.deepEqual(shown, ["loss", "stability", "curves", "depth"]);
    assert.ok((await page.locator("main details figure").count()) >= 8);
  });

  it("says one sentence for each scheme, with the loss of the figure", async () => {
    const lines = await page.locator(".scheme > summary").allInnerTexts();
    assert.equal(lines.length, results.schemes.length);
    const digits = await page.locator("#loss .drawing.wide text").allTextContents();
    for (const tuned of results.tuned) {
      const text = `${tuned.loss.mean.toFixed(3)} [${tuned.loss.low.toFixed(3)}, ${tuned.loss.high.toFixed(3)}]`;
      assert.ok(digits.includes(text), text);
      assert.ok(lines.some((line) => line.includes(`Loss ${text} at a peak rate of`)), text);
    }
  });

  it("folds evidence with intervals, formulas and the drawing of each scheme", async () => {
    const first = page.locator(".scheme").first();
    await first.locator("summary").click();
    assert.ok((await first.locator("table").innerText()).includes(" to "));
    assert.equal(await first.locator("svg.diagram").count(), 1);
    assert.ok((await first.locator(".formulas code").count()) >= 1);
    await first.locator("summary").click();
  });

  it("shows a scheme that is not ranked apart, without its loss", async () => {
    const leaking = sample({ depths: [6], points: 10, seeds: 2 });
    const name = leaking.verdicts[0].scheme;
    leaking.verdicts.push({ ...leaking.verdicts.shift(), rank: 0, words: "Its norm sees the future. It was not ranked." });
    leaking.advice.ranking = leaking.advice.ranking.filter((one) => one !== name);
    const other = await open(leaking);
    assert.ok((await other.page.locator(".scheme > summary").last().innerText()).includes("sees the future."));
    const title = leaking.schemes.find((one) => one.name === name).title.replace(/ \(.*\)$/, "");
    const rows = await other.page.locator("#loss .drawing.wide text").allTextContents();
    assert.equal(rows.filter((text) => / \[/.test(text)).length, leaking.schemes.length - 1);
    assert.ok(rows.includes(title));
    await other.done();
  });

  it("draws letters as wide as the figures were laid out for, so that none is cut off", async () => {
    const long = sample({ depths: [24], points: 40, seeds: 3, schemes: 3 });
    long.schemes[0].title = "0.5*x + f(norm(x)) + 0.5*x";
    const other = await open(long);
    const [loaded, beyond] = await other.page.evaluate(async () => {
      await document.fonts.ready;
      const drawings = [...document.querySelectorAll(".drawing svg")].filter((one) => one.checkVisibility());
      return [document.fonts.check("11px Arimo") && document.fonts.size === 1, drawings.flatMap((svg) =>
        [...svg.querySelectorAll("text:not([transform])")].filter((text) => {
          const box = text.getBBox();
          return box.x < -1 || box.x + box.width > svg.viewBox.baseVal.width + 1;
        }).map((text) => text.textContent))];
    });
    assert.ok(loaded);
    assert.deepEqual(beyond, []);
    await other.done();
  });

  it("fits a phone and prints its figures", async () => {
    const phone = await open(results, { viewport: { width: 390, height: 844 } });
    assert.ok((await phone.page.evaluate(() => document.documentElement.scrollWidth)) <= 390);
    const letters = await phone.page.locator("#loss .drawing.narrow text").first().boundingBox();
    assert.ok(letters.height > 9, "letters are not shrunk");
    await phone.page.emulateMedia({ media: "print" });
    assert.ok(await phone.page.locator("#curves .drawing.wide svg").isVisible());
    assert.ok(await phone.page.locator(".bar").isHidden());
    await phone.done();
  });
});
