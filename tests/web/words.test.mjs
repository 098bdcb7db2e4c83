// What the page says in words holds: no ranking beyond what the seeds tell, nothing of schemes that do not train, and
// sentences about what is drawn.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { browser, close, open, tiny } from "./harness.mjs";

const kFormula = "x + f(norm(x))/sqrt(l)", kLong = "norm(alpha*x+beta*f(norm(gamma*x)))*sqrt(l)/(1+l)";
const kTitles = { a: "A", b: "B", c: "C", d: "Dee (an aside)", own: kFormula, long: kLong };
const kDepths = [6, 12, 24, 48];

const known = (mean, half = 0) => ({ mean, low: mean - half, high: mean + half, n: half > 0 ? 3 : 1 });
const line = (scheme, means, exponent, half = 0.01, rest = {}) => ({ scheme, x: kDepths, y: means.map((mean) => known(mean, half * mean)), exponent: exponent && { value: exponent[0], low: exponent[1], high: exponent[2] }, ...rest });
const power = (of) => kDepths.map((n) => n ** of), flat = (value) => kDepths.map(() => value);
const places = (value) => ({ profiles: [{ depth: 6, sites: Array.from({ length: 12 }, (_, i) => `layers.${i >> 1}.${i % 2 ? "ffn" : "attn"}`), y: Array.from({ length: 12 }, () => known(value)) }] });
const analysis = (name, series, rest = {}) => ({ name, title: name, x: "layers", log: true, about: "Measured.", series, ...rest });

const kInspect = [
  analysis("ranked", [line("a", power(1), [1, 0.9, 1.1]), line("b", power(0.5), [0.5, 0.45, 0.55]), line("c", power(0), [0.001, -0.01, 0.01]), line("d", power(0.14), [2.14, -1.7, 5.98])]),
  analysis("tied", [line("a", power(-0.5), [-0.5, -0.6, -0.4]), line("b", power(-0.45), [-0.45, -0.55, -0.35]), line("c", power(0.1), [0.1, -0.2, 0.4])]),
  analysis("still", [line("a", [5, 5, 5, 5.1]), line("b", flat(3)), line("c", [2, 2, 2, 1.95])]),
  analysis("loose", [line("a", [5, 5, 5, 9], null, 0.9), line("b", [5, 5, 5, 3], null, 0.9)]),
  analysis("moved", [line("a", [4, 4, 4, 8]), line("b", flat(3))]),
  analysis("angle", [line("a", power(-0.5), [-0.5, -0.6, -0.4], 0.01, places(0.1)), line("b", flat(0.1), [0, -0.02, 0.02], 0.01, places(0.1)), line("c", flat(1.6e-5), [3, 2.9, 3.1], 0.01, places(1.6e-5))], { exponent_of: "site" }),
  analysis("tiny", [line("a", power(1), [1, 0.9, 1.1]), line("own", power(1), [1, 0.9, 1.1]), line("b", flat(0)), line("c", flat(2e-8), [4, 3.9, 4.1]), line("d", [1, 1e-3, 1e-6, 1e-9], [-9, -9.1, -8.9])]),
];

const map = (scheme, lost, cells = 4) => ({ scheme, layers: 12, x: { name: "lr", values: [1e-3, 1e-2, 1e-1, 1].slice(0, cells) }, y: { name: "warmup", values: [0] }, loss: [Array.from({ length: cells }, () => known(2))], diverged: [Array.from({ length: cells }, (_, i) => (i < lost ? 1 : 0))] });
const tuned = (scheme, sensitivity, half, rest = {}) => ({ scheme, layers: 12, lr: 0.01, warmup: 0, loss: known(1.9553, 0.0051), sensitivity, sensitivity_estimate: known(sensitivity, half), largest_stable_lr: 0.03, largest_stable_lr_without_warmup: 0.03, needs_warmup: 40, ...rest });
const use = (scheme, mean, half) => ({ scheme, layers: 12, effective_depth: known(mean, half), curve: { layers_kept: [0, 12], loss: [3, 2] } });
const kWords = "Reaches a loss in this many settings, uses this many of its layers, and has a gradient that falls with depth by a law that is known. ".repeat(2);

