// Texts that want out, and drawings that carry more than lines.
import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import { sample } from "../../web/sample/sample.mjs";
import { close, open, openAll, skip } from "./harness.mjs";

const kTexts = ["</script><script>window.stolen = 1</script>", "<img src=x onerror='window.stolen = 1'>", "\"><svg onload=window.stolen=1>", "<!--<script>", "=HYPERLINK(\"http://x\")", "\u202e\u2028", "ä".repeat(3000)];
const kKept = new Set(["kind", "verdict", "status", "stage", "edge", "method", "name", "scheme", "a", "b", "ranking", "created"]);

// Every text that people write replaced.
function poison(value, text, key = "") {
  if (typeof value === "string") return kKept.has(key) || ["nan", "inf", "-inf"].includes(value) ? value : text;
  if (Array.isArray(value)) return value.map((item) => poison(item, text, key));
  if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, poison(item, text, name)]));
  return value;
}

const innocent = (page) => page.evaluate(() => ({
  stolen: window.stolen, scripts: [...document.querySelectorAll("script")].filter((one) => !one.type || one.type === "module").length,
  images: document.querySelectorAll("img, iframe, object, embed, foreignObject, a[href^='javascript']").length,
  handlers: [...document.querySelectorAll("*")].filter((one) => [...one.attributes].some((attribute) => attribute.name.startsWith("on"))).length,
}));

describe("hostile results", { skip }, () => {
  after(close);
  const small = () => sample({ depths: [4], points: 8, schemes: 4 });

  for (const text of kTexts) {
    it(`shows ${JSON.stringify(text.slice(0, 40))} as text`, async () => {
      const { page, done } = await open(poison(small(), text), { viewport: { width: 400, height: 800 } });
      assert.deepEqual(await innocent(page), { stolen: undefined, scripts: 1, images: 0, handlers: 0 });
      assert.equal(await page.locator("h1").textContent(), text);
      assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= 400, "long words do not widen the page");
      await openAll(page);
      assert.deepEqual(await innocent(page), { stolen: undefined, scripts: 1, images: 0, handlers: 0 });
      await done(/Content Security Policy/);
    });
  }

  it("takes from a drawing only its lines and words", async () => {
    const results = small();
    results.schemes[0].diagram_svg = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 10" onload="window.stolen=1">
      <style>@import url(http://example.com/a.css); * { display: none }</style><script>window.stolen = 1</script><title>T</title><desc>D</desc>
      <foreignObject><body xmlns="http://www.w3.org/1999/xhtml"><img src="x" onerror="window.stolen=1"/></body></foreignObject>
      <image href="http://example.com/a.png"/><use href="http://example.com/a.svg#b"/><a xlink:href="javascript:window.stolen=1"><text>inside a link</text></a>
      <rect class="norm menu" x="1" y="1" width="3" height="3" fill="url(http://example.com)" style="position:fixed" onclick="window.stolen=1"/>
      <g transform="translate(1,2)"><path class="line" d="M0 0 L1 1"/></g><text x="1" y="2">kept</text></svg>`;
    results.schemes[1].diagram_svg = "<svg><unclosed>";
    const { page, done } = await open(results);
    await openAll(page);
    assert.deepEqual(await innocent(page), { stolen: undefined, scripts: 1, images: 0, handlers: 0 });
    const drawn = await page.locator('[data-scheme="post"] svg.diagram').evaluate((svg) => ({
      elements: [...svg.querySelectorAll("*")].map((one) => one.localName), text: svg.querySelector("text").textContent, box: [...svg.querySelector("rect").attributes].map((one) => `${one.name}=${one.value}`).sort(),
    }));
    assert.deepEqual(drawn, { elements: ["title", "desc", "rect", "g", "path", "text"], text: "kept", box: ["class=norm", "height=3", "width=3", "x=1", "y=1"] });
    assert.equal(await page.locator('[data-scheme="pre"] svg.diagram').count(), 0);
    await done(/Content Security Policy/);  // the browser says what it would have blocked
  });
});
