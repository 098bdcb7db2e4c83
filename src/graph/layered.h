// A layered drawing of a directed acyclic graph (Sugiyama et al. 1981): ranks from top to bottom, few crossings, short
// edges. Knows nothing of wires or ops.
#pragma once

#include <utility>
#include <vector>

namespace norma {

struct Box {
  double width = 0;
  double height = 0;
  int rank = 0;  // row, from 0 at the top; every edge leads to a higher rank
  double x = 0;  // centre, chosen by place_boxes
  double y = 0;  // top
};

struct Edge {
  int from = 0;
  int to = 0;
  std::vector<std::pair<double, double>> points = {};  // from the bottom of `from` to the top of `to`
};

struct Extent {
  double width = 0;
  double height = 0;
};

Extent place_boxes(std::vector<Box>& boxes, std::vector<Edge>& edges);

}  // namespace norma
