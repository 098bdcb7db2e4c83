// A diagram in box-drawing characters. Lines are kept as the directions in which each cell connects; a cell's character
// follows from them, so that crossings and corners need no cases.
#include <fmt/format.h>

#include <algorithm>

#include "norma/core/error.h"
#include "schemes/diagram_parts.h"

namespace norma {
namespace {

using Kind = DiagramPart::Kind;

enum Direction : unsigned { kUp = 1, kDown = 2, kLeft = 4, kRight = 8 };

// By the set of directions: up 1, down 2, left 4, right 8.
constexpr const char* kLines[16] = {" ", "│", "│", "│", "─", "┘", "┐", "┤", "─", "└", "┌", "├", "─", "┴", "┬", "┼"};

struct Cell {
  unsigned directions = 0;
  std::string text = {};  // instead of a line
};

constexpr int kLaneGap = 3;  // columns between lanes

// Characters, not bytes.
std::size_t columns_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

std::string cut(const std::string& text, std::size_t longest) {
  if (columns_of(text) <= longest) return text;
  std::string kept;
  std::size_t columns = 0;
  for (const char c : text) {
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80 && ++columns == longest) break;
    kept += c;
  }
  return kept + "…";
}

class TextDrawing {
 public:
  TextDrawing(const DiagramLayout& layout, const DiagramParts& parts) : layout_(layout), parts_(parts) {
    std::size_t longest = 0;
    for (const DiagramPart& part : layout.parts)
      longest = std::max({longest, columns_of(label_of(part)), columns_of(part.detail)});
    for (; longest >= 4 && !fits(longest); --longest) {
    }
    if (!fits(longest))
      fail("the diagram needs {} columns and {} are drawn; the svg has no such limit", width_ + title_columns(),
           kDiagramColumns);
    longest_ = longest;
    place_rows();
    cells_.assign(static_cast<std::size_t>(height_), std::vector<Cell>(static_cast<std::size_t>(width_)));
  }

  std::string draw() {
    for (const DiagramLine& line : layout_.lines) vertical(line);
    for (std::size_t b = 0; b < layout_.bands.size(); ++b) {
      if (layout_.bands[b].kind == DiagramBand::Kind::fork) fork(static_cast<int>(b));
    }
    for (const DiagramMerge& merge : layout_.merges) horizontal(row_of(merge.band), merge.from, merge.to);
    for (const DiagramPart& part : layout_.parts) draw_part(part);
    for (const DiagramMerge& merge : layout_.merges) arrow(merge);
    for (std::size_t b = 0; b < layout_.bands.size(); ++b) {
      if (layout_.bands[b].kind == DiagramBand::Kind::divider) divide(static_cast<int>(b));
    }
    std::string text;
    for (std::size_t row = cells_.size(); row-- > 0;) text += print_row(cells_[row]);
    return text;
  }

 private:
  static std::string label_of(const DiagramPart& part) {
    if (part.kind == Kind::box || part.kind == Kind::pill)
      return part.name.empty() ? part.label : part.name + " = " + part.label;
    return part.label;
  }

  int width_of(const DiagramPart& part, std::size_t longest) const {
    const auto columns = [&](const std::string& text) { return static_cast<int>(std::min(columns_of(text), longest)); };
    if (part.kind == Kind::box) return std::max(columns(label_of(part)), columns(part.detail)) + 4;
    if (part.kind == Kind::pill) return columns(label_of(part)) + 2;
    return columns(part.label);
  }

  // Titles of sections stand to the right of the drawing.
  int title_columns() const {
    std::size_t longest = 0;
    if (parts_.sections.size() > 1) {
      for (const std::string& title : parts_.sections) longest = std::max(longest, columns_of(title) + 2);
    }
    return static_cast<int>(longest);
  }

  // Where the lanes stand when labels are at most this long.
  bool fits(std::size_t longest) {
    std::vector<int> half(static_cast<std::size_t>(layout_.lanes), 0);
    for (const DiagramPart& part : layout_.parts) {
      int& widest = half[static_cast<std::size_t>(part.lane)];
      widest = std::max(widest, width_of(part, longest) / 2);
    }
    centres_.clear();
    int at = 1;
    for (const int h : half) {
      centres_.push_back(at + h);
      at += 2 * h + 1 + kLaneGap;
    }
    width_ = at - kLaneGap + 1;
    return width_ + title_columns() <= static_cast<int>(kDiagramColumns);
  }

  int height_of(const DiagramBand& band) const {
    int height = 1;
    for (const int i : band.parts) {
      const DiagramPart& part = layout_.parts[static_cast<std::size_t>(i)];
      if (part.kind == Kind::box) height = std::max(height, part.detail.empty() ? 3 : 4);
    }
    return height;
  }

  void place_rows() {
    for (const DiagramBand& band : layout_.bands) {
      rows_.push_back(height_);
      height_ += height_of(band);
    }
    rows_.push_back(height_);
  }

  int centre(int lane) const { return centres_[static_cast<std::size_t>(lane)]; }
  int first_row(int band) const { return rows_[static_cast<std::size_t>(band)]; }
  int row_of(int band) const {
    return first_row(band) + (rows_[static_cast<std::size_t>(band) + 1] - first_row(band)) / 2;
  }
  Cell& cell(int row, int column) { return cells_[static_cast<std::size_t>(row)][static_cast<std::size_t>(column)]; }

