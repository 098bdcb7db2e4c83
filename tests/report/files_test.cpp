// Figures as files: what a reader of SVG, PDF, PNG and CSV checks first.
#include <gtest/gtest.h>
#include <zlib.h>

#include <fstream>
#include <sstream>

#include "norma/core/error.h"
#include "norma/report/figure.h"
#include "report/figures/csv.h"
#include "report/figures/raster.h"
#include "report/figures/writers.h"
#include "results/made_up.h"
#include "temporary_folder.h"

namespace norma {
namespace {

draw::Scene small_scene() {
  draw::Scene scene{.width = 100, .height = 50, .marks = {}, .spots = {}};
  scene.add(draw::Shape{.points = draw::box(10, 10, 20, 20), .closed = true, .fill = {.tone = draw::Tone::ink}});
  scene.add(draw::Shape{.points = {{50, 10}, {90, 10}},
                        .stroke = {.tone = draw::Tone::lead, .opacity = 0.5},
                        .width = 4,
                        .dash = 5,
                        .scheme = 1});
  scene.add(draw::Text{.at = {5, 45}, .text = "a<b & \"c\"", .size = 10});
  return scene;
}

std::uint32_t number_at(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<std::uint8_t>(bytes[at + i]);
  return value;
}

TEST(Svg, EscapesTextsAndKnowsItsPlace) {
  const std::string file = draw::write_svg(small_scene(), draw::SvgFor::file, "T<", "C&");
  EXPECT_NE(file.find(">a&lt;b &amp; &quot;c&quot;</text>"), std::string::npos) << file;
  EXPECT_NE(file.find("<title>T&lt;</title>"), std::string::npos);
  EXPECT_EQ(file.find("class="), std::string::npos) << "a file needs no style";
  const std::string page = draw::write_svg(small_scene(), draw::SvgFor::page, "T<", "C&");
  EXPECT_NE(page.find("class=\"s-lead\" data-s=\"1\""), std::string::npos) << page;
  EXPECT_NE(page.find("aria-label=\"T&lt;\""), std::string::npos);
}

TEST(Pdf, EveryObjectIsWhereTheTableSays) {
  const std::string file = draw::pdf_beginning() + draw::write_pdf_rest(small_scene(), 85, "A title");
  EXPECT_TRUE(file.starts_with("%PDF-1.5\n"));
  EXPECT_TRUE(file.ends_with("%%EOF\n"));
  const std::size_t start = file.rfind("startxref\n") + 10;
  const std::size_t table = std::stoul(file.substr(start));
  ASSERT_EQ(file.substr(table, 5), "xref\n");
  std::istringstream rows(file.substr(table + 5));
  std::string line;
  std::getline(rows, line);
  EXPECT_EQ(line, "0 11");
  std::getline(rows, line);
  for (int object = 1; object <= 10; ++object) {
    std::getline(rows, line);
    const std::string begin = std::to_string(object) + " 0 obj\n";
    EXPECT_EQ(file.substr(std::stoul(line), begin.size()), begin) << line;
  }
  EXPECT_NE(file.find("/MediaBox[0 0 240.94 120.47]"), std::string::npos) << "85 mm wide";
}

// Inflates the only data chunk and looks at pixels.
TEST(Png, HasThePixelsOfTheScene) {
  const std::string file = draw::write_png(small_scene(), 2);
  ASSERT_EQ(file.substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_EQ(number_at(file, 16), 200u);
  EXPECT_EQ(number_at(file, 20), 100u);
  const std::size_t chunk = file.find("IDAT");
  std::string rows(100 * 601, '\0');
  uLongf size = rows.size();
  ASSERT_EQ(uncompress(reinterpret_cast<Bytef*>(rows.data()), &size,
                       reinterpret_cast<const Bytef*>(file.data() + chunk + 4), number_at(file, chunk - 4)),
            Z_OK);
  ASSERT_EQ(size, rows.size());
  const auto red = [&](std::size_t x, std::size_t y) {
    return static_cast<int>(static_cast<std::uint8_t>(rows[y * 601 + 1 + 3 * x]));
  };
  EXPECT_EQ(red(40, 40), 28) << "ink, inside the box";
  EXPECT_EQ(red(70, 40), 255) << "paper";
  EXPECT_NEAR(red(104, 20), (255 + 11) / 2, 2) << "half of the leading colour, in the first dash";
  EXPECT_EQ(red(115, 20), 255) << "between dashes";
}

TEST(Raster, OverlappingPiecesOfAPenDoNotCancel) {
  draw::Canvas canvas(40, 40);
  canvas.fill(draw::stroked({{5, 5}, {35, 5}, {5, 8}}, false, 6), {.tone = draw::Tone::ink});
  EXPECT_EQ(canvas.pixels()[3 * (6 * 40 + 10)], 28);
}

TEST(Csv, QuotesAndDisarms) {
  EXPECT_EQ(csv_text({.columns = {"a", "b"}, .rows = {{"=1+1", "-2.5"}, {"x,\"y\"\n", "+z"}, {" @a", "1e-3"}}}),
            "a,b\r\n'=1+1,-2.5\r\n\"x,\"\"y\"\"\n\",'+z\r\n' @a,1e-3\r\n");
}

TEST(Files, AreWrittenByTheirEnding) {
  const test::TemporaryFolder folder;
  const std::vector<Figure> figures = figures_of(test::made_up_results(ResultsKind::study));
  for (const auto& [ending, begin] : {std::pair("svg", "<svg "), std::pair("pdf", "%PDF"), std::pair("png", "\x89PNG"),
                                      std::pair("csv", "scheme,")}) {
    for (const FigureWidth width : {FigureWidth::page, FigureWidth::column}) {
      const std::filesystem::path path = folder / (std::string("f.") + ending);
      write_figure(path, find_figure(figures, "loss"), width);
      std::ostringstream text;
      text << std::ifstream(path, std::ios::binary).rdbuf();
      EXPECT_TRUE(text.str().starts_with(begin)) << ending;
    }
  }
  try {
    write_figure(folder / "f.jpg", find_figure(figures, "loss"), FigureWidth::page);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("ends in '.jpg'; a figure is written as .svg, .pdf, .png or .csv"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace norma
