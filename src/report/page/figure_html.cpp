// A figure of a page: the drawings, and beside them the numbers, the rest of the PDF and what can be pointed at.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/figures/csv.h"
#include "report/figures/sizes.h"
#include "report/figures/writers.h"
#include "report/page/html.h"

namespace norma {
namespace {

using PageJson = nlohmann::ordered_json;

PageJson spots_of(const draw::Scene& scene) {
  PageJson spots = PageJson::array();
  for (const draw::Spot& spot : scene.spots) {
    spots.push_back({std::round(10 * spot.at.x) / 10, std::round(10 * spot.at.y) / 10, spot.scheme, spot.text});
  }
  return spots;
}

std::string drawing(const draw::Scene& scene, const Figure& figure, std::string_view css_class) {
  return fmt::format("<div class=\"drawing {}\">{}</div>\n", css_class,
                     draw::write_svg(scene, draw::SvgFor::page, figure.title, figure.caption));
}

}  // namespace

std::string figure_html(const Figure& figure, int number, Drawn drawn) {
  const draw::Scene wide = figure.draw(kPageUnits), narrow = figure.draw(kColumnUnits);
  PageJson data = {{"title", figure.title},
                   {"caption", figure.caption},
                   {"csv", csv_text(figure.numbers)},
                   {"pdf", base64(draw::write_pdf_rest(narrow, kColumnMillimetres, figure.title))},
                   {"wide", spots_of(wide)}};
  if (drawn == Drawn::twice) data["narrow"] = spots_of(narrow);
  const std::string drawings = drawn == Drawn::twice ? drawing(wide, figure, "wide") + drawing(narrow, figure, "narrow")
                                                     : drawing(wide, figure, "only");
  const std::string name =
      number > 0 ? fmt::format("<b>Figure {}.</b> ", number) : fmt::format("<b>{}.</b> ", escaped(figure.title));
  return fmt::format(
      "<figure id=\"{}\">\n{}<figcaption>{}{}</figcaption>\n<script type=\"application/json\" "
      "class=\"figure-data\">{}</script>\n</figure>\n",
      escaped(figure.id), drawings, name, escaped(figure.caption),
      json_in_script(data.dump(-1, ' ', false, PageJson::error_handler_t::replace)));
}

}  // namespace norma
