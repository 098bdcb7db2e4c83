// Diagrams of the whole catalogue against golden files, and of formulas that nobody drew before.
#include "norma/schemes/diagram.h"

#include <algorithm>
#include <set>

#include "check.h"
#include "places.h"
#include "schemes/diagram_parts.h"
#include "schemes/golden.h"
#include "schemes/named.h"

namespace norma {
namespace {

using test::error_of;
using Kind = DiagramPart::Kind;

std::size_t columns_of(const std::string& line) {
  return static_cast<std::size_t>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// Every wiring of the scheme, and the layer with cross-attention where the scheme has a formula of its own for it.
std::string all_diagrams(const Scheme& scheme) {
  std::string text;
  for (const Wiring& wiring : wirings(scheme)) {
    const std::int64_t layer = wiring.layers.front().first;
    text +=
        fmt::format("{}, {} of 12\n\n{}\n", scheme.title, print_layers(wiring), diagram_text(scheme, {.layer = layer}));
  }
  if (scheme.formula("cross") != nullptr || scheme.formula("cross_layer") != nullptr) {
    text += fmt::format("{}, with cross-attention\n\n{}\n", scheme.title,
                        diagram_text(scheme, {.branches = usual_branches(Memory::present)}));
  }
  return text;
}

TEST(Diagram, EverySchemeOfTheCatalogueIsDrawnAsBefore) {
  for (const Scheme& scheme : catalogue()) {
    SCOPED_TRACE(scheme.name);
    test::expect_golden("diagrams/" + scheme.name + ".txt", all_diagrams(scheme));
    test::expect_golden("diagrams/" + scheme.name + ".svg", diagram_svg(scheme));
  }
}

TEST(Diagram, NoGoldenFileIsLeftBehind) {
  std::set<std::string> names;
  for (const Scheme& scheme : catalogue()) names.insert(scheme.name);
  const std::filesystem::path folder = std::filesystem::path(test::kSourceFolder) / "tests" / "golden" / "diagrams";
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    EXPECT_TRUE(names.contains(entry.path().stem().string())) << entry.path();
}

TEST(Diagram, LinesStayWithinTheirColumns) {
  for (const Scheme& scheme : catalogue()) {
    for (const std::string& line : test::lines_of(diagram_text(scheme)))
      EXPECT_LE(columns_of(line), kDiagramColumns) << scheme.name << ": " << line;
  }
}

TEST(Diagram, ASumKeepsTheStreamStraight) {
  const DiagramParts parts = diagram_parts(test::scheme_named("x + f(norm(x))"), {});
  const DiagramLayout layout = place_parts(parts);
  int sums = 0, branches = 0;
  for (const DiagramPart& part : layout.parts) {
    if (part.kind == Kind::add) {
      EXPECT_EQ(part.lane, 0);
      ++sums;
    }
    if (part.tone == DiagramPart::Tone::branch) {
      EXPECT_EQ(part.lane, 1);
      ++branches;
    }
  }
  EXPECT_EQ(sums, 2);
  EXPECT_EQ(branches, 2);
}

TEST(Diagram, EveryLineHasTwoEndsAndNoTwoShareALane) {
  std::vector<Scheme> schemes = catalogue();
  for (const char* formula : {"a = f(norm(x)); b = mix(x, a, 3); c = x*b; a - c - x/b + 1", "x + x", "-f(x)",
                              "y = f(x); z = f(y); x + y + z + norm(x + y) + norm(y + z)", "unheard(x, of = f(x))"})
    schemes.push_back(test::scheme_named(formula));
  for (const Scheme& scheme : schemes) {
    SCOPED_TRACE(scheme.name + " " + scheme.formulas.begin()->second.text);
    const DiagramLayout layout = place_parts(diagram_parts(scheme, {}));
    for (std::size_t i = 0; i < layout.lines.size(); ++i) {
      EXPECT_LT(layout.lines[i].from, layout.lines[i].to);
      for (std::size_t j = 0; j < i; ++j) {
        const DiagramLine &a = layout.lines[i], &b = layout.lines[j];
        EXPECT_TRUE(a.lane != b.lane || a.to <= b.from || b.to <= a.from) << "lane " << a.lane;
      }
    }
    for (const DiagramPart& part : layout.parts) {
      EXPECT_GE(part.lane, 0);
      EXPECT_GE(part.band, 0);
      for (const DiagramPart::Operand& operand : part.operands)
        EXPECT_LT(layout.parts[static_cast<std::size_t>(operand.part)].band, part.band);
    }
  }
}

TEST(Diagram, WhatItDoesNotKnowIsALabelledBox) {
  const std::string text = diagram_text(test::scheme_named("x + gate(f(norm(x)), 0.5, width = d)"));
  EXPECT_NE(text.find("gate(0.5, width = d)"), std::string::npos) << text;
  EXPECT_NE(diagram_svg(test::scheme_named("x + gate(f(x), 0.5)")).find(">gate(0.5)<"), std::string::npos);
}

TEST(Diagram, WhatReadsNoWireIsAMistake) {
  EXPECT_EQ(error_of([] { diagram_text(test::scheme_named("x + f(norm(l))")); }),
            "norm reads no wire such as x\n  x + f(norm(l))\n        ^^^^^^^");
  EXPECT_NE(error_of([] { diagram_svg(test::scheme_named("x + f()")); }).find("f reads no wire"), std::string::npos);
}

TEST(Diagram, ConditionsChooseAWiringAndAreMentioned) {
  const Scheme mix = test::scheme_named("mix");
  const std::vector<Wiring> found = wirings(mix, {.layers = 12});
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(print_layers(found[0]), "layers 4-12");
  EXPECT_EQ(print_layers(found[1]), "layers 1-3");
  EXPECT_NE(
      diagram_text(mix, {.layers = 12, .layer = 2}).find("drawn: layers 1-3 of 12\nwired differently: layers 4-12"),
      std::string::npos);
  EXPECT_EQ(wirings(mix, {.layers = 3}).size(), 1u) << "too shallow for a Post-LN part";
  EXPECT_EQ(error_of([&] { diagram_text(mix, {.layers = 12, .layer = 13}); }), "there is no layer 13 in a stack of 12");
}

TEST(Diagram, BothStreamsOfATwoStreamSchemeAreDrawn) {
  const DiagramLayout layout = place_parts(diagram_parts(test::scheme_named("residual"), {}));
  std::set<int> input_lanes;
  for (const DiagramPart& part : layout.parts) {
    if (part.kind == Kind::input) input_lanes.insert(part.lane);
  }
  EXPECT_EQ(input_lanes, (std::set<int>{0, layout.lanes - 1})) << "branches stand between the streams";
}

TEST(Diagram, AStartOfTheMainStreamIsItsLabel) {
  const DiagramLayout layout = place_parts(diagram_parts(test::scheme_named("dyt"), {}));
  int inputs = 0, outputs = 0;
  for (const DiagramPart& part : layout.parts) {
    inputs += part.kind == Kind::input;
    outputs += part.kind == Kind::output;
    EXPECT_TRUE(part.kind != Kind::input || part.label == "x = e*x0") << part.label;
  }
  EXPECT_EQ(inputs, 1);
  EXPECT_EQ(outputs, 1);
}

TEST(Diagram, SvgIsSelfContainedAndEscaped) {
  Scheme scheme = test::scheme_named("x + f(norm(x))");
  scheme.title = "<script>alert(\"x\")</script>";
  const std::string svg = diagram_svg(scheme);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  for (const char* part : {"<title id=", "<desc id=", "prefers-color-scheme: dark", "currentColor", "role=\"img\""})
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  EXPECT_EQ(svg.find("http", svg.find("viewBox")), std::string::npos) << "nothing is loaded from elsewhere";
}

TEST(Diagram, TooWideForTextIsSaidAndStillDrawnAsSvg) {
  std::string formula = "a0 = f(x)";
  std::string sum = "x";
  for (int i = 1; i < 40; ++i) {
    formula += fmt::format("; a{} = f(a{})", i, i - 1);
    sum += fmt::format(" + norm(a{} + x)", i);
  }
  const Scheme scheme = test::scheme_named(formula + "; " + sum);
  EXPECT_NE(error_of([&] { diagram_text(scheme); }).find("columns and 100 are drawn"), std::string::npos);
  EXPECT_NE(diagram_svg(scheme).find("</svg>"), std::string::npos);
}

}  // namespace
}  // namespace norma
