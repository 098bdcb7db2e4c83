#include "report/page/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "norma/core/error.h"
#include "norma/core/xml.h"
#include "report/embedded_page.h"
#include "report/figures/font.h"
#include "report/figures/writers.h"

namespace norma {
namespace {

// Places in web/index.html.
constexpr std::string_view kTitle = "<!--norma:title-->", kFont = "<!--norma:font-->",
                           kArticle = "<!--norma:article-->", kPdf = "/*norma:pdf*/", kKind = "/*norma:kind*/",
                           kData = "/*norma:results*/";

}  // namespace

std::string escaped(std::string_view text) { return xml_text(text); }

std::string base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k)
      group = group << 8 | (i + k < bytes.size() ? static_cast<std::uint8_t>(bytes[i + k]) : 0u);
    for (std::size_t k = 0; k < 4; ++k) text += i + k <= bytes.size() ? kLetters[group >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

// In JSON '<' stands only inside strings, where \u003c is the same character.
std::string json_in_script(std::string json) {
  std::string safe;
  safe.reserve(json.size());
  for (const char c : json) {
    if (c == '<')
      safe += "\\u003c";
    else
      safe += c;
  }
  return safe;
}

std::string typeset(std::string_view text) {
  const auto is = [&](std::size_t at, auto kind) {
    return at < text.size() && kind(static_cast<unsigned char>(text[at])) != 0;
  };
  const auto in_name = [](int c) { return std::isalnum(c) != 0 || c == '-'; };
  std::string html;
  for (std::size_t at = 0; at < text.size();) {
    std::size_t end = at;
    if (text[at] == '^' && (is(at + 1, isdigit) || (at + 2 < text.size() && text[at + 1] == '-'))) {
      for (end = at + 2; is(end, isdigit) || (end < text.size() && text[end] == '.' && is(end + 1, isdigit)); ++end) {
      }
      html += "<sup>" + typeset(text.substr(at + 1, end - at - 1)) + "</sup>";
    } else if (text[at] == '-' && is(at + 1, isdigit) && (at == 0 || text[at - 1] == ' ' || text[at - 1] == '(')) {
      html += "\u2212";
      end = at + 1;
    } else if (is(at, isalpha)) {
      while (is(end, in_name)) ++end;
      const std::string_view word = text.substr(at, end - at);
      const std::size_t hyphen = word.find('-');
      const bool name = hyphen != std::string_view::npos && is(at + hyphen + 1, isupper) && word.size() < 20;
      html += name ? fmt::format("<span class=\"whole\">{}</span>", word) : std::string(word);
    } else {
      while (end < text.size() && (end == at || (!is(end, isalpha) && text[end] != '^' && text[end] != '-'))) ++end;
      html += escaped(text.substr(at, end - at));
    }
    at = end;
  }
  return html;
}

std::string paragraph(std::string_view text, std::string_view css_class) {
  if (text.empty()) return "";
  return css_class.empty() ? fmt::format("<p>{}</p>\n", typeset(text))
                           : fmt::format("<p class=\"{}\">{}</p>\n", css_class, typeset(text));
}

std::string folded(std::string_view summary, std::string_view html, std::string_view id) {
  if (html.empty()) return "";
  return fmt::format("<details{}><summary>{}</summary>\n{}</details>\n",
                     id.empty() ? "" : fmt::format(" id=\"{}\"", escaped(id)), escaped(summary), html);
}

std::string section(std::string_view id, std::string_view title, std::string_view html) {
  if (html.empty()) return "";
  return fmt::format(
      "<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n{2}</section>\n", id,
      escaped(title), html);
}

std::string preformatted(std::string_view text, std::string_view label) {
  if (text.empty()) return "";
  std::string lines;  // escaped() leaves no line ends
  for (std::size_t at = 0, end = 0; at <= text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    lines += (at == 0 ? "" : "\n") + escaped(text.substr(at, end - at));
  }
  return fmt::format("<pre tabindex=\"0\" role=\"group\" aria-label=\"{}\">{}</pre>\n", escaped(label), lines);
}

std::string table(std::string_view caption, const HtmlTable& table) {
  if (table.rows.empty()) return "";
  std::string html = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
      "aria-label=\"{0}\"><table>\n<caption>{0}</caption>\n<thead><tr>",
      escaped(caption));
  for (const std::string& column : table.columns) html += fmt::format("<th scope=\"col\">{}</th>", escaped(column));
  html += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", escaped(row[i]))
                     : fmt::format("<td>{}</td>", escaped(row[i]));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

std::string page_of(const Article& article) {
  const std::string_view page = embedded_page();
  std::string made;
  std::size_t at = 0;
  const auto fill = [&](std::string_view hole, const std::string& with) {
    const std::size_t found = page.find(hole, at);
    NORMA_ASSERT(found != std::string_view::npos);
    made += page.substr(at, found - at);
    made += with;
    at = found + hole.size();
  };
  fill(kTitle, escaped(article.title));
  // Figures are laid out with the widths of this font; others are up to a fifth wider.
  fill(kFont, "<style>@font-face{font-family:Arimo;src:url(data:font/ttf;base64," + base64(draw::embedded_font()) +
                  ")}</style>");
  fill(kArticle, article.html);
  fill(kPdf, base64(draw::pdf_beginning()));
  fill(kKind, article.kind);
  fill(kData, json_in_script(article.data));
  made += page.substr(at);
  return made;
}

}  // namespace norma
