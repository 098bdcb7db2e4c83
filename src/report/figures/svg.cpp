#include <fmt/format.h>

#include <array>
#include <cmath>

#include "norma/core/xml.h"
#include "report/figures/writers.h"

namespace norma::draw {
namespace {

constexpr std::string_view kFamily = "Arimo, 'Liberation Sans', Arial, Helvetica, sans-serif";

// Letters of the classes that web/src/style.css gives colours to.
std::string_view letter_of(Tone tone) {
  constexpr std::array<std::string_view, 9> kNames = {"",     "ink",  "muted", "grid", "paper",
                                                      "lead", "base", "rest",  "ramp"};
  return kNames[static_cast<std::size_t>(tone)];
}

std::string hex(Rgb colour) { return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue); }

// The ramp has too many colours for classes. web/src/export.ts takes the first of the two.
std::string colour_text(const Paint& paint, SvgFor place) {
  const std::string light = hex(colour_of(paint));
  if (place == SvgFor::file || paint.tone != Tone::ramp) return light;
  return fmt::format("light-dark({}, {})", light, hex(colour_on_dark(paint.level)));
}

void paint_attributes(std::string& out, std::string_view name, const Paint& paint, SvgFor place) {
  if (paint.tone == Tone::none) return;
  out += fmt::format(" {}=\"{}\"", name, colour_text(paint, place));
  if (paint.opacity < 1) out += fmt::format(" {}-opacity=\"{}\"", name, number_text(paint.opacity));
}

// Which classes a page finds a mark by.
void class_attributes(std::string& out, const Paint& fill, const Paint& stroke, int scheme) {
  std::string names;
  if (fill.tone != Tone::none && fill.tone != Tone::ramp) names += fmt::format("f-{}", letter_of(fill.tone));
  if (stroke.tone != Tone::none && stroke.tone != Tone::ramp) {
    names += fmt::format("{}s-{}", names.empty() ? "" : " ", letter_of(stroke.tone));
  }
  if (!names.empty()) out += fmt::format(" class=\"{}\"", names);
  if (scheme >= 0) out += fmt::format(" data-s=\"{}\"", scheme);
}

void append(std::string& out, const Shape& shape, SvgFor place) {
  if (shape.points.size() < 2) return;
  std::string path = "M";
  for (std::size_t i = 0; i < shape.points.size(); ++i) {
    if (i > 0) path += i == 1 ? 'L' : ' ';
    path += number_text(shape.points[i].x) + " " + number_text(shape.points[i].y);
  }
  if (shape.closed) path += "Z";
  out += "<path";
  if (place == SvgFor::page) class_attributes(out, shape.fill, shape.stroke, shape.scheme);
  out += fmt::format(" d=\"{}\"", path);
  if (shape.fill.tone == Tone::none) out += " fill=\"none\"";
  paint_attributes(out, "fill", shape.fill, place);
  paint_attributes(out, "stroke", shape.stroke, place);
  if (shape.stroke.tone != Tone::none) {
    if (shape.width != 1) out += fmt::format(" stroke-width=\"{}\"", number_text(shape.width));
    if (shape.dash > 0) out += fmt::format(" stroke-dasharray=\"{}\"", number_text(shape.dash));
  }
  out += "/>\n";
}

void append(std::string& out, const Text& text, SvgFor place) {
  constexpr std::array<std::string_view, 3> kAnchors = {"start", "middle", "end"};
  out += fmt::format("<text x=\"{}\" y=\"{}\"", number_text(text.at.x), number_text(text.at.y));
  if (place == SvgFor::page) class_attributes(out, text.paint, {}, text.scheme);
  if (text.anchor != Anchor::start) {
    out += fmt::format(" text-anchor=\"{}\"", kAnchors[static_cast<std::size_t>(text.anchor)]);
  }
  if (text.upwards) {
    out += fmt::format(" transform=\"rotate(-90 {} {})\"", number_text(text.at.x), number_text(text.at.y));
  }
  paint_attributes(out, "fill", text.paint, place);
  out += fmt::format(" font-size=\"{}\">{}</text>\n", number_text(text.size), xml_text(text.text));
}

}  // namespace

std::string number_text(double value) {
  std::string text = fmt::format("{:.2f}", value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string write_svg(const Scene& scene, SvgFor place, std::string_view title, std::string_view caption) {
  const std::string size = fmt::format("{} {}", number_text(scene.width), number_text(scene.height));
  std::string out;
  if (place == SvgFor::file) {
    out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {}\" width=\"{}\" height=\"{}\" role=\"img\" "
        "font-family=\"{}\" stroke-linecap=\"round\" stroke-linejoin=\"round\">\n<title>{}</title>\n<desc>{}</desc>\n"
        "<path d=\"M0 0H{}V{}H0Z\" fill=\"#ffffff\"/>\n",
        size, number_text(scene.width), number_text(scene.height), kFamily, xml_text(title), xml_text(caption),
        number_text(scene.width), number_text(scene.height));
  } else {
    out = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {}\" width=\"{}\" height=\"{}\" role=\"img\" "
        "aria-label=\"{}\" font-family=\"{}\" stroke-linecap=\"round\" stroke-linejoin=\"round\">\n",
        size, number_text(scene.width), number_text(scene.height), xml_text(title), kFamily);
  }
  for (const auto& mark : scene.marks) std::visit([&](const auto& one) { append(out, one, place); }, mark);
  return out + "</svg>\n";
}

}  // namespace norma::draw
