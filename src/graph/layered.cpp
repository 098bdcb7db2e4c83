#include "graph/layered.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "graph/index.h"

namespace norma {
namespace {

constexpr double kColumnGap = 22, kRowGap = 34, kBendWidth = 8;

// Boxes, and a bend wherever an edge passes a rank.
struct Vertex {
  Box* box = nullptr;  // null for a bend
  double width = kBendWidth;
  double x = 0;
  double key = 0;  // of the current sorting
  int rank = 0;
  std::vector<int> above = {}, below = {};
};

class Layering {
 public:
  Layering(std::vector<Box>& boxes, std::vector<Edge>& edges) : edges_(edges) {
    for (Box& box : boxes) vertices_.push_back({.box = &box, .width = box.width, .rank = box.rank});
    for (const Edge& edge : edges) add_path(edge);
    for (std::size_t i = 0; i < vertices_.size(); ++i) {
      rows_.resize(std::max(rows_.size(), at(vertices_[i].rank) + 1));
      rows_[at(vertices_[i].rank)].push_back(static_cast<int>(i));
    }
  }

  Extent run() {
    for (int sweep = 0; sweep < 12; ++sweep) order_rows(sweep % 2 == 0);
    for (int sweep = 0; sweep < 60; ++sweep) place_rows(sweep % 2 == 0);
    return write_back();
  }

 private:
  void add_path(const Edge& edge) {
    std::vector<int> path = {edge.from};
    for (int rank = vertices_[at(edge.from)].rank + 1; rank < vertices_[at(edge.to)].rank; ++rank) {
      path.push_back(static_cast<int>(vertices_.size()));
      vertices_.push_back({.rank = rank});
    }
    path.push_back(edge.to);
    for (std::size_t i = 0; i + 1 < path.size(); ++i) {
      vertices_[at(path[i])].below.push_back(path[i + 1]);
      vertices_[at(path[i + 1])].above.push_back(path[i]);
    }
    paths_.push_back(std::move(path));
  }

  // Sorts each row by the mean position of its neighbours in the row before (or after).
  void order_rows(bool downwards) {
    std::vector<double> position(vertices_.size());
    const auto number = [&](const std::vector<int>& row) {
      for (std::size_t i = 0; i < row.size(); ++i) position[at(row[i])] = static_cast<double>(i);
    };
    for (const std::vector<int>& row : rows_) number(row);
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      std::vector<int>& row = rows_[downwards ? k : rows_.size() - 1 - k];
      for (const int v : row) {
        Vertex& vertex = vertices_[at(v)];
        const std::vector<int>& neighbours = downwards ? vertex.above : vertex.below;
        vertex.key = position[at(v)];
        if (neighbours.empty()) continue;
        vertex.key = 0;
        for (const int n : neighbours) vertex.key += position[at(n)] / static_cast<double>(neighbours.size());
      }
      std::stable_sort(row.begin(), row.end(),
                       [&](int a, int b) { return vertices_[at(a)].key < vertices_[at(b)].key; });
      number(row);
    }
  }

  // Moves each row as close to its neighbours as the order and the gaps allow: least squares under x[i+1] - x[i] >=
  // gap, which is isotonic regression after the gaps are subtracted (pool adjacent violators).
  void place_rows(bool downwards) {
    struct Block {
      double sum, weight;
      std::size_t count;
      double mean() const { return sum / weight; }
    };
    for (std::size_t k = 0; k < rows_.size(); ++k) {
      const std::vector<int>& row = rows_[downwards ? k : rows_.size() - 1 - k];
      std::vector<Block> blocks;
      std::vector<double> shift(row.size(), 0);
      for (std::size_t i = 0; i < row.size(); ++i) {
        const Vertex& vertex = vertices_[at(row[i])];
        if (i > 0) {
          shift[i] = shift[i - 1] + (vertices_[at(row[i - 1])].width + vertex.width) / 2 + kColumnGap;
        }
        double wish = 0, pull = 0;
        for (const auto* side : {&vertex.above, &vertex.below}) {
          for (const int n : *side) {
            const Vertex& neighbour = vertices_[at(n)];
            const double strength = vertex.box == nullptr && neighbour.box == nullptr ? 8 : 1;  // straight long edges
            wish += strength * neighbour.x;
            pull += strength;
          }
        }
        wish = pull == 0 ? vertex.x : wish / pull;
        const double weight = vertex.box == nullptr ? 4 : 1;
        blocks.push_back({weight * (wish - shift[i]), weight, 1});
        while (blocks.size() > 1 && blocks[blocks.size() - 2].mean() > blocks.back().mean()) {
          const Block last = blocks.back();
          blocks.pop_back();
          blocks.back() = {blocks.back().sum + last.sum, blocks.back().weight + last.weight,
                           blocks.back().count + last.count};
        }
      }
      std::size_t i = 0;
      for (const Block& block : blocks) {
        for (std::size_t j = 0; j < block.count; ++j, ++i) vertices_[at(row[i])].x = block.mean() + shift[i];
      }
    }
  }

  Extent write_back() {
    double left = std::numeric_limits<double>::max(), right = std::numeric_limits<double>::lowest();
    for (const Vertex& vertex : vertices_) {
      left = std::min(left, vertex.x - vertex.width / 2);
      right = std::max(right, vertex.x + vertex.width / 2);
    }
    if (vertices_.empty()) return {};
    std::vector<double> top(rows_.size()), height(rows_.size(), 0);
    for (const Vertex& vertex : vertices_) {
      if (vertex.box != nullptr) height[at(vertex.rank)] = std::max(height[at(vertex.rank)], vertex.box->height);
    }
    double y = 0;
    for (std::size_t rank = 0; rank < rows_.size(); ++rank) {
      top[rank] = y;
      y += height[rank] + kRowGap;
    }
    for (Vertex& vertex : vertices_) {
      vertex.x -= left;
      if (vertex.box == nullptr) continue;
      vertex.box->x = vertex.x;
      vertex.box->y = top[at(vertex.rank)];
    }
    for (std::size_t e = 0; e < edges_.size(); ++e) {
      std::vector<std::pair<double, double>>& points = edges_[e].points;
      for (const int v : paths_[e]) {
        const Vertex& vertex = vertices_[at(v)];
        const double begin = top[at(vertex.rank)];
        if (v != edges_[e].from) points.emplace_back(vertex.x, begin);
        if (v == edges_[e].from) points.emplace_back(vertex.x, begin + vertex.box->height);
        if (vertex.box == nullptr) points.emplace_back(vertex.x, begin + height[at(vertex.rank)]);
      }
    }
    return {right - left, y - kRowGap};
  }

  std::vector<Edge>& edges_;
  std::vector<Vertex> vertices_;
  std::vector<std::vector<int>> rows_;
  std::vector<std::vector<int>> paths_;  // of each edge, bends included
};

}  // namespace

Extent place_boxes(std::vector<Box>& boxes, std::vector<Edge>& edges) { return Layering(boxes, edges).run(); }

}  // namespace norma