const kStudy = {
  ...tiny(), schemes: Object.entries(kTitles).map(([name, title]) => ({ name, title, formulas: { sublayer: "x" } })), inspect: kInspect,
  maps: Object.keys(kTitles).map((name) => map(name, 0)),
  tuned: [tuned("a", 0.01, 0.001), tuned("b", 0.13, 0.02), tuned("c", 0.14, 0.02), tuned("d", 0.5, 0.01), tuned("own", 0.3, 0.01), tuned("long", null, 0.01, { sensitivity_estimate: null, largest_stable_lr: null, largest_stable_lr_without_warmup: null, needs_warmup: null })],
  depth_use: [use("b", 2, 1), use("c", 2.5, 1), use("d", 9, 1)],
  verdicts: Object.keys(kTitles).map((scheme, i) => ({ scheme, rank: i + 1, verdict: scheme === "a" || scheme === "long" ? "does not train" : "stable", words: kWords, evidence: [{ text: "loss", value: 2 }] })),
};

describe("words", { skip: browser === null && "needs chromium and playwright-core" }, () => {
  let report, page;
  before(async () => { report = await open(kStudy); page = report.page; });
  after(async () => { try { await report.done(); } finally { await close(); } });
  const said = (figure) => page.locator(`#${figure} .takeaway`).innerText();
  const drawn = (figure) => page.locator(`#${figure} path.series`).count();

  it("ranks exponents only as far as the intervals tell", async () => {
    assert.equal(await said("ranked"), "With more layers A rises most (exponent 1.00), then B (0.50); C stays level; for Dee no change is told by these seeds.");
    assert.equal(await said("tied"), "With more layers A and B fall (exponent −0.50 to −0.45, not told apart by these seeds); for C no change is told by these seeds.");
  });

  it("says that nothing changes where nothing does", async () => {
    assert.equal(await said("still"), "From 6 to 48 layers nothing changes by more than about 5 %.");
    assert.equal(await said("loose"), "From 6 to 48 layers no change is told by these seeds.");
    assert.equal(await said("moved"), "From 6 to 48 layers A rises (×2); B stays level.");
  });

  it("keeps exponents along the sublayers apart from a plot by depth", async () => {
    const heads = () => page.locator("#angle .legend thead th").allTextContents();
    assert.equal(await said("angle"), "From 6 to 48 layers A falls (×0.35); B stays level.\nAlong the sublayers of one network A falls (exponent −0.50); B stays level.");
    assert.deepEqual(await heads(), ["Scheme"]);
    await page.locator('#angle [data-value="place"]').click();
    assert.deepEqual(await heads(), ["Scheme", "Exponent"]);
    assert.match(await page.locator("#angle .legend-foot").innerText(), /^Exponent: along the sublayers of one network/);
    assert.deepEqual(await page.locator("#angle .legend tbody td").evaluateAll((all) => all.map((cell) => cell.firstChild.firstChild?.textContent ?? cell.textContent)), ["−0.50", "0.00", "–"]);
    assert.deepEqual(await page.locator("#ranked .legend thead th").allTextContents(), ["Scheme", "Exponent"]);
  });

  it("names what is zero within rounding and keeps logarithmic axes for the rest", async () => {
    await page.locator('#angle [data-value="depth"]').click();
    assert.equal(await drawn("angle"), 2);
    assert.equal(await page.locator("#angle .zero-note").evaluate((note) => note.firstChild.textContent), "zero within rounding: C");
    assert.equal(await page.locator("#tiny .zero-note").evaluate((note) => note.firstChild.textContent), "zero within rounding: B, C");
    assert.equal(await drawn("tiny"), 3, "what vanishes with depth is drawn");
    assert.doesNotMatch(await said("tiny"), /\bC\b/);
    const ticks = await page.locator("#angle .axes text").allTextContents();
    assert.ok(!ticks.some((tick) => /e-[5-9]/.test(tick)), ticks.join(" "));
    await page.locator("#tiny .switch", { hasText: "log y" }).click();
    assert.equal(await drawn("tiny"), 5);
    assert.equal(await page.locator("#tiny .zero-note").count(), 0);
  });

  it("leaves schemes that do not train out of what is compared", async () => {
    assert.equal(await said("sensitivity"), "At 12 layers least sensitive: B and C (0.13 to 0.14, not told apart by these seeds); most: Dee (0.50).");
    const rows = await page.locator(".verdicts tbody tr:not(.below)").evaluateAll((all) => all.map((row) => [...row.cells].slice(4).map((cell) => cell.textContent)));
    assert.deepEqual([rows[0], rows[1], rows[5]], [["0.01", "–", "–", "–", "–", "–"], ["0.01", "0.03", "0.03", "40", "0.13", "2"], ["0.01", "–", "–", "–", "–", "–"]]);
    assert.deepEqual(await page.locator("#sensitivity .legend tbody tr td:last-child").allTextContents(), ["–", "0.13", "0.14", "0.50", "0.30", "–"]);
    assert.match(await page.locator("#sensitivity .about").innerText(), /learning rates that all schemes share/);
    assert.equal(await said("effective-depth"), "Of 12 layers most are used by Dee (9), fewest by B and C (2 to 2.50, not told apart by these seeds).");
  });

  it("writes losses and their intervals with the same decimals", async () => {
    assert.equal(await page.locator(".verdicts tbody tr td:nth-child(4)").first().innerText(), "1.955 [1.950, 1.960]");
  });

  it("gives the words of a verdict the width of the table, and a formula its place in it", async () => {
    const seen = await page.locator(".verdicts table").evaluate((table) => ({
      width: table.offsetWidth, height: table.offsetHeight, fits: table.offsetWidth <= table.parentElement.clientWidth, words: Math.min(...[...table.querySelectorAll(".words")].map((one) => one.offsetWidth)), names: [...table.querySelectorAll(".scheme")].map((one) => one.textContent),
    }));
    assert.ok(seen.fits && seen.words > 0.8 * seen.width && seen.height < 900, JSON.stringify(seen));
    assert.deepEqual(seen.names.slice(3, 5), ["Dee", kFormula]);
  });

  it("aligns the cards of a narrow screen", async () => {
    await page.setViewportSize({ width: 380, height: 800 });
    const lefts = await page.locator(".verdicts tbody tr:not(.below)").last().evaluate((row) => [...row.cells].map((cell) => {
      const inside = document.createRange();
      inside.selectNodeContents(cell);
      return Math.round(inside.getBoundingClientRect().left);
    }));
    assert.equal(new Set(lefts).size, 1, lefts.join(" "));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 380);
    const aligned = await page.locator(".verdicts tbody td").first().evaluate((cell) => getComputedStyle(cell).textAlign);
    assert.equal(aligned, "left");
    await page.setViewportSize({ width: 1320, height: 900 });
  });

  it("says plainly who diverged, by share where maps differ in size", async () => {
    const first = async (maps, verdicts = []) => { await report.show({ ...kStudy, inspect: [], verdicts, maps }); return said("stability-maps"); };
    assert.equal(await said("stability-maps"), "At 12 layers no seed diverged, in any cell of any map. Not diverging is not yet training: A and norm(alpha*x+beta*f(norm(gamma*x)))*sqr… do not train.");
    assert.equal(await first([map("a", 0), map("b", 0), map("c", 2), map("d", 1, 2)]), "At 12 layers a seed diverged in the fewest cells with A and B (none), in the most with C and Dee (50 % of the cells).");
    assert.equal(await first([map("a", 1, 2), map("b", 2), map("c", 3)]), "At 12 layers a seed diverged in the fewest cells with A and B (50 % of the cells), in the most with C (3 of 4 cells, 75 %).");
    assert.equal(await first([map("a", 1), map("b", 1)]), "At 12 layers a seed diverged in the same share of cells for every scheme: 1 of 4 cells.");
  });
});
