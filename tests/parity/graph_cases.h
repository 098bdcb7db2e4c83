// Ops over graphs, as the cases of graphs.py name them.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "norma/models/model.h"
#include "norma/ops/neighbour_attention.h"
#include "norma/ops/neighbours.h"
#include "norma/ops/segments.h"

namespace norma::test {

// Empty where the op is none of graphs.
inline Wire graph_op(const std::string& op, const std::map<std::string, Wire>& in, const nlohmann::json& a) {
  const auto wire = [&](const char* name) { return in.contains(name) ? in.at(name) : Wire(); };
  if (op == "neighbour_sum") return neighbour_sum(in.at("x"), in.at("edges"), wire("left"), wire("right"));
  if (op == "neighbour_max") return neighbour_max(in.at("x"), in.at("edges"));
  if (op == "neighbour_attention")
    return neighbour_attention(in.at("x"), in.at("query"), in.at("key"), in.at("edges"), {.heads = a.at("heads")});
  if (op != "segment") return {};
  const std::map<std::string, Segmented> kinds = {
      {"sum", Segmented::sum}, {"mean", Segmented::mean}, {"max", Segmented::max}};
  return segment_reduce(kinds.at(a.at("kind")), in.at("x"), in.at("ids"), a.at("segments"));
}

inline void set_graph_options(const nlohmann::json& a, ModelConfig& config) {
  if (!a.contains("convolution")) return;
  const std::map<std::string, GraphConvolution> convolutions = {{"gcn", GraphConvolution::gcn},
                                                                {"sage", GraphConvolution::sage},
                                                                {"gin", GraphConvolution::gin},
                                                                {"gat", GraphConvolution::gat}};
  const std::map<std::string, Segmented> readouts = {
      {"sum", Segmented::sum}, {"mean", Segmented::mean}, {"max", Segmented::max}};
  config.convolution = convolutions.at(a.at("convolution"));
  config.readout = readouts.at(a.at("readout"));
}

}  // namespace norma::test
