// What readers need who do not see the page, or not its colours: names, order, contrast, structure.
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { sample } from "../../web/sample/sample.mjs";
import { browser, close, open } from "./harness.mjs";

describe("access", { skip: browser === null && "needs chromium and playwright-core" }, () => {
  after(close);
  const results = sample({ points: 20, seeds: 3 });

  it("has one title, headings without gaps, landmarks and unique ids", async () => {
    const { page, done } = await open(results);
    const found = await page.evaluate(() => ({
      lang: document.documentElement.lang, h1: document.querySelectorAll("h1").length, main: document.querySelectorAll("main").length, nav: document.querySelectorAll("nav[aria-label]").length,
      levels: [...document.querySelectorAll("h1, h2, h3, h4")].map((one) => Number(one.localName[1])),
      ids: [...document.querySelectorAll("[id]")].map((one) => one.id), broken: [...document.querySelectorAll("[aria-labelledby]")].filter((one) => !document.getElementById(one.getAttribute("aria-labelledby"))).length,
    }));
    assert.deepEqual([found.lang, found.h1, found.main, found.nav, found.broken], ["en", 1, 1, 1, 0]);
    found.levels.forEach((level, i) => assert.ok(i === 0 || level <= found.levels[i - 1] + 1, `heading ${i} jumps to h${level}`));
    assert.equal(new Set(found.ids).size, found.ids.length);
    await done();
  });

  it("names every control, drawing and table", async () => {
    const { page, done } = await open(results);
    const nameless = await page.evaluate(() => {
      const name = (one) => one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.[0]?.textContent.trim();
      return [...document.querySelectorAll("button, select, summary, a[href], [role=img], [role=group], [tabindex='0']")].filter((one) => !name(one)).map((one) => one.outerHTML.slice(0, 100))
        .concat([...document.querySelectorAll("svg:not([role=img]):not([aria-hidden=true])")].map((one) => one.outerHTML.slice(0, 100)))
        .concat([...document.querySelectorAll("main table")].filter((one) => !one.closest(".card") && !one.querySelector("th[scope]")).map((one) => one.outerHTML.slice(0, 100)));
    });
    assert.deepEqual(nameless, []);
    await done();
  });

  it("offers the numbers of every figure as a table, what it means and how it was measured", async () => {
    const { page, done } = await open(results);
    const bare = await page.locator("section.figure").evaluateAll((all) => all.filter((one) => !one.querySelector("details.data") || !one.querySelector(".about")?.textContent).map((one) => one.id));
    assert.deepEqual(bare, []);
    assert.ok((await page.locator("section.figure .takeaway").count()) >= 8);
    await done();
  });

  for (const colorScheme of ["light", "dark"]) {
    it(`has enough contrast in ${colorScheme}`, async () => {
      const { page, done } = await open(results, { colorScheme });
      const low = await page.evaluate(() => {
        const pen = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
        const rgb = (colour, under = [255, 255, 255]) => {
          pen.fillStyle = `rgb(${under.join(" ")})`;
          pen.fillRect(0, 0, 1, 1);
          pen.fillStyle = colour;
          pen.fillRect(0, 0, 1, 1);
          return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3);
        };
        const luminance = (colour) => colour.map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)).reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
        const ratio = (a, b) => { const [x, y] = [luminance(a), luminance(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
        const behind = (one) => { const chain = []; for (let at = one; at; at = at.parentElement) chain.unshift(getComputedStyle(at).backgroundColor); return chain.reduce((under, colour) => rgb(colour, under), [255, 255, 255]); };
        const texts = [...document.querySelectorAll("p, li, td, th, dt, dd, h1, h2, h3, h4, button, summary, .badge, caption, small, .map-key span, code, td.hatched data")].filter((one) => one.checkVisibility() && one.textContent.trim() && !one.closest(".card") && !one.matches(".hatched, .hatched :not(data)"));
        const faint = texts.map((one) => ({ ratio: ratio(rgb(getComputedStyle(one).color, behind(one)), behind(one)), what: `${one.localName}.${one.className}: ${one.textContent.slice(0, 30)}` })).filter((one) => one.ratio < 4.5);
        const page = behind(document.body), probe = document.body.appendChild(document.createElement("i"));
        for (let i = 0; i < 8; ++i) {
          probe.style.color = `var(--scheme-${i})`;
          const got = ratio(rgb(getComputedStyle(probe).color), page);
          if (got < 3) faint.push({ ratio: got, what: `--scheme-${i}` });
        }
        probe.remove();
        return faint.slice(0, 12);
      });
      assert.deepEqual(low, []);
      await done();
    });
  }

  it("tells schemes apart without colour", async () => {
    const { page, done } = await open(results);
    const looks = await page.locator("#loss-curves .legend .swatch").evaluateAll((all) => all.map((one) => `${one.querySelector("line").getAttribute("stroke-dasharray")}|${one.querySelector("path").getAttribute("d")}|${one.querySelector("path").getAttribute("transform")}`));
    assert.equal(new Set(looks).size, 8);
    const badges = await page.locator(".badge").evaluateAll((all) => all.map((one) => [one.className, one.firstChild.textContent]));
    const signs = new Map();
    for (const [tone, sign] of badges) signs.set(tone, (signs.get(tone) ?? new Set()).add(sign));
    for (const of of signs.values()) assert.equal(of.size, 1);
    await done();
  });
});
