#include <fmt/format.h>

#include <algorithm>

#include "norma/core/error.h"
#include "norma/core/names.h"
#include "norma/report/figure.h"
#include "norma/store/atomic_file.h"
#include "report/figures/csv.h"
#include "report/figures/parts.h"
#include "report/figures/sizes.h"
#include "report/figures/writers.h"

namespace norma {

std::vector<Figure> figures_of(const Results& results) {
  const Cast cast(results);
  std::vector<Figure> figures;
  add_loss_figure(figures, results, cast);
  add_stability_figures(figures, results, cast);
  add_curves_figure(figures, results, cast);
  add_depth_figures(figures, results, cast);
  add_init_figures(figures, results, cast);
  return figures;
}

const Figure& find_figure(const std::vector<Figure>& figures, std::string_view id) {
  std::vector<std::string> names;
  for (const Figure& figure : figures) {
    if (figure.id == id) return figure;
    names.push_back(figure.id);
  }
  if (names.empty()) fail("there is nothing in these results to draw");
  fail("these results have no figure '{}'{}; there are: {}", id, did_you_mean(std::string(id), names),
       fmt::join(names, ", "));
}

void write_figure(const std::filesystem::path& path, const Figure& figure, FigureWidth width) {
  const bool column = width == FigureWidth::column;
  const std::string ending = path.extension().string();
  const auto scene = [&] { return figure.draw(column ? kColumnUnits : kPageUnits); };
  if (ending == ".svg") {
    write_atomically(path, draw::write_svg(scene(), draw::SvgFor::file, figure.title, figure.caption));
  } else if (ending == ".pdf") {
    write_atomically(path,
                     draw::pdf_beginning() +
                         draw::write_pdf_rest(scene(), column ? kColumnMillimetres : kPageMillimetres, figure.title));
  } else if (ending == ".png") {
    write_atomically(path, draw::write_png(scene(), kPngScale));
  } else if (ending == ".csv") {
    write_atomically(path, csv_text(figure.numbers));
  } else {
    fail("'{}' ends in '{}'; a figure is written as .svg, .pdf, .png or .csv", path.string(), ending);
  }
}

}  // namespace norma
