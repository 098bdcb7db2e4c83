// Texts that want out, drawings that carry more than lines, keys that are missing or of the wrong kind.
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { sample } from "../../web/sample/sample.mjs";
import { browser, close, open, tiny } from "./harness.mjs";

const kTexts = ["</script><script>window.stolen = 1</script>", "<img src=x onerror='window.stolen = 1'>", "\"><svg onload=window.stolen=1>", "<!--<script>", "${window.stolen = 1}", "javascript:window.stolen=1", "=HYPERLINK(\"http://x\")", "\u202e\u0000\u2028", "ä".repeat(3000)];

// Every text in the results replaced.
function poison(value, text, key = "") {
  if (typeof value === "string") return ["kind", "nan"].includes(key) || value === "nan" ? value : text;
  if (Array.isArray(value)) return value.map((item) => poison(item, text));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, poison(item, text, name)]));
  return value;
}

const innocent = (page) => page.evaluate(() => ({
  stolen: window.stolen, scripts: document.querySelectorAll("script").length, images: document.querySelectorAll("img, iframe, object, embed, foreignObject, a[href^='javascript']").length,
  handlers: [...document.querySelectorAll("*")].filter((one) => [...one.attributes].some((attribute) => attribute.name.startsWith("on"))).length,
}));

after(close);

