// Thousands of formulas that nobody drew before: each is printed as it is read, and drawn with no reading left out.
#include <algorithm>

#include "check.h"
#include "schemes/diagram_parts.h"
#include "schemes/formula_generator.h"
#include "schemes/named.h"

namespace norma {
namespace {

using test::FormulaGenerator;

// Every operand arrives: one from below, each of the others from the side; and no two lines share a lane.
void expect_whole(const DiagramLayout& layout) {
  for (const DiagramPart& part : layout.parts) {
    if (part.kind == DiagramPart::Kind::input) continue;
    const auto below = std::count_if(layout.lines.begin(), layout.lines.end(), [&](const DiagramLine& line) {
      return line.lane == part.lane && line.to == part.band;
    });
    std::vector<int> from;
    for (const DiagramMerge& merge : layout.merges) {
      if (merge.band == part.band && merge.to == part.lane) from.push_back(merge.from);
    }
    EXPECT_EQ(below, 1) << part.label;
    EXPECT_EQ(from.size() + 1, part.operands.size()) << part.label;
    std::sort(from.begin(), from.end());
    EXPECT_EQ(std::adjacent_find(from.begin(), from.end()), from.end()) << part.label << ": two at one place";
  }
  for (std::size_t i = 0; i < layout.lines.size(); ++i) {
    const DiagramLine& a = layout.lines[i];
    EXPECT_LT(a.from, a.to);
    for (std::size_t j = 0; j < i; ++j) {
      const DiagramLine& b = layout.lines[j];
      EXPECT_TRUE(a.lane != b.lane || a.to <= b.from || b.to <= a.from) << "lane " << a.lane;
    }
  }
}

void expect_drawn(const std::string& formula) {
  SCOPED_TRACE(formula);
  const Scheme scheme = test::scheme_named(formula);
  const Formula& read = scheme.formulas.begin()->second;
  EXPECT_TRUE(same_formula(parse_formula(print_formula(read)), read));
  expect_whole(place_parts(diagram_parts(scheme, {.layers = 3})));
  EXPECT_NE(diagram_svg(scheme, {.layers = 3}).find("</svg>"), std::string::npos);
  try {
    diagram_text(scheme, {.layers = 3});
  } catch (const Error& error) {  // the only reason to refuse a drawing
    EXPECT_NE(std::string(error.what()).find("columns and 100 are drawn"), std::string::npos) << error.what();
  }
}

TEST(GeneratedFormulas, AWireThatIsReadTwiceIsDrawnTwice) {
  for (const char* formula : {"x + norm(x) + x + f(x)", "x + 0.5*(x + f(x)) + x", "x + x + x + f(x)", "f(x*x) + x*x",
                              "x - x + f(x)", "-x - x + f(x) - x", "a = norm(x); f(a) - a - a + a*a", "f(x) + f(x)"})
    expect_drawn(formula);
  const DiagramLayout layout = place_parts(diagram_parts(test::scheme_named("x + norm(x) + x + f(x)"), {}));
  EXPECT_EQ(layout.merges.size(), 6u) << "three into the sum of each sublayer";
}

TEST(GeneratedFormulas, EveryOneIsDrawn) {
  for (const auto kind : {FormulaGenerator::For::sublayer, FormulaGenerator::For::layer}) {
    for (unsigned seed = 0; seed < 2000 && !::testing::Test::HasFailure(); ++seed)
      expect_drawn(FormulaGenerator(seed, kind).formula());
  }
}

}  // namespace
}  // namespace norma