  // From the middle of one band to the middle of another; what stands there is drawn over it.
  void vertical(const DiagramLine& line) {
    const int column = centre(line.lane);
    for (int row = row_of(line.from); row <= row_of(line.to); ++row) {
      if (row > row_of(line.from)) cell(row, column).directions |= kDown;
      if (row < row_of(line.to)) cell(row, column).directions |= kUp;
    }
  }

  void horizontal(int row, int from_lane, int to_lane) {
    const int left = std::min(centre(from_lane), centre(to_lane)), right = std::max(centre(from_lane), centre(to_lane));
    for (int column = left; column <= right; ++column) {
      if (column > left) cell(row, column).directions |= kLeft;
      if (column < right) cell(row, column).directions |= kRight;
    }
  }

  void fork(int b) {
    const DiagramBand& band = layout_.bands[static_cast<std::size_t>(b)];
    for (const int lane : band.to) horizontal(row_of(b), band.from, lane);
  }

  void write(int row, int column, const std::string& text) {
    std::string character;
    for (std::size_t i = 0; i < text.size(); ++i) {
      character += text[i];
      if (i + 1 < text.size() && (static_cast<unsigned char>(text[i + 1]) & 0xc0) == 0x80) continue;
      cell(row, column++).text = character;
      character.clear();
    }
  }

  void draw_part(const DiagramPart& part) {
    const int column = centre(part.lane), row = row_of(part.band);
    switch (part.kind) {
      case Kind::box: return draw_box(part);
      case Kind::pill: {
        const std::string label = "(" + cut(label_of(part), longest_) + ")";
        return write(row, column - static_cast<int>(columns_of(label)) / 2, label);
      }
      case Kind::add: return write(row, column, "⊕");
      case Kind::product: return write(row, column, "⊗");
      case Kind::input:
      case Kind::output: {
        const std::string label = cut(part.label, longest_);
        return write(row, column - static_cast<int>(columns_of(label)) / 2, label);
      }
    }
  }

  void draw_box(const DiagramPart& part) {
    const int column = centre(part.lane), width = width_of(part, longest_), bottom = first_row(part.band);
    const int first = column - (width - 1) / 2, last = column + width / 2, height = part.detail.empty() ? 3 : 4;
    const auto edge = [&](int row, const char* left, const char* right, unsigned outside) {
      const bool joined = (cell(row, column).directions & outside) != 0;
      const bool at_end = row == bottom || row == bottom + height - 1;
      write(row, first, left);
      for (int c = first + 1; c < last; ++c) write(row, c, at_end ? "─" : " ");
      if (at_end && joined) write(row, column, outside == kDown ? "┬" : "┴");
      write(row, last, right);
    };
    edge(bottom, "└", "┘", kDown);
    for (int row = bottom + 1; row < bottom + height - 1; ++row) edge(row, "│", "│", 0);
    edge(bottom + height - 1, "┌", "┐", kUp);
    const auto centred = [&](int row, const std::string& text) {
      const std::string kept = cut(text, longest_);
      write(row, first + 2 + (width - 4 - static_cast<int>(columns_of(kept))) / 2, kept);
    };
    centred(bottom + height - 2, label_of(part));
    if (!part.detail.empty()) centred(bottom + 1, part.detail);
  }

  void arrow(const DiagramMerge& merge) {
    const DiagramPart* target = nullptr;
    for (const int i : layout_.bands[static_cast<std::size_t>(merge.band)].parts) {
      if (layout_.parts[static_cast<std::size_t>(i)].lane == merge.to)
        target = &layout_.parts[static_cast<std::size_t>(i)];
    }
    NORMA_ASSERT(target != nullptr);
    const bool point = target->kind == Kind::add || target->kind == Kind::product;
    const int width = point ? 1 : width_of(*target, longest_);
    const bool from_right = merge.from > merge.to;
    const int column = centre(merge.to) + (from_right ? width / 2 + 1 : -(width - 1) / 2 - 1);
    cell(row_of(merge.band), column).text = from_right ? "◄" : "►";
    if (merge.minus) cell(row_of(merge.band), column + (from_right ? 1 : -1)).text = "−";
  }

  void divide(int b) {
    std::vector<Cell>& row = cells_[static_cast<std::size_t>(row_of(b))];
    const std::string title =
        " " + parts_.sections[static_cast<std::size_t>(layout_.bands[static_cast<std::size_t>(b)].section)];
    for (Cell& c : row) {
      if (c.directions == 0) c.text = "┄";
    }
    row.push_back({.text = "┄"});
    row.push_back({.text = title});
  }

  static std::string print_row(const std::vector<Cell>& row) {
    std::string line;
    for (const Cell& c : row) line += c.text.empty() ? kLines[c.directions] : c.text;
    while (line.ends_with(' ')) line.pop_back();
    return line + "\n";
  }

  const DiagramLayout& layout_;
  const DiagramParts& parts_;
  std::size_t longest_ = 0;
  std::vector<int> centres_;  // of lanes
  std::vector<int> rows_;     // first row of each band, counted from the bottom
  int width_ = 0, height_ = 0;
  std::vector<std::vector<Cell>> cells_;  // [row from the bottom][column]
};

}  // namespace

std::string diagram_text(const Scheme& scheme, const DiagramOptions& options) {
  const DiagramParts parts = diagram_parts(scheme, options);
  std::string text = TextDrawing(place_parts(parts), parts).draw();
  if (!parts.notes.empty()) text += "\n";
  for (const std::string& note : parts.notes) text += cut(note, kDiagramColumns) + "\n";
  return text;
}

}  // namespace norma
