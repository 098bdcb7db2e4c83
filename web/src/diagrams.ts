// Drawings of schemes, made when a reader opens one; until then, and where one cannot be read, the text stands.
import { diagram } from "./components/diagram";
import { readResults } from "./data/read_results";

export function showDiagrams(json: string): void {
  const places = [...document.querySelectorAll<HTMLElement>(".diagram[data-scheme]")];
  if (places.length === 0) return;
  let drawings: Map<string, { svg: string; title: string }> | null = null;
  for (const place of places) {
    place.closest("details")?.addEventListener("toggle", () => {
      drawings ??= new Map(readResults(json).schemes.map((scheme) => [scheme.name, { svg: scheme.diagramSvg, title: scheme.title }]));
      const found = drawings.get(place.dataset.scheme!), drawn = found && diagram(found.svg, found.title);
      if (drawn) place.replaceChildren(drawn);
    }, { once: true });
  }
}