describe("hostile results", { skip: browser === null && "needs chromium and playwright-core" }, () => {
  const small = () => sample({ depths: [4], points: 8, schemes: 8 });

  for (const text of kTexts) {
    it(`shows ${JSON.stringify(text.slice(0, 40))} as text`, async () => {
      const { page, done } = await open(poison(small(), text), { viewport: { width: 400, height: 800 } });
      assert.deepEqual(await innocent(page), { stolen: undefined, scripts: 2, images: 0, handlers: 0 });
      assert.equal(await page.locator(".failed").count(), 0);
      assert.equal(await page.locator(".advice").textContent(), text);
      assert.ok(await page.evaluate(() => document.documentElement.scrollWidth) <= 400, "long words do not widen the page");
      await done();
    });
  }

  it("keeps names apart that are names of every object", async () => {
    const results = small();
    const names = ["__proto__", "constructor", "toString", "hasOwnProperty", "valueOf", "a b", "x?hide=y", "#&,"];
    const text = results.schemes.reduce((json, scheme, i) => json.replaceAll(`"${scheme.name}"`, JSON.stringify(names[i])), JSON.stringify(results));
    const { page, done } = await open(text);
    assert.equal(await page.locator("#gradient path.series").count(), 8);
    await page.locator("#gradient .toggle").nth(5).click();
    assert.equal(await page.locator("#gradient path.series").count(), 7);
    await done();
  });

  it("takes from a drawing only its lines and words", async () => {
    const results = small();
    results.schemes[0].diagram_svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 10" onload="window.stolen=1">
      <style>@import url(http://example.com/a.css); * { display: none }</style><script>window.stolen = 1</script><title>T</title><desc>D</desc>
      <foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="window.stolen=1"/></body></foreignObject>
      <image href="http://example.com/a.png"/><use href="http://example.com/a.svg#b"/><a xlink:href="javascript:window.stolen=1"><text>inside a link</text></a>
      <animate attributeName="x" onbegin="window.stolen=1"/><rect class="norm menu" x="1" y="1" width="3" height="3" fill="url(http://example.com)" style="position:fixed" onclick="window.stolen=1"/>
      <g transform="translate(1,2)"><path class="line" d="M0 0 L1 1"/></g><text x="1" y="2">kept</text></svg>`;
    results.schemes[1].diagram_svg = "<svg><unclosed>";
    results.schemes[2].diagram_svg = "<html xmlns='http://www.w3.org/1999/xhtml'><script>window.stolen=1</script></html>";
    results.schemes[3].diagram_svg = `<!DOCTYPE svg [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]><svg xmlns="http://www.w3.org/2000/svg"><text>&b;</text></svg>`;
    const { page, done } = await open(results);
    assert.deepEqual(await innocent(page), { stolen: undefined, scripts: 2, images: 0, handlers: 0 });
    const drawn = await page.locator("#scheme-0 svg.diagram").evaluate((svg) => ({
      label: svg.getAttribute("aria-label"), elements: [...svg.querySelectorAll("*")].map((one) => one.localName), text: svg.querySelector("text").textContent, box: [...svg.querySelector("rect").attributes].map((one) => `${one.name}=${one.value}`).sort(),
    }));
    assert.deepEqual(drawn, { label: "T. D", elements: ["title", "desc", "rect", "g", "path", "text"], text: "kept", box: ["class=norm", "height=3", "width=3", "x=1", "y=1"] });
    assert.equal(await page.locator("#scheme-1 svg.diagram, #scheme-2 svg.diagram").count(), 0);
    await done(/Content Security Policy/);  // the browser says what it would have blocked
  });

  it("writes tables that a spreadsheet will not run", async () => {
    const results = {
      ...tiny(), verdicts: [{ scheme: "=1+1", rank: 1, verdict: "+x", words: "@a,\"b\"\nc" }, { scheme: " =1", rank: 2, verdict: "\n\u00a0-x", words: "\u200b\uff1d2" }, { scheme: "a = 1", rank: 3, verdict: "\n", words: " fine" }],
    };
    const { page, done } = await open(results);
    await page.locator(".menu > summary").click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.locator(".menu button", { hasText: "verdicts.csv" }).click()]);
    const chunks = [];
    for await (const chunk of await file.createReadStream()) chunks.push(chunk);
    assert.equal(Buffer.concat(chunks).toString(), "rank,scheme,verdict,words\r\n1,'=1+1,'+x,\"'@a,\"\"b\"\"\nc\"\r\n2,' =1,\"'\n\u00a0-x\",'\u200b\uff1d2\r\n3,a = 1,\"'\n\", fine\r\n");
    await done();
  });
});

describe("incomplete results", { skip: browser === null && "needs chromium and playwright-core" }, () => {

  it("shows what there is when there is almost nothing", async () => {
    const { page, done } = await open(tiny());
    assert.equal(await page.locator("h1").textContent(), "Study");
    assert.deepEqual(await page.locator("main h2").evaluateAll((all) => all.map((one) => one.firstChild.textContent)), ["Method"]);
    await done();
  });

  it("says why when the data is broken", async () => {
    const { page, done } = await open("{\"norma\": ", { ready: "failed" });
    assert.match(await page.locator("[role=alert]").innerText(), /could not be read/);
    await done();
  });

  // A report takes a quarter of a second to open, so each has several faults, in parts that do not hide each other.
  it("does without any key, and with a wrong value under it", async () => {
    const whole = sample({ depths: [4], points: 8, schemes: 2 });
    const { page, complaints, show, done } = await open(whole);
    const keys = Object.keys(whole).filter((key) => !["norma", "kind", "created"].includes(key));
    const values = [undefined, null, 7, "x", [null, 7, "x", []], [{}], { a: { b: [1] } }];
    const apart = Math.ceil(keys.length / 4);
    for (let first = 0; first < apart; ++first) {
      for (let turn = 0; turn < values.length; ++turn) {
        const faults = Object.fromEntries(keys.flatMap((key, i) => (i % apart === first ? [[key, values[(turn + i) % values.length]]] : [])));
        await show({ ...whole, ...faults });
        assert.deepEqual([await page.locator(".failed").allTextContents(), complaints], [[], []], JSON.stringify(Object.entries(faults)));
      }
    }
    for (const key of ["norma", "kind", "created"]) await show({ ...whole, [key]: "x" });
    await done();
  });

  it("does without the keys inside", async () => {
    const whole = sample({ depths: [4], points: 8, schemes: 2 });
    const { page, complaints, show, done } = await open(whole);
    const lists = ["schemes", "inspect", "runs", "maps", "tuned", "depth_use", "verdicts"];
    const keys = Object.fromEntries(lists.map((list) => [list, Object.keys(whole[list][0])]));
    for (let turn = 0; turn < Math.max(...lists.map((list) => keys[list].length)); ++turn) {
      const missing = lists.map((list) => [list, keys[list][turn]]).filter(([, key]) => key !== undefined);
      await show({ ...whole, ...Object.fromEntries(missing.map(([list, key]) => [list, whole[list].map((item) => ({ ...item, [key]: undefined }))])) });
      assert.deepEqual([await page.locator(".failed").allTextContents(), complaints], [[], []], JSON.stringify(missing));
    }
    await done();
  });
});
