// The printers against golden files in tests/golden. NORMA_UPDATE_GOLDEN=1 writes them anew; look at the difference.
#include "norma/graph/print.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "check.h"
#include "graph/layered.h"
#include "graph/test_ops.h"
#include "places.h"

namespace norma {
namespace {

namespace fs = std::filesystem;

void expect_golden(const std::string& file, const std::string& text) {
  const fs::path path = fs::path(test::kSourceFolder) / "tests" / "golden" / file;
  if (std::getenv("NORMA_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << text;
  std::ifstream stream(path);
  ASSERT_TRUE(stream) << path << " does not exist";
  std::stringstream golden;
  golden << stream.rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

// Two residual layers, x + f(norm(x)) each, with a mean-square loss.
void build_residual(Graph& g) {
  Wire x = g.input("x", {{6, 4}, DType::f32});
  for (int layer = 0; layer < 2; ++layer) {
    const auto scope = g.scope("layers." + std::to_string(layer));
    const Wire gain = g.parameter("norm.gain", {{4}, DType::f32});
    const Wire normed = x / sqrt(mean_last(square(x)) + 1e-5) * gain;
    x = x + test::gate(normed, normed * g.parameter("w", {{4}, DType::f32}));
  }
  g.output("y", x);
}

void build_training(Graph& g) {
  build_residual(g);
  const Wire y(&g, g.outputs()[0].value);
  const Wire loss = mean_all(square(y - g.input("target", {{6, 4}, DType::f32})));
  g.output("loss", loss);
  const Wires gradients = differentiate(loss, g.parameters());
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("d/" + g.parameters()[i].name(), gradients[i]);
}

TEST(Print, Forward) {
  Graph g;
  build_residual(g);
  expect_golden("residual.txt", print_text(g));
  expect_golden("residual.dot", print_dot(g));
  expect_golden("residual.svg", print_svg(g));
}

TEST(Print, Training) {
  Graph g;
  build_training(g);
  expect_golden("training.txt", print_text(g));
  expect_golden("training.svg", print_svg(g));
}

TEST(Print, BackwardCanBeLeftOut) {
  Graph g;
  build_training(g);
  const PrintOptions forward{.backward = false};
  for (const std::string& text : {print_text(g, forward), print_dot(g, forward), print_svg(g, forward)}) {
    EXPECT_EQ(text.find("backward,"), std::string::npos);
    EXPECT_EQ(text.find("d/layers.0.w"), std::string::npos);
    EXPECT_NE(text.find("loss"), std::string::npos);
  }
}

TEST(Print, NamesAreEscaped) {
  Graph g;
  const auto scope = g.scope("a<b>&\"c\"\\");
  g.output("<script>alert(\"x\")</script>", tanh(g.input("in\"put", {{2}, DType::f32})));
  const std::string svg = print_svg(g), dot = print_dot(g);
  EXPECT_EQ(svg.find("<script>"), std::string::npos);
  EXPECT_NE(svg.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(svg.find("a&lt;b&gt;&amp;&quot;c&quot;\\"), std::string::npos);
  EXPECT_NE(dot.find("label=\"a<b>&\\\"c\\\"\\\\\""), std::string::npos);
}

TEST(Print, AnEmptyGraph) {
  Graph g;
  EXPECT_EQ(print_text(g), "");
  EXPECT_NE(print_svg(g).find("</svg>"), std::string::npos);
}

// Hundreds of layers with edges across all of them stay quick to draw.
TEST(Print, ADeepGraph) {
  Graph g;
  const Wire x = g.input("x", {{4}, DType::f32});
  Wire y = x;
  for (int layer = 0; layer < 500; ++layer) {
    const auto scope = g.scope("layers." + std::to_string(layer));
    y = tanh(y) * x + y;
  }
  g.output("y", y);
  EXPECT_LT(print_svg(g).size(), std::size_t{3} << 20);
}

TEST(Layered, BoxesOfARowNeverOverlap) {
  const RandomStream random(1, "layered");
  std::uint64_t draw = 0;
  std::vector<Box> boxes(60);
  std::vector<Edge> edges;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    boxes[i] = {.width = 20 + static_cast<double>(random.below(draw++, 100)),
                .height = 20,
                .rank = static_cast<int>(random.below(draw++, 12))};
  }
  for (int i = 0; i < 100; ++i) {
    const int a = static_cast<int>(random.below(draw++, 60)), b = static_cast<int>(random.below(draw++, 60));
    if (boxes[static_cast<std::size_t>(a)].rank < boxes[static_cast<std::size_t>(b)].rank) edges.push_back({a, b});
  }
  const Extent extent = place_boxes(boxes, edges);
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    EXPECT_GE(boxes[i].x - boxes[i].width / 2, -1e-6);
    EXPECT_LE(boxes[i].x + boxes[i].width / 2, extent.width + 1e-6);
    for (std::size_t j = 0; j < i; ++j) {
      if (boxes[i].rank != boxes[j].rank) continue;
      EXPECT_GE(std::abs(boxes[i].x - boxes[j].x), (boxes[i].width + boxes[j].width) / 2) << i << " " << j;
    }
  }
  for (const Edge& edge : edges) {
    for (std::size_t i = 1; i < edge.points.size(); ++i) {
      EXPECT_LE(edge.points[i - 1].second, edge.points[i].second);  // always downwards
    }
  }
}

}  // namespace
}  // namespace norma
