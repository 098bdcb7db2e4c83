// Scenes as files.
#pragma once

#include <string>
#include <string_view>

#include "report/figures/scene.h"

namespace norma::draw {

enum class SvgFor {
  file,  // stands alone, on paper
  page,  // inside HTML: tones and schemes are classes that a style can change
};

// `title` and `caption` are for those who do not see the drawing.
std::string write_svg(const Scene& scene, SvgFor place, std::string_view title, std::string_view caption);

// One page of exactly the size of the drawing, `millimetres` wide. The file is pdf_beginning() and write_pdf_rest(),
// so that many of them in one place can share the beginning, which has the font.
std::string pdf_beginning();
std::string write_pdf_rest(const Scene& scene, double millimetres, std::string_view title);

std::string write_png(const Scene& scene, double scale);

// Rows of red, green and blue from the top; `scale` pixels are one of 96 on an inch.
std::string png_file(int width, int height, std::string_view rgb, double scale);

std::string deflated(std::string_view bytes);  // as zlib does
std::string number_text(double value);         // at most two decimals

}  // namespace norma::draw
