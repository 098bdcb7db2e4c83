// What the page shows is what results.json says.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { sample } from "../../web/sample/sample.mjs";
import { browser, close, numberOf, open, tableValues } from "./harness.mjs";

describe("values", { skip: browser === null && "needs chromium and playwright-core" }, () => {
  const results = sample({ seeds: 3, points: 40, depths: [12, 24] });
  const labels = new Map(results.schemes.map((scheme) => [scheme.name, scheme.title.replace(/\s*\([^()]*\)$/, "")]));
  let report, page;
  before(async () => { report = await open(results); page = report.page; });
  after(async () => { try { await report.done(); } finally { await close(); } });

  const openNumbers = (figure) => page.locator(`#${figure} details.data > summary`).click();

  it("puts the verdicts first, by rank, with the numbers of the deepest models", async () => {
    assert.equal(await page.locator("main h2").first().evaluate((heading) => heading.firstChild.textContent), "Verdicts");
    const all = await tableValues(page, ".verdicts table"), rows = all.filter((_, i) => i % 2 === 0), below = all.filter((_, i) => i % 2 === 1);
    assert.deepEqual([rows.length, below.length], [results.verdicts.length, results.verdicts.length]);
    results.verdicts.forEach((verdict, i) => {
      const tuned = results.tuned.find((item) => item.scheme === verdict.scheme && item.layers === 24);
      const depth = results.depth_use.find((item) => item.scheme === verdict.scheme && item.layers === 24);
      const [rank, scheme, , loss, lr, largest, without, warmup, sensitivity, effective] = rows[i];
      assert.deepEqual([rank, scheme, loss, lr, largest, without, warmup, sensitivity, effective],
        [verdict.rank, labels.get(verdict.scheme), tuned.loss.mean, tuned.lr, tuned.largest_stable_lr, tuned.largest_stable_lr_without_warmup, tuned.needs_warmup, tuned.sensitivity, depth.effective_depth.mean]);
      assert.equal(typeof below[i][0] === "number", true, "the words carry their evidence");
    });
    const shown = await page.locator(".verdicts tbody tr:not(.below)").evaluateAll((all) => all.map((row) => [row.querySelector(".badge").lastChild.textContent, row.nextSibling.querySelector(".words").firstChild.textContent]));
    assert.deepEqual(shown, results.verdicts.map((verdict) => [verdict.verdict, verdict.words]));
  });

  it("shows every evidence value", async () => {
    const values = await page.locator(".verdicts .words li data").evaluateAll((all) => all.map((item) => Number(item.value)));
    assert.deepEqual(values, results.verdicts.flatMap((verdict) => verdict.evidence.map((item) => item.value)));
  });

  it("shows advice, notes and what was not tested", async () => {
    const text = await page.locator("main").innerText();
    for (const words of [results.advice.words, results.advice.confidence, ...results.notes, results.advice.not_tested.join("; ")]) assert.ok(text.includes(words), words);
  });

  for (const analysis of results.inspect) {
    it(`shows ${analysis.name}: every mean, interval and prediction`, async () => {
      await openNumbers(analysis.name);
      const rows = await tableValues(page, `#${analysis.name} details.data table`);
      assert.deepEqual(rows, analysis.series.flatMap((line) => line.x.map((x, i) => [labels.get(line.scheme), x, line.y[i].mean, line.y[i].low, line.y[i].high, line.y[i].n, line.theory.y[i]])));
      const exponents = await tableValues(page, `#${analysis.name} .legend table`);
      assert.deepEqual(exponents.map(([, measured, theory]) => [measured, theory]), analysis.series.map((line) => [line.exponent.value, line.theory.exponent]));
      const drawn = await page.locator(`#${analysis.name} .chart`).evaluate((chart) => ["path.series", "path.theory", "path.band", ".chart > svg > g > path.halo"].map((kind) => chart.parentElement.querySelectorAll(kind).length));
      const points = analysis.series.reduce((sum, line) => sum + line.x.length, 0);
      assert.deepEqual(drawn, [8, 8, 8, points]);
    });
  }

  it("draws points where the numbers are", async () => {
    // On two logarithmic axes equal ratios are equal lengths: compare the drawn markers with the data.
    const series = results.inspect[0].series[1];
    const at = await page.locator("#gradient .chart path.halo").evaluateAll((all) => all.map((mark) => mark.getAttribute("transform").match(/-?[\d.]+/g).slice(0, 2).map(Number)));
    const mine = at.slice(5, 10);
    const slope = (value, place) => (place(mine[1]) - place(mine[0])) / Math.log(value(1) / value(0));
    const kx = slope((i) => series.x[i], (p) => p[0]), ky = slope((i) => series.y[i].mean, (p) => p[1]);
    for (let i = 1; i < 5; ++i) {
      assert.ok(Math.abs(mine[i][0] - mine[0][0] - kx * Math.log(series.x[i] / series.x[0])) < 0.01);
      assert.ok(Math.abs(mine[i][1] - mine[0][1] - ky * Math.log(series.y[i].mean / series.y[0].mean)) < 0.01);
    }
    assert.ok(ky < 0, "larger is higher");
  });

  it("shows every cell of the stability maps, hatched where seeds diverged", async () => {
    for (const layers of [12, 24]) {
      await page.locator(`#stability-maps [data-value="${layers}"]`).click();
      const shown = await page.locator("#stability-maps table.map").evaluateAll((maps) => maps.map((map) => [...map.tBodies[0].rows].map((row) => [...row.querySelectorAll("td")].map((cell) => ({
        loss: cell.querySelector("data") ? Number(cell.querySelector("data").value) : null, share: Number(cell.dataset.diverged ?? 0), hatched: cell.classList.contains("hatched"), text: cell.textContent,
      })))));
      const maps = results.maps.filter((map) => map.layers === layers);
      assert.equal(shown.length, maps.length);
      maps.forEach((map, m) => map.loss.forEach((row, i) => row.forEach((cell, j) => {
        const got = shown[m][i][j], share = map.diverged[i][j];
        assert.equal(got.share, share);
        assert.equal(got.hatched, share > 0);
        if (share >= 1) assert.ok(got.text.includes("diverged")); else assert.equal(got.loss, cell.mean);
      })));
    }
  });

  it("lists every run", async () => {
    await openNumbers("loss-curves");
    const rows = await tableValues(page, "#loss-curves details.data table");
    assert.equal(rows.length, results.runs.length);
    results.runs.forEach((run) => {
      const row = rows.find(([id]) => id === run.id);
      assert.deepEqual(row.slice(1, 10), [labels.get(run.scheme), run.layers, run.width, run.lr, run.warmup, run.seed, numberOf(run.final_loss), run.best_loss, numberOf(run.evaluation_loss)]);
      assert.equal(row[10], run.diverged ? run.diverged_at_step : "no");
    });
  });

  it("marks every divergence among the curves", async () => {
    await page.locator('#loss-curves [data-value="all"]').click();
    await page.locator("#loss-curves select").first().selectOption({ label: "all" });
    assert.equal(await page.locator("#loss-curves path.series").count(), results.runs.length);
    assert.equal(await page.locator("#loss-curves .diverged-mark").count(), results.runs.filter((run) => run.diverged).length);
    const lost = results.runs.filter((run) => run.diverged).length;
    assert.ok((await page.locator("#loss-curves .takeaway").innerText()).startsWith(`${lost} of ${results.runs.length} runs diverged.`));
  });

  it("shows effective depth and every measure per layer", async () => {
    await openNumbers("effective-depth");
    const rows = await tableValues(page, "#effective-depth details.data table");
    const order = results.schemes.map((scheme) => scheme.name);
    const items = [...results.depth_use].sort((a, b) => order.indexOf(a.scheme) - order.indexOf(b.scheme));
    assert.deepEqual(rows, items.map((item) => [labels.get(item.scheme), item.layers, item.effective_depth.mean, item.effective_depth.low, item.effective_depth.high, item.effective_depth.n]));
    await openNumbers("layers");
    const values = (await tableValues(page, "#layers details.data table")).map((row) => row[4]).sort((a, b) => a - b);
    const given = items.flatMap((item) => [...item.deletion, ...item.swap, ...item.width_equivalence, ...item.influence].map((value) => value.mean).concat(item.lens.kl, item.lens.agreement)).sort((a, b) => a - b);
    assert.deepEqual(values, given);
  });

  it("paints the likeness of layers", async () => {
    const item = results.depth_use.find((one) => one.scheme === "pre" && one.layers === 24), size = item.angular_distance.length;
    const stage = page.locator("#similarity .stage").nth(1);
    const box = await stage.boundingBox();
    await page.mouse.move(box.x + ((20 + 0.5) * box.width) / size, box.y + ((3 + 0.5) * box.height) / size);
    await stage.hover({ position: { x: ((20 + 0.5) * box.width) / size, y: ((3 + 0.5) * box.height) / size } });
    assert.equal(await page.locator("#similarity .reading").nth(1).innerText(), `states 3 and 20: ${item.angular_distance[3][20].toPrecision(3)}`);
    const [near, far] = await stage.locator("canvas").evaluate((canvas) => {
      const row = canvas.getContext("2d").getImageData(0, 2, canvas.width, 1).data, sum = (x) => row[4 * x] + row[4 * x + 1] + row[4 * x + 2];
      return [sum(2), sum(310)];
    });
    assert.ok(near < far, "alike is dark");
  });

  it("draws each scheme and prints its formulas", async () => {
    assert.equal(await page.locator(".scheme-card svg.diagram").count(), results.schemes.length);
    const formulas = await page.locator(".scheme-card").evaluateAll((cards) => cards.map((card) => [...card.querySelectorAll(".formulas dd")].map((one) => one.textContent)));
    assert.deepEqual(formulas, results.schemes.map((scheme) => Object.values(scheme.formulas)));
  });

  it("ends with what repeats the run", async () => {
    assert.equal(await page.locator("main h2").last().evaluate((heading) => heading.firstChild.textContent), "Method");
    assert.equal(await page.locator("#method pre").nth(0).textContent(), results.command);
    assert.equal(await page.locator("#method pre").nth(1).textContent(), results.config);
  });

  it("gives back the data it was made from", async () => {
    const fetched = async (label) => {
      await page.locator(".menu > summary").click();
      const [file] = await Promise.all([page.waitForEvent("download"), page.locator(".menu button", { hasText: label }).click()]);
      await page.keyboard.press("Escape");
      const chunks = [];
      for await (const chunk of await file.createReadStream()) chunks.push(chunk);
      return Buffer.concat(chunks).toString("utf8");
    };
    assert.deepEqual(JSON.parse(await fetched("results.json")), JSON.parse(JSON.stringify(results)));
    const runs = (await fetched("runs.csv")).trim().split("\r\n");
    assert.equal(runs.length, 1 + results.runs.length);
    assert.ok(runs.some((line) => line.startsWith(`${results.runs[0].id},post,12,128,0.0001,0,1,`)));
    assert.equal((await fetched("curves.csv")).trim().split("\r\n").length, 1 + results.runs.reduce((sum, run) => sum + run.curve.step.length, 0));
    assert.equal((await fetched("maps.csv")).trim().split("\r\n").length, 1 + results.maps.length * 18);
  });
});
