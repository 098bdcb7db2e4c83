// Figures show what is in the results, stay inside their frame, and are there for every kind.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "norma/core/error.h"
#include "norma/report/figure.h"
#include "report/figures/axis.h"
#include "report/figures/cast.h"
#include "report/figures/chart.h"
#include "report/figures/dots.h"
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
TEST(Panels, TheNameOfARuleKeepsClearOfLines) {
  draw::Panel panel{.x_label = "step", .y_label = "loss"};
  panel.lines.push_back({.label = "run", .x = {0, 10, 20, 500, 1000}, .y = {2.9, 2.8, 2.5, 2, 1.8}});
  panel.rules.push_back({2.77, "guessing"});
  const auto place = [&] {
    const draw::Scene scene = draw::draw_panels({panel}, {}, kPageUnits);
    for (const auto& mark : scene.marks) {
      const auto* text = std::get_if<draw::Text>(&mark);
      if (text != nullptr && text->text == "guessing") return text->at.x;
    }
    return 0.0;
  };
  EXPECT_GT(place(), kPageUnits / 2) << "the line crosses the rule on the left";
  panel.lines[0].y = {1.8, 1.8, 1.8, 1.8, 1.8};
  EXPECT_LT(place(), kPageUnits / 2) << "where both sides are free it stands on the left";
}
TEST(Panels, WhatLeadsFromAShortLineToItsNameIsNoCurve) {
  draw::Panel panel{.x_label = "step", .y_label = "loss"};
  panel.lines.push_back({.label = "long", .x = {0, 1000}, .y = {3, 1}});
  panel.lines.push_back({.label = "short", .x = {1, 3}, .y = {2, 2}});
  int dotted = 0, wide = 0;
  for (const auto& mark : draw::draw_panels({panel}, {}, kPageUnits).marks) {
    const auto* shape = std::get_if<draw::Shape>(&mark);
    if (shape == nullptr || shape->points.size() != 2 || shape->stroke.tone != draw::Tone::rest) continue;
    if (shape->points[1].x - shape->points[0].x < 300) continue;
    ++wide;
    dotted += shape->dash > 0 ? 1 : 0;
  }
  EXPECT_EQ(dotted, 1) << "of " << wide
                       << " wide strokes: the axis, the long line, and the way to the short one's name";
}
TEST(Dots, ANarrowIntervalDoesNotDisfigureItsMarker) {
  const auto strokes = [](double half) {
    draw::Dots dots{
        .rows = {{.label = "a", .value = {1, 1 - half, 1 + half, 3}}, {.label = "b", .value = {2, 1.5, 2.5, 3}}},
        .x_label = "loss"};
    int upright = 0;
    for (const auto& mark : draw_dots(dots, kPageUnits).marks) {
      const auto* shape = std::get_if<draw::Shape>(&mark);
      if (shape == nullptr || shape->points.size() != 2 || shape->stroke.tone == draw::Tone::grid) continue;
      if (shape->points[0].x == shape->points[1].x) ++upright;
    }
    return upright;
  };
  EXPECT_EQ(strokes(0.3), 4);
  EXPECT_EQ(strokes(0.002), 2);
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

TEST(Axis, TicksAreRoundAndInside) {
  const draw::Scale linear{.low = 0.013, .high = 0.97}, log{.low = 3e-5, .high = 0.2, .log = true};
  EXPECT_EQ(linear.ticks(5), (std::vector<double>{0.2, 0.4, 0.6000000000000001, 0.8}));
  for (const double tick : log.ticks(5)) EXPECT_TRUE(log.shows(tick)) << tick;
  EXPECT_GE(log.ticks(4).size(), 3u);
}
using Texts = std::vector<std::string>;
TEST(Axis, TicksOfOneAxisAreWrittenAlike) {
  EXPECT_EQ(draw::tick_texts({1e-4, 1}, {.low = 1e-6, .high = 1, .log = true}), (Texts{"10⁻⁴", "10⁰"}));
  EXPECT_EQ(draw::tick_texts({3e-5, 1e-4, 3e-4}, {.low = 2e-5, .high = 5e-4, .log = true}),
            (Texts{"3×10⁻⁵", "10⁻⁴", "3×10⁻⁴"}));
  EXPECT_EQ(draw::tick_texts({0.003, 0.01, 0.03}, {.low = 0.003, .high = 0.03, .log = true}),
            (Texts{"0.003", "0.01", "0.03"}));
  EXPECT_EQ(draw::tick_texts({2, 2.2, 2.4}, {.low = 1.9, .high = 2.5}), (Texts{"2.0", "2.2", "2.4"}));
  EXPECT_EQ(draw::tick_texts({0, 200, 400}, {.low = -8, .high = 408}), (Texts{"0", "200", "400"}));
  EXPECT_EQ(draw::tick_texts({1, 1.5}, {.low = 0.7, .high = 1.7, .log = true}), (Texts{"1.0", "1.5"}));
  EXPECT_EQ(draw::tick_texts({-5e-6, 0}, {.low = -6e-6, .high = 1e-6}), (Texts{"−5×10⁻⁶", "0"}));
}
TEST(Axis, AShortAxisHasTwoTicks) {
  for (const int about : {1, 2, 3}) {
    EXPECT_GE((draw::Scale{.low = -8, .high = 408}.ticks(about).size()), 2u) << about;
    EXPECT_GE((draw::Scale{.low = 9e-4, .high = 0.11, .log = true}.ticks(about).size()), 2u) << about;
    EXPECT_GE((draw::Scale{.low = 1.1, .high = 4.7, .log = true}.ticks(about).size()), 2u) << about;
  }
}

TEST(Axis, TicksOfAShortAxisHaveTheDigitsThatTellThemApart) {
  const draw::Scale near{.low = 1.9639, .high = 1.9815};
  EXPECT_EQ(draw::tick_texts(near.ticks(4), near), (Texts{"1.965", "1.970", "1.975", "1.980"}));
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

TEST(Axis, NumbersAreShort) {
  EXPECT_EQ(draw::counted(1202432, "parameter", "parameters"), "1,202,432 parameters");
  EXPECT_EQ(draw::counted(999, "run", "runs"), "999 runs");
  EXPECT_EQ(draw::exponent_text(-1.38e-15), "0.00");
  EXPECT_EQ(draw::exponent_text(-1.004), "−1.00");
  EXPECT_EQ(draw::plain(0.003), "0.003");
  EXPECT_EQ(draw::plain(-1.25), "−1.25");
  EXPECT_EQ(draw::plain(3.2e-7), "3.2e−7");
  EXPECT_EQ(draw::plain(100), "100");
  EXPECT_EQ(draw::plain(std::nan("")), "–");
  EXPECT_EQ(draw::loss_text(Estimate{1.9553, 1.9502, 1.9604, 3}), "1.955 [1.950, 1.960]");
  EXPECT_EQ(draw::loss_text(Estimate{1.9553, 1.9553, 1.9553, 1}), "1.955");
}

TEST(Font, HasTheLettersOfFigures) {
  const draw::Font& font = draw::Font::get();
  for (char32_t letter = 0x21; letter < 0x7f; ++letter) {
    EXPECT_NE(font.glyph(letter), 0) << static_cast<int>(letter);
    EXPECT_FALSE(font.outline(font.glyph(letter)).empty()) << static_cast<int>(letter);
  }
  for (const char32_t letter : draw::code_points("−×·–…≥α∞⁻⁴é"))
    EXPECT_NE(font.glyph(letter), 0) << static_cast<int>(letter);
  EXPECT_NEAR(font.width("norma", 10), 28.34, 0.01);  // Arial: 556 556 333 833 556 thousandths
  EXPECT_EQ(draw::code_points("a\xff\xe2\x88").size(), 3u);
  EXPECT_EQ(draw::fitted("LayerNorm Scaling", 10, 60).substr(0, 5), "Layer");
  EXPECT_LE(font.width(draw::fitted("LayerNorm Scaling", 10, 60), 10), 60);
}

}  // namespace
}  // namespace norma
