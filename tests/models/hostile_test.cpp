// Scheme files that make no sense end in an Error with a message, whatever they say.
#include <algorithm>
#include <array>

#include "models/model_check.h"

namespace norma {
namespace {

// Pieces that formulas are made of, right or wrong.
constexpr std::array<std::string_view, 45> kPieces = {
    "x",          "x0",      "H",        "V",          "w",     "f(x)",      "norm(x)",
    "rmsnorm(x)", "dyt(x)",  "l",        "k",          "N",     "d",         "0",
    "1",          "-1",      "1e308",    "0.5",        "unit(", "weigh(",    "mix(",
    "spread(",    "append(", "copies(",  "matrix(",    "flat(", "sinkhorn(", "sum(",
    "dot(",       "matmul(", "softmax(", "transpose(", "sg(",   "sqrt(",     "if l == 1 then x else ",
    "; x = ",     "; H = ",  ", ",       ")",          "(",     " + ",       " - ",
    "*",          "/",       "^"};

// Text with a few pieces replaced, dropped or put in.
std::string mutated(std::string text, const RandomStream& random, std::uint64_t at) {
  const std::uint64_t edits = 1 + random.below(at, 3);
  for (std::uint64_t edit = 1; edit <= edits; ++edit) {
    const std::size_t place = random.below(at + 7 * edit, text.size() + 1);
    const std::size_t length = random.below(at + 7 * edit + 1, std::min<std::size_t>(6, text.size() - place + 1));
    const std::string_view piece = kPieces[random.below(at + 7 * edit + 2, kPieces.size())];
    text.replace(place, length, random.below(at + 7 * edit + 3, 4) == 0 ? std::string_view() : piece);
  }
  return text;
}

void build(const Scheme& scheme) {
  Graph graph;
  Parameters parameters(graph, DType::f32);
  const Wire x = graph.input("x", {{2, 3, 8}, DType::f32});
  const Wire memory = graph.input("memory", {{2, 5, 8}, DType::f32});
  build_stack(parameters, scheme,
              {.branches = transformer_layer(Memory::present),
               .layers = 2,
               .heads = 2,
               .kind = StackKind::decoder,
               .other_layers = 2,
               .memory = memory},
              x);
}

TEST(Hostile, MutatedFormulasEndInAnErrorOrAModel) {
  const RandomStream random(1, "mutations");
  int built = 0, refused = 0;
  std::uint64_t at = 0;
  for (const Scheme& original : catalogue()) {
    for (int round = 0; round < 120; ++round) {
      Scheme scheme = original;
      std::string text;
      try {
        for (auto& [key, formula] : scheme.formulas) {
          text = mutated(formula.text, random, at += 40);
          formula = parse_formula(text);
        }
        build(scheme);
        ++built;
      } catch (const Error& error) {
        EXPECT_NE(std::string(error.what()), "");
        ++refused;
      } catch (const std::exception& error) {
        FAIL() << original.name << ": " << text << "\n  " << error.what();
      }
    }
  }
  EXPECT_GT(built, 20);
  EXPECT_GT(refused, 1000);
}

TEST(Hostile, LearnedValuesAreBounded) {
  const auto error = [](const std::string& learned) {
    return test::error_of([&] { build(parse_scheme("mine", "sublayer = \"x + g*f(x)\"\n[learned]\ng = " + learned)); });
  };
  EXPECT_EQ(error("{ init = 0, shape = [\"1e9\", \"1e9\"] }"),
            "scheme 'mine': learned.g would have 1e+18 elements; at most 1000000000 are made");
  EXPECT_EQ(error("{ init = 0, shape = [\"1e10\"] }"),
            "scheme 'mine': a size of learned.g is 10000000000; expected a whole number from 1 to 1000000000");
  EXPECT_EQ(error("{ init = \"i\", shape = [\"1e8\"] }"),
            "scheme 'mine': learned.g has 100000000 elements, too many to start each by itself");
  EXPECT_EQ(error("{ init = 0, stored = 1 }"), "scheme 'mine': learned.g and what is stored must not be 0");
  EXPECT_EQ(error("{ init = 0, shape = [0.5] }"),
            "scheme 'mine': a size of learned.g is 0.5; expected a whole number from 1 to 1000000000");
}

}  // namespace
}  // namespace norma
