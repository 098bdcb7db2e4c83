// Axes, panels and rows of dots: ticks, names and markers stand where they can be read.
#include <gtest/gtest.h>

#include <cmath>

#include "report/figures/axis.h"
#include "report/figures/chart.h"
#include "report/figures/dots.h"
#include "report/figures/font.h"
#include "report/figures/sizes.h"

namespace norma {
namespace {

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
