// Pieces of a page. Texts of others go through `escaped` and nothing else; what is called html here is made by us.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "norma/report/figure.h"

namespace norma {

std::string escaped(std::string_view text);
std::string base64(std::string_view bytes);
std::string json_in_script(std::string json);  // no '<' in it, so that nothing ends the element

// Escaped, with exponents raised ("N^-0.5"), minus signs, and names that do not break at their hyphen ("Pre-LN").
std::string typeset(std::string_view text);
std::string paragraph(std::string_view text, std::string_view css_class = "");
// Folded away; `html` is what opens.
std::string folded(std::string_view summary, std::string_view html, std::string_view id = "");
std::string section(std::string_view id, std::string_view title, std::string_view html);
std::string preformatted(std::string_view text, std::string_view label);
// A table of texts; cells of `numeric` columns are set to the right.
struct HtmlTable {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows = {};
};
std::string table(std::string_view caption, const HtmlTable& table);

enum class Drawn { twice, once };  // for wide and narrow screens; or for wide ones alone, where it is folded away

// With caption, drawing, and what its menu and pointing need. `number` 0: none.
std::string figure_html(const Figure& figure, int number, Drawn drawn);

// The page around an article; `data` is the JSON that it was made from.
struct Article {
  std::string title;  // of the window
  std::string kind;   // of the results, for the names of files
  std::string html;
  std::string data;
};
std::string page_of(const Article& article);

}  // namespace norma
