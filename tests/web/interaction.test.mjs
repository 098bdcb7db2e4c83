// What readers do with the page: point, press keys, hide, switch, link, print, on wide and narrow screens.
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { sample } from "../../web/sample/sample.mjs";
import { browser, close, open } from "./harness.mjs";

describe("interaction", { skip: browser === null && "needs chromium and playwright-core" }, () => {
  after(close);
  const results = sample({ points: 40 });
  const lines = (page, figure) => page.locator(`#${figure} path.series`).count();
  const formatted = (value) => (value < 1e-3 ? String(Number(value.toPrecision(3))) : value.toPrecision(4)).replace("-", "−");

  it("hides a scheme in every figure, and the link remembers", async () => {
    const { page, done } = await open(results);
    const toggle = page.locator('#gradient .toggle[data-scheme="pre"]');
    assert.equal(await toggle.getAttribute("aria-pressed"), "true");
    await toggle.click();
    assert.equal(await toggle.getAttribute("aria-pressed"), "false");
    for (const figure of ["gradient", "activation", "loss-curves", "effective-depth", "layers"]) assert.equal(await lines(page, figure), 7, figure);
    assert.equal(await page.locator("#stability-maps table.map").count(), 7);
    assert.equal(await page.locator("#similarity canvas").count(), 7);
    assert.match(page.url(), /hide=pre/);
    await page.reload();
    await page.waitForSelector("html[data-ready]");
    assert.equal(await lines(page, "gradient"), 7);
    await page.locator("#gradient .legend .quiet").click();
    assert.equal(await lines(page, "gradient"), 8);
    assert.doesNotMatch(page.url(), /hide=/);
    await toggle.click({ modifiers: ["Shift"] });
    assert.equal(await lines(page, "amplification"), 1);
    await done();
  });

  it("draws the distribution behind a number, over the bins that are filled", async () => {
    const share = (mean) => ({ mean, low: mean, high: mean, n: 1 });
    const histograms = (depth) => [{ depth, method: "projections", edges: [0.01, 0.1, 1, 10, 100], share: [0, 0.25, 0.5, 0].map(share), unresolved: share(0.25), unresolved_below: 0.1 }];
    const series = results.schemes.slice(0, 2).map(({ name }) => ({ scheme: name, x: [4], y: [share(2)], profiles: [], histograms: histograms(4) }));
    const { page, done } = await open({ ...results, inspect: [{ name: "jacobian", title: "Mean squared singular value", x: "layers", log: true, about: "Of the stack.", series }] });
    await page.locator('#jacobian .choice button[data-value="values"]').click();
    assert.equal(await lines(page, "jacobian"), 2);
    assert.equal(await page.locator("#jacobian .chart path.halo").count(), 4, "two bins for each of two schemes");
    assert.match(await page.locator("#jacobian .legend").innerText(), /25 % below 0\.1/);
    await page.locator('#jacobian .choice button[data-value="depth"]').click();
    assert.equal(await page.locator("#jacobian .chart path.halo").count(), 2);
    await done();
  });

  it("shows the values under the pointer, measured and predicted", async () => {
    const { page, done } = await open(results, { hash: "#gradient" });
    const marks = await page.locator("#gradient .chart path.halo").evaluateAll((all) => all.slice(0, 5).map((mark) => mark.getBoundingClientRect()).map((box) => [box.x + box.width / 2, box.y + box.height / 2]));
    await page.mouse.move(...marks[2]);
    const card = await page.locator("#gradient .card").innerText();
    assert.match(card, /layers 24/);
    for (const series of results.inspect[0].series) {
      assert.ok(card.includes(formatted(series.y[2].mean)), `${series.scheme}: ${formatted(series.y[2].mean)} in\n${card}`);
      assert.ok(card.includes(formatted(series.theory.y[2])));
    }
    await page.mouse.move(5, 5);
    assert.equal(await page.locator("#gradient .card").isVisible(), false);
    await done();
  });

  it("finds the run nearest to the pointer", async () => {
    const { page, done } = await open(results, { hash: "#loss-curves" });
    await page.locator('#loss-curves [data-value="all"]').click();
    const box = await page.locator("#loss-curves .chart svg").boundingBox();
    await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
    const card = await page.locator("#loss-curves .card").innerText();
    assert.match(card, /step \d+: \d/);
    assert.match(card, /lr .*warmup .*seed 1/);
    assert.equal(await page.locator("#loss-curves .picked").count(), 1);
    await done();
  });

  it("reads charts and maps with the keyboard, aloud", async () => {
    const { page, done } = await open(results);
    const said = () => page.locator("#live").textContent();
    await page.locator("#gradient .chart").focus();
    await page.keyboard.press("ArrowRight");
    assert.match(await said(), /^layers 6: Post-LN 1\./);
    await page.keyboard.press("End");
    assert.match(await said(), /^layers 96: /);
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#gradient .card").isVisible(), false);
    await page.locator("#loss-curves .chart").focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowDown");
    assert.match(await said(), /Pre-LN, step \d+: /);
    await page.locator("#similarity .stage").first().focus();
    for (const key of ["ArrowRight", "ArrowRight", "ArrowDown"]) await page.keyboard.press(key);
    assert.match(await said(), /^states 1 and 1: 0$/);
    await done();
  });

  it("can be walked through with Tab: skip link first, every control reachable and visibly focused", async () => {
    const { page, done } = await open(results);
    await page.keyboard.press("Tab");
    assert.equal(await page.evaluate(() => document.activeElement.className), "skip");
    assert.ok((await page.locator(".skip").boundingBox()).y >= 0);
    const controls = await page.evaluate(() => document.querySelectorAll("button, select, summary, a[href], [tabindex='0']").length);
    const seen = new Set();
    let unseen = 0;
    for (let i = 0; i < controls + 10; ++i) {
      const state = await page.evaluate(() => {
        const active = document.activeElement;
        active.dataset.visited ??= String(Math.random());
        return { id: active.dataset.visited, outline: getComputedStyle(active).outlineStyle };
      });
      if (state.outline === "none") ++unseen;
      if (seen.has(state.id)) break;
      seen.add(state.id);
      await page.keyboard.press("Tab");
    }
    const missed = await page.evaluate(() => [...document.querySelectorAll("button, select, summary")].filter((one) => one.checkVisibility() && !one.dataset.visited).map((one) => one.outerHTML.slice(0, 80)));
    assert.deepEqual(missed, []);
    assert.ok(unseen <= 1, `${unseen} stops without a visible focus`);
    await done();
  });

  it("switches axes, views and depths", async () => {
    const { page, done } = await open(results);
    const axis = (figure) => page.locator(`#${figure} .axis-label`).allTextContents();
    assert.deepEqual(await axis("gradient"), ["log scale", "layers (log)"]);
    await page.locator("#gradient .switch", { hasText: "log x" }).click();
    await page.locator("#gradient .switch", { hasText: "log y" }).click();
    assert.deepEqual(await axis("gradient"), ["", "layers"]);
    await page.locator('#gradient [data-value="place"]').click();
    assert.deepEqual(await axis("gradient"), ["", "place"]);
    await page.locator("#gradient select").selectOption({ label: "12" });
    assert.match(await page.locator("#gradient .chart svg").getAttribute("aria-label"), /stack of 12 layers/);
    await page.locator("#layers select").selectOption({ label: "block influence" });
    assert.match(await page.locator("#layers .chart svg").getAttribute("aria-label"), /block influence/);
    await page.locator('#effective-depth [data-value="12"]').click();
    assert.match(await page.locator("#effective-depth .legend").innerText(), /of 12/);
    await done();
  });

  it("sorts tables", async () => {
    const { page, done } = await open(results);
    await page.locator("#loss-curves details.data > summary").click();
    const column = () => page.locator("#loss-curves details.data tbody tr td:nth-child(8) data").evaluateAll((all) => all.map((one) => Number(one.value)).filter((value) => !Number.isNaN(value)));
    const button = page.locator("#loss-curves details.data .sort", { hasText: "Final loss" });
    await button.click();
    const up = await column();
    assert.deepEqual(up, [...up].sort((a, b) => a - b));
    await button.click();
    assert.deepEqual(await column(), [...up].reverse());
    assert.equal(await page.locator("#loss-curves details.data th[aria-sort]").getAttribute("aria-sort"), "descending");
    await done();
  });

  it("opens at the place that a link names", async () => {
    for (const place of ["effective-depth", "stability", "amplification", "scheme-3"]) {
      const { page, done } = await open(results, { hash: `#${place}` });
      const top = await page.locator(`#${place}`).evaluate((element) => element.getBoundingClientRect().top);
      assert.ok(top > -2 && top < 60, `${place} is at ${top}`);
      await done();
    }
    const { page, done } = await open(results);
    await page.locator("#activation .anchor").click();
    assert.match(page.url(), /#activation$/);
    await done();
  });

  it("follows the reader's colours, and the switch overrides them", async () => {
    for (const colorScheme of ["light", "dark"]) {
      const { page, done } = await open(results, { colorScheme });
      const brightness = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0));
      assert.equal((await brightness()) > 380, colorScheme === "light");
      const other = colorScheme === "light" ? "dark" : "light";
      await page.locator(`.tools [data-value="${other}"]`).click();
      assert.equal((await brightness()) > 380, other === "light");
      await page.emulateMedia({ media: "print" });
      assert.ok((await brightness()) > 380, "paper is white");
      await done();
    }
  });

  it("prints every section and no controls", async () => {
    const { page, done } = await open(results);
    assert.ok((await page.pdf({ format: "A4" })).length > 50_000);
    await page.emulateMedia({ media: "print" });
    for (const hidden of ["nav.contents", ".controls", ".tools"]) assert.equal(await page.locator(hidden).first().isVisible(), false, hidden);
    assert.equal(await page.locator("main h2:visible").count(), 7);
    await done();
  });

  it("fits a telephone", async () => {
    const { page, done } = await open(results, { viewport: { width: 400, height: 800 } });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 400);
    const wide = await page.evaluate(() => [...document.querySelectorAll(".chart > svg")].filter((svg) => svg.getBoundingClientRect().right > 400).length);
    assert.equal(wide, 0);
    await done();
  });

  it("stays quick with 600 runs", async () => {
    const many = sample({ seeds: 2, points: 100 });
    assert.ok(many.runs.length >= 500);
    const begun = performance.now();
    const { page, done } = await open(many);
    const ready = performance.now() - begun;
    const click = async (selector) => page.locator(selector).first().evaluate(async (element) => {
      const start = performance.now();
      element.click();
      await new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
      return performance.now() - start;
    });
    const all = await click('#loss-curves [data-value="all"]'), hide = await click('#loss-curves .toggle[data-scheme="lns"]');
    const box = await page.locator("#loss-curves .chart svg").boundingBox();
    const start = performance.now();
    for (let i = 0; i < 20; ++i) await page.mouse.move(box.x + 100 + 10 * i, box.y + 150 + 5 * i);
    const hover = (performance.now() - start) / 20;
    console.log(`    600 runs: ready ${ready.toFixed(0)} ms, show all ${all.toFixed(0)} ms, hide one ${hide.toFixed(0)} ms, pointer ${hover.toFixed(0)} ms`);
    assert.ok(ready < 10_000 && all < 2000 && hide < 2500 && hover < 200);
    await done();
  });
});
