// A diagram as a self-contained svg: lines and text take the page's colour, fills follow light and dark.
#include <fmt/format.h>

#include <algorithm>

#include "norma/core/xml.h"
#include "schemes/diagram_parts.h"

namespace norma {
namespace {

using Kind = DiagramPart::Kind;
using Tone = DiagramPart::Tone;

constexpr double kCharacter = 7.3, kSmallCharacter = 6.1;  // of the fonts below, with room for wider ones
constexpr double kBox = 30, kDetail = 15, kPill = 24, kRing = 10, kSpace = 14, kGap = 34, kMargin = 24, kCorner = 8;
constexpr double kHeading = 30, kNote = 17;

constexpr const char* kStyle = R"(<style>
svg { color: #1d2733; background: #ffffff; }
text { font: 13px ui-sans-serif, system-ui, "DejaVu Sans", "Helvetica Neue", Arial, sans-serif; fill: currentColor; text-anchor: middle; }
.heading { font-size: 15px; font-weight: 600; text-anchor: start; }
.small { font-size: 11px; opacity: 0.75; } .left { text-anchor: start; } .right { text-anchor: end; } .name { font-style: italic; }
.line { fill: none; stroke: currentColor; stroke-width: 1.6; stroke-linecap: round; }
.head { fill: currentColor; } .ring { fill: #ffffff; stroke: currentColor; stroke-width: 1.6; }
.divider { stroke: currentColor; stroke-opacity: 0.35; stroke-dasharray: 2 5; }
.plain { fill: #f3f4f6; stroke: #6b7280; } .norm { fill: #e6f0fb; stroke: #2f6fb2; } .branch { fill: #fdf0e1; stroke: #b8732a; }
.scale { fill: #e8f5ea; stroke: #3a8a4d; } .learned { fill: #f3eafb; stroke: #7d4ab0; stroke-dasharray: 4 3; }
@media (prefers-color-scheme: dark) {
  svg { color: #e2e8ee; background: #14191f; } .ring { fill: #14191f; }
  .plain { fill: #262c34; stroke: #9aa4b1; } .norm { fill: #1a2c40; stroke: #6ea8e0; } .branch { fill: #3a2a17; stroke: #dba05c; }
  .scale { fill: #1c3323; stroke: #72bf86; } .learned { fill: #2f2140; stroke: #b58be0; }
}
</style>
)";

double length_of(const std::string& text, double character) {
  return character * static_cast<double>(std::count_if(text.begin(), text.end(), [](char c) {
           return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
         }));
}

constexpr const char* tone_class(Tone tone) {
  switch (tone) {
    case Tone::norm: return "norm";
    case Tone::branch: return "branch";
    case Tone::scale: return "scale";
    case Tone::learned: return "learned";
    case Tone::plain: break;
  }
  return "plain";
}

class SvgDrawing {
 public:
  SvgDrawing(const DiagramLayout& layout, const DiagramParts& parts) : layout_(layout), parts_(parts) {
    place_lanes();
    place_bands();
  }

  std::string draw() {
    std::string body;
    for (std::size_t b = 0; b < layout_.bands.size(); ++b) {
      if (layout_.bands[b].kind == DiagramBand::Kind::divider) body += divider(static_cast<int>(b));
    }
    for (const DiagramLine& line : layout_.lines) body += vertical(line);
    for (std::size_t b = 0; b < layout_.bands.size(); ++b) {
      if (layout_.bands[b].kind == DiagramBand::Kind::fork) body += fork(static_cast<int>(b));
    }
    for (const DiagramMerge& merge : layout_.merges) body += horizontal(merge);
    for (const DiagramPart& part : layout_.parts) body += draw_part(part);
    double y = bottom() + kNote + 4;
    double width = width_;
    for (const std::string& note : parts_.notes) {
      width = std::max(width, 2 * kMargin + length_of(note, kSmallCharacter));
      body += text("small left", kMargin, y, note);
      y += kNote;
    }
    width = std::max(width, 2 * kMargin + length_of(parts_.heading, kCharacter * 1.2));
    const double height = y + kMargin - kNote;
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
               "{1:.0f}\" role=\"img\" aria-labelledby=\"title desc\">\n<title id=\"title\">{2}</title>\n<desc "
               "id=\"desc\">{3}</desc>\n",
               width, height, xml_text(parts_.heading), xml_text(description())) +
           kStyle + text("heading", kMargin, kMargin + 8, parts_.heading) + body + "</svg>\n";
  }

 private:
  // The drawing in words: what stands in it, from bottom to top.
  std::string description() const {
    std::vector<std::string> said;
    for (const DiagramPart& part : layout_.parts) {
      if (part.kind == Kind::input || part.kind == Kind::output) continue;
      said.push_back(part.kind == Kind::add ? "sum" : part.kind == Kind::product ? "product" : part.label);
    }
    return fmt::format("One layer, from bottom to top: {}.", fmt::join(said, ", "));
  }

  static std::string text(const char* style, double x, double y, const std::string& content) {
    return fmt::format("<text class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", style, x, y, xml_text(content));
  }

  static double width_of(const DiagramPart& part) {
    switch (part.kind) {
      case Kind::box:
        return std::max({70.0, length_of(part.label, kCharacter) + 24, length_of(part.detail, kSmallCharacter) + 20});
      case Kind::pill: return std::max(44.0, length_of(part.label, kCharacter) + 20);
      case Kind::input:
      case Kind::output: return length_of(part.label, kCharacter);
      default: return 2 * kRing;
    }
  }

  static double height_of(const DiagramPart& part) {
    switch (part.kind) {
      case Kind::box: return kBox + (part.detail.empty() ? 0 : kDetail);
      case Kind::pill: return kPill;
      case Kind::input:
      case Kind::output: return 18;
      default: return 2 * kRing;
    }
  }

  void place_lanes() {
    std::vector<double> half(static_cast<std::size_t>(layout_.lanes), 6);
    for (const DiagramPart& part : layout_.parts) {
      double& widest = half[static_cast<std::size_t>(part.lane)];
      widest = std::max(widest, width_of(part) / 2);
    }
    double at = kMargin;
    for (const double h : half) {
      centres_.push_back(at + h);
      at += 2 * h + kGap;
    }
    lanes_end_ = at - kGap;
    double titles = 0;
    if (parts_.sections.size() > 1) {
      for (const std::string& title : parts_.sections)
        titles = std::max(titles, length_of(title, kSmallCharacter) + kGap);
    }
    width_ = lanes_end_ + titles + kMargin;
  }

  // Heights from the top of the page; bands are counted from the bottom.
  void place_bands() {
    std::vector<double> heights;
    double total = 0;
    for (const DiagramBand& band : layout_.bands) {
      double height = band.kind == DiagramBand::Kind::divider ? 10 : 4;
      for (const int i : band.parts) height = std::max(height, height_of(layout_.parts[static_cast<std::size_t>(i)]));
      heights.push_back(height);
      total += height + kSpace;
    }
    double y = kMargin + kHeading + total;
    for (const double height : heights) {
      middles_.push_back(y - height / 2);
      y -= height + kSpace;
    }
    bottom_ = kMargin + kHeading + total;
  }

  double bottom() const { return bottom_; }
  double x_of(int lane) const { return centres_[static_cast<std::size_t>(lane)]; }
  double y_of(int band) const { return middles_[static_cast<std::size_t>(band)]; }

  const DiagramPart* standing(int band, int lane) const {
    for (const int i : layout_.bands[static_cast<std::size_t>(band)].parts) {
      const DiagramPart& part = layout_.parts[static_cast<std::size_t>(i)];
      if (part.lane == lane) return &part;
    }
    return nullptr;
  }

  bool turns_at(const DiagramLine& line) const { return standing(line.to, line.lane) == nullptr; }
  bool starts_at_fork(const DiagramLine& line) const {
    return layout_.bands[static_cast<std::size_t>(line.from)].kind == DiagramBand::Kind::fork;
  }

  // Ends short of a corner, which the fork or merge draws.
  std::string vertical(const DiagramLine& line) const {
    const double x = x_of(line.lane);
    const DiagramPart* source = standing(line.from, line.lane);
    const double above = source != nullptr && source->kind == Kind::input ? height_of(*source) / 2 : 0;
    const double from = y_of(line.from) - (starts_at_fork(line) ? kCorner : above);
    const DiagramPart* target = standing(line.to, line.lane);
    const double to = y_of(line.to) + (target == nullptr ? kCorner : height_of(*target) / 2);
    std::string drawn = fmt::format("<path class=\"line\" d=\"M{:.1f} {:.1f} V{:.1f}\"/>\n", x, from, to);
    if (target != nullptr) drawn += fmt::format("<path class=\"head\" d=\"M{:.1f} {:.1f} l-4 7 h8 z\"/>\n", x, to);
    return drawn;
  }

  std::string fork(int b) const {
    const DiagramBand& band = layout_.bands[static_cast<std::size_t>(b)];
    std::string drawn;
    for (const int lane : band.to) {
      const double side = lane > band.from ? 1 : -1, x = x_of(lane), y = y_of(b);
      drawn += fmt::format("<path class=\"line\" d=\"M{:.1f} {:.1f} H{:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f}\"/>\n",
                           x_of(band.from), y, x - side * kCorner, x, y, x, y - kCorner);
    }
    return drawn;
  }

  std::string horizontal(const DiagramMerge& merge) const {
    const DiagramPart* target = standing(merge.band, merge.to);
    const double side = merge.from > merge.to ? 1 : -1, y = y_of(merge.band), x = x_of(merge.from);
    const double edge = target->kind == Kind::add || target->kind == Kind::product ? kRing : width_of(*target) / 2;
    const double end = x_of(merge.to) + side * edge;
    const bool turns = std::any_of(layout_.lines.begin(), layout_.lines.end(), [&](const DiagramLine& line) {
      return line.lane == merge.from && line.to == merge.band && turns_at(line);
    });
    std::string drawn =
        turns ? fmt::format("<path class=\"line\" d=\"M{:.1f} {:.1f} Q{:.1f} {:.1f} {:.1f} {:.1f} H{:.1f}\"/>\n", x,
                            y + kCorner, x, y, x - side * kCorner, y, end + side * 5)
              : fmt::format("<path class=\"line\" d=\"M{:.1f} {:.1f} H{:.1f}\"/>\n", x, y, end + side * 5);
    drawn += fmt::format("<path class=\"head\" d=\"M{:.1f} {:.1f} l{:.0f} -4 v8 z\"/>\n", end, y, side * 7);
    if (merge.minus) drawn += text("small", end + side * 14, y - 5, "−");
    return drawn;
  }

  std::string divider(int b) const {
    const double y = y_of(b);
    const std::string& title =
        parts_.sections[static_cast<std::size_t>(layout_.bands[static_cast<std::size_t>(b)].section)];
    return fmt::format("<path class=\"divider\" d=\"M{:.1f} {:.1f} H{:.1f}\"/>\n", kMargin / 2, y,
                       width_ - kMargin / 2) +
           text("small right", width_ - kMargin / 2, y - 5, title);
  }

  std::string draw_part(const DiagramPart& part) const {
    const double x = x_of(part.lane), y = y_of(part.band), width = width_of(part), height = height_of(part);
    std::string drawn;
    switch (part.kind) {
      case Kind::box:
      case Kind::pill:
        drawn = fmt::format(
            "<rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" rx=\"{:.0f}\"/>\n",
            tone_class(part.tone), x - width / 2, y - height / 2, width, height,
            part.kind == Kind::pill ? height / 2 : 5);
        drawn += text("label", x, y + (part.detail.empty() ? 4.5 : -2.5), part.label);
        if (!part.detail.empty()) drawn += text("small", x, y + 14, part.detail);
        break;
      case Kind::add:
      case Kind::product: {
        drawn = fmt::format("<circle class=\"ring\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.0f}\"/>\n", x, y, kRing);
        const double r = kRing - 4;
        drawn += part.kind == Kind::add
                     ? fmt::format("<path class=\"line\" d=\"M{0:.1f} {1:.1f} h{2:.1f} M{3:.1f} {4:.1f} v{2:.1f}\"/>\n",
                                   x - r, y, 2 * r, x, y - r)
                     : fmt::format(
                           "<path class=\"line\" d=\"M{0:.1f} {1:.1f} l{2:.1f} {2:.1f} m0 -{2:.1f} l-{2:.1f} "
                           "{2:.1f}\"/>\n",
                           x - 0.7 * r, y - 0.7 * r, 1.4 * r);
        break;
      }
      case Kind::input:
      case Kind::output: drawn = text("label", x, y + 4.5, part.label); break;
    }
    if (!part.name.empty()) drawn += text("small left name", x + 6, y - height / 2 - 3, part.name);
    return drawn;
  }

  const DiagramLayout& layout_;
  const DiagramParts& parts_;
  std::vector<double> centres_, middles_;
  double lanes_end_ = 0, width_ = 0, bottom_ = 0;
};

}  // namespace

std::string diagram_svg(const Scheme& scheme, const DiagramOptions& options) {
  const DiagramParts parts = diagram_parts(scheme, options);
  return SvgDrawing(place_parts(parts), parts).draw();
}

}  // namespace norma
