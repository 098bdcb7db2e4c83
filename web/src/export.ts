// The drawing as a file of its own: as norma writes it, without what only the page needs.
const kPaper = "#ffffff", kPngScale = 3;

export function standalone(svg: SVGSVGElement, title: string, caption: string): string {
  const copy = svg.cloneNode(true) as SVGSVGElement, space = "http://www.w3.org/2000/svg";
  copy.removeAttribute("aria-label");
  for (const mark of copy.querySelectorAll("[class], [data-s]")) {
    mark.removeAttribute("class");
    mark.removeAttribute("data-s");
  }
  for (const cell of copy.querySelectorAll('[fill^="light-dark("]')) cell.setAttribute("fill", /#\w+/.exec(cell.getAttribute("fill")!)![0]);
  const { width, height } = svg.viewBox.baseVal;
  const paper = document.createElementNS(space, "path");
  paper.setAttribute("d", `M0 0H${width}V${height}H0Z`);
  paper.setAttribute("fill", kPaper);
  const words = [["title", title], ["desc", caption]].map(([tag, text]) => {
    const element = document.createElementNS(space, tag!);
    element.textContent = text!;
    return element;
  });
  copy.prepend(...words, paper);
  return new XMLSerializer().serializeToString(copy);
}

export async function toPng(svg: string): Promise<Blob> {
  const url = URL.createObjectURL(new Blob([svg], { type: "image/svg+xml" }));
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    const canvas = document.createElement("canvas");
    canvas.width = image.naturalWidth * kPngScale;
    canvas.height = image.naturalHeight * kPngScale;
    canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
    return await new Promise((done, fail) => canvas.toBlob((blob) => (blob ? done(blob) : fail(new Error("no picture"))), "image/png"));
  } finally {
    URL.revokeObjectURL(url);
  }
}
