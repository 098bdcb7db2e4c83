// Figures show what is in the results, stay inside their frame, and are there for every kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "norma/core/error.h"
#include "norma/report/figure.h"
#include "report/figures/cast.h"
#include "report/figures/font.h"
#include "report/figures/parts.h"
#include "report/figures/sizes.h"
#include "report/figures/writers.h"
#include "results/made_up.h"

namespace norma {
namespace {

using Json = nlohmann::json;

std::vector<std::string> texts_of(const draw::Scene& scene) {
  std::vector<std::string> texts;
  for (const auto& mark : scene.marks) {
    if (const auto* text = std::get_if<draw::Text>(&mark)) texts.push_back(text->text);
  }
  return texts;
}

bool says(const draw::Scene& scene, const std::string& text) {
  const std::vector<std::string> texts = texts_of(scene);
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

// Every point of every mark, letters included.
draw::Point extent(const draw::Scene& scene, bool& inside) {
  draw::Point most;
  const auto see = [&](double x, double y) {
    inside = inside && std::isfinite(x) && std::isfinite(y) && x >= -1 && y >= -1 && x <= scene.width + 2 &&
             y <= scene.height + 2;
    most = {std::max(most.x, x), std::max(most.y, y)};
  };
  for (const auto& mark : scene.marks) {
    if (const auto* shape = std::get_if<draw::Shape>(&mark)) {
      for (const draw::Point& p : shape->points) see(p.x, p.y);
      continue;
    }
    const draw::Text& text = std::get<draw::Text>(mark);
    const double width = draw::Font::get().width(text.text, text.size), back = text.anchor == draw::Anchor::end ? width
                                                                               : text.anchor == draw::Anchor::middle
                                                                                   ? width / 2
                                                                                   : 0;
    if (text.upwards)
      see(text.at.x, text.at.y + back), see(text.at.x, text.at.y + back - width);
    else
      see(text.at.x - back, text.at.y), see(text.at.x - back + width, text.at.y);
  }
  return most;
}

// A study of three schemes: two that train, and one that is not ranked.
Results small_study() {
  Results results = test::made_up_results(ResultsKind::study);
  for (const auto& [name, title] : {std::pair("post", "Post-LN (the first)"), std::pair("leaky", "Leaky")}) {
    results.schemes.push_back(results.schemes.front());
    results.schemes.back().name = name;
    results.schemes.back().title = title;
  }
  results.maps[0].rest = "";
  results.tuned.resize(1);
  results.tuned[0].loss = {1.955, 1.95, 1.96, 3};
  results.tuned.push_back(results.tuned[0]);
  results.tuned[1].scheme = "post";
  results.tuned[1].loss = {1.6, 1.5, 1.7, 3};
  results.tuned.push_back(results.tuned[0]);
  results.tuned[2].scheme = "leaky";
  results.tuned[2].loss = {0.333, 0.3, 0.35, 3};
  results.verdicts = {{"pre", 2, Judgement::stable, "words"},
                      {"post", 1, Judgement::stable, "words"},
                      {"leaky", 0, Judgement::untested, "It sees the future. More."}};
  results.advice.choice = "post";
  results.advice.ranking = {"post", "pre"};
  return results;
}

TEST(Figures, OfEveryKindStayInsideTheirFrame) {
  for (const ResultsKind kind : {ResultsKind::inspect, ResultsKind::sweep, ResultsKind::study}) {
    const std::vector<Figure> figures = figures_of(test::made_up_results(kind));
    EXPECT_GE(figures.size(), 4u);
    std::set<std::string> ids;
    for (const Figure& figure : figures) {
      EXPECT_TRUE(ids.insert(figure.id).second) << figure.id;
      EXPECT_FALSE(figure.caption.empty() || figure.title.empty() || figure.numbers.rows.empty()) << figure.id;
      for (const double width : {kPageUnits, kColumnUnits}) {
        const draw::Scene scene = figure.draw(width);
        bool inside = true;
        const draw::Point most = extent(scene, inside);
        EXPECT_TRUE(inside) << figure.id << " " << width << ": " << most.x << " " << most.y << " of " << scene.height;
        EXPECT_EQ(scene.width, width) << figure.id;
        EXPECT_GT(scene.marks.size(), 5u) << figure.id;
      }
    }
  }
}

// Paths of all numbers in a document.
void number_places(const Json& value, const Json::json_pointer& at, std::vector<Json::json_pointer>& places) {
  if (value.is_number()) places.push_back(at);
  if (value.is_object()) {
    for (const auto& [key, item] : value.items()) number_places(item, at / key, places);
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) number_places(value[i], at / i, places);
  }
}

TEST(Figures, NoNumberLeavesTheFrameOrNeverEnds) {
  for (const ResultsKind kind : {ResultsKind::sweep, ResultsKind::study}) {
    const Json given = Json::parse(write_results(test::made_up_results(kind)));
    std::vector<Json::json_pointer> places;
    number_places(given, Json::json_pointer(), places);
    int drawn = 0;
    for (const Json::json_pointer& place : places) {
      for (const Json& odd : {Json(1e300), Json(-1e18), Json(1000000000000), Json(0)}) {
        Json changed = given;
        changed[place] = odd;
        std::vector<Figure> figures;
        try {
          figures = figures_of(read_results(changed.dump(), "f"));
        } catch (const Error&) {
          continue;  // refused
        }
        ++drawn;
        for (const Figure& figure : figures) {
          bool inside = true;
          extent(figure.draw(kPageUnits), inside);
          EXPECT_TRUE(inside) << figure.id << " with " << place.to_string() << " = " << odd;
        }
      }
    }
    EXPECT_GT(drawn, 100);
  }
}

TEST(Figures, ALossHasOneFormEverywhere) {
  const std::vector<Figure> figures = figures_of(small_study());
  const draw::Scene scene = find_figure(figures, "loss").draw(kPageUnits);
  EXPECT_TRUE(says(scene, "1.955 [1.950, 1.960]"));
  EXPECT_TRUE(says(scene, "optimum 1.250"));
  EXPECT_TRUE(says(scene, "guessing 2.500"));
  EXPECT_TRUE(says(find_figure(figures, "loss").draw(kColumnUnits), "1.955 [1.950, 1.960]"));
}

TEST(Figures, WhoIsAskedForNumbersIsHeldToTheirMean) {
  Results results = small_study();
  results.task->unit = "mean squared error";
  const std::vector<Figure> figures = figures_of(results);
  const draw::Scene scene = find_figure(figures, "loss").draw(kPageUnits);
  EXPECT_TRUE(says(scene, "held-out loss (mean squared error)"));
  EXPECT_TRUE(says(scene, "the mean 2.500"));
  for (const Figure& figure : figures) {
    EXPECT_EQ(figure.caption.find("guessing"), std::string::npos) << figure.caption;
    for (const std::string& text : texts_of(figure.draw(kPageUnits))) {
      EXPECT_EQ(text.find("guessing"), std::string::npos) << figure.id;
      if (!figure.id.starts_with("init") && !figure.id.starts_with("places")) {
        EXPECT_EQ(text.find("nats"), std::string::npos) << figure.id;
      }
    }
  }
}

TEST(Figures, LabelsOfRulesDoNotLieOnEachOther) {
  Results results = small_study();
  for (Tuned& one : results.tuned) one.loss = {1.9, 0.1, 5, 2};  // both rules in the middle of the axis
  results.task->optimum = 2.4;
  const draw::Scene scene = find_figure(figures_of(results), "loss").draw(kPageUnits);
  std::vector<double> heights;
  for (const auto& mark : scene.marks) {
    const auto* text = std::get_if<draw::Text>(&mark);
    if (text != nullptr && (text->text == "optimum 2.400" || text->text == "guessing 2.500"))
      heights.push_back(text->at.y);
  }
  ASSERT_EQ(heights.size(), 2u);
  EXPECT_GT(std::abs(heights[0] - heights[1]), 10);
}

int rings(const draw::Heat& heat) {
  int count = 0;
  for (const auto& row : heat.cells) {
    for (const draw::HeatCell& cell : row) count += cell.best ? 1 : 0;
  }
  return count;
}
TEST(Figures, TheChosenSettingIsMarkedInTheMapOfShorterRuns) {
  Results results = small_study();
  StabilityMap& map = results.maps[0];
  map.y_name = "warmup";
  map.lr = {0.001, 0.01};
  map.y = {0, 30};
  map.loss.assign(2, std::vector<Estimate>(2, {2, 1.9, 2.1, 2}));
  map.diverged.clear();
  Tuned& tuned = results.tuned[0];
  tuned.scheme = map.scheme;
  tuned.layers = map.layers;
  tuned.rest = map.rest;
  tuned.lr = 0.01;
  results.tuned.resize(1);
  for (const auto& [warmup, row] : {std::pair(30, 1), std::pair(40, 1), std::pair(0, 0)}) {
    tuned.warmup = warmup;  // a final of longer runs warms up for longer than any run of the map
    const draw::Heat heat = heat_of(results, map, Cast(results), loss_levels(results));
    EXPECT_EQ(rings(heat), 1) << warmup;
    EXPECT_TRUE(heat.cells.at(static_cast<std::size_t>(row)).at(1).best) << warmup;
  }
  tuned.lr = 0.0003;
  EXPECT_EQ(rings(heat_of(results, map, Cast(results), loss_levels(results))), 0) << "a rate that was not in the map";
}
TEST(Figures, WhatIsNotRankedHasNoLoss) {
  const Figure figure = find_figure(figures_of(small_study()), "loss");
  for (const std::string& text : texts_of(figure.draw(kPageUnits)))
    EXPECT_EQ(text.find("0.333"), std::string::npos) << text;
  EXPECT_EQ(figure.numbers.rows.back().front(), "Leaky") << "it comes last";
  EXPECT_EQ(figure.numbers.rows.back()[1], "");
}

TEST(Figures, ColourTheAdvisedSchemeAndTheKnownOne) {
  const Cast cast(small_study());
  EXPECT_EQ(cast.of("post").tone, draw::Tone::lead);
  EXPECT_EQ(cast.of("pre").tone, draw::Tone::base);
  EXPECT_EQ(cast.of("leaky").tone, draw::Tone::rest);
  EXPECT_EQ(cast.of("post").label, "Post-LN");
  std::set<int> markers;
  for (const CastMember& member : cast.members()) EXPECT_TRUE(markers.insert(member.marker).second);
  Results robust = small_study();  // of schemes that are tied, the one that trains in most settings may be advised
  robust.advice.ranking = {"post", "leaky", "pre"};
  robust.advice.choice = "leaky";
  EXPECT_EQ(Cast(robust).of("leaky").tone, draw::Tone::lead);
  EXPECT_EQ(Cast(robust).of("post").tone, draw::Tone::rest);
}

TEST(Figures, AFormulaIsNotShortened) {
  Results results = small_study();
  results.schemes[0].title = "x + f(norm(x))/sqrt(l)";
  results.schemes[1].title = "x + (f(x))";
  const Cast cast(results);
  EXPECT_EQ(cast.of("pre").label, "x + f(norm(x))/sqrt(l)");
  EXPECT_EQ(cast.of("post").label, "x + (f(x))");
}

TEST(Figures, AnUnknownOneIsAnsweredWithThoseThereAre) {
  const std::vector<Figure> figures = figures_of(small_study());
  try {
    find_figure(figures, "stabilty");
    FAIL();
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("no figure 'stabilty'"), std::string::npos) << said;
    EXPECT_NE(said.find("stability, "), std::string::npos) << said;
  }
}

TEST(Figures, TheNameOfARuleDoesNotLieOnTheTitleOfItsPanel) {
  const draw::Scene scene = find_figure(figures_of(small_study()), "stability").draw(kPageUnits);
  const draw::Text *title = nullptr, *rule = nullptr;
  for (const auto& mark : scene.marks) {
    const auto* text = std::get_if<draw::Text>(&mark);
    if (text == nullptr) continue;
    if (text->text == "guessing") rule = text;
    if (text->scheme >= 0 && title == nullptr) title = text;
  }
  ASSERT_TRUE(title != nullptr && rule != nullptr);
  EXPECT_GT(rule->at.y - title->at.y, rule->size) << title->text;
}

// Colours turn round in dark mode, and an axis without its quantity says nothing.
TEST(Figures, LayerByLayerNamesItsAxesAndNoColours) {
  const std::vector<Figure> figures = figures_of(test::made_up_results(ResultsKind::study));
  const draw::Scene layers = find_figure(figures, "layers").draw(kPageUnits);
  for (const char* label : {"added loss (nats)", "1 − cosine", "KL divergence", "share"})
    EXPECT_TRUE(says(layers, label)) << label;
  int upwards = 0;
  for (const auto& mark : layers.marks) {
    const auto* text = std::get_if<draw::Text>(&mark);
    upwards += text != nullptr && text->upwards && !text->text.empty() ? 1 : 0;
  }
  EXPECT_EQ(upwards, 8) << "one for each panel";
  for (const Figure& figure : figures) EXPECT_EQ(figure.caption.find("ark "), std::string::npos) << figure.caption;
}
TEST(Figures, DepthsHaveTheDigitsOfTheText) {
  const Figure figure = find_figure(figures_of(test::made_up_results(ResultsKind::study)), "depth");
  const std::vector<std::string> texts = texts_of(figure.draw(kPageUnits));
  const Results results = test::made_up_results(ResultsKind::study);
  const std::string wanted = fmt::format("{:.1f}", results.depth_use.at(0).effective_depth.mean);
  EXPECT_NE(std::ranges::find(texts, wanted), texts.end()) << wanted;
}

}  // namespace
}  // namespace norma
