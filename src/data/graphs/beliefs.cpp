#include "data/graphs/beliefs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace norma {
namespace {

// Messages run along every edge in both directions; message 2 e goes from edges[e].first to .second, 2 e + 1 back.
class Propagation {
 public:
  Propagation(const GraphData& data, const std::vector<double>& evidence, double same, double others)
      : data_(data),
        evidence_(evidence),
        classes_(static_cast<std::size_t>(data.classes)),
        same_(same),
        others_(others) {
    incoming_.resize(static_cast<std::size_t>(data.nodes));
    for (std::size_t e = 0; e < data.edges.size(); ++e) {
      incoming_[static_cast<std::size_t>(data.edges[e].second)].push_back(2 * e);
      incoming_[static_cast<std::size_t>(data.edges[e].first)].push_back(2 * e + 1);
    }
    messages_.assign(2 * data.edges.size() * classes_, 1 / static_cast<double>(classes_));
    beliefs_ = evidence;
    for (std::size_t node = 0; node < incoming_.size(); ++node) normalise(beliefs_.data() + node * classes_);
  }

  std::vector<double> run() {
    constexpr int kSweeps = 200;
    constexpr double kStill = 1e-8;
    for (int sweep = 0; sweep < kSweeps; ++sweep) {
      const std::vector<double> before = beliefs_;
      const std::vector<double> apart = field();
      for (std::size_t node = 0; node < incoming_.size(); ++node) visit_node(node, apart);
      double moved = 0;
      for (std::size_t i = 0; i < before.size(); ++i) moved = std::max(moved, std::abs(before[i] - beliefs_[i]));
      if (moved < kStill) break;
    }
    return beliefs_;
  }

 private:
  void normalise(double* chances) const {
    const double sum = std::accumulate(chances, chances + classes_, 0.0);
    for (std::size_t k = 0; k < classes_; ++k) chances[k] /= sum;
  }

  // What all pairs that are not joined say of a class: minus the mean number of neighbours that it would have.
  std::vector<double> field() const {
    std::vector<double> size(classes_, 0), apart(classes_, 0);
    for (std::size_t i = 0; i < beliefs_.size(); ++i) size[i % classes_] += beliefs_[i];
    for (std::size_t k = 0; k < classes_; ++k) {
      for (std::size_t q = 0; q < classes_; ++q) apart[k] -= (k == q ? same_ : others_) * size[q];
    }
    return apart;
  }

  // log of what a message says of class k, up to what all classes share.
  double said(std::size_t message, std::size_t k) const {
    const double own = messages_[message * classes_ + k];
    return std::log(same_ * own + others_ * (1 - own));
  }

  void visit_node(std::size_t node, const std::vector<double>& apart) {
    std::vector<double> whole(classes_);
    for (std::size_t k = 0; k < classes_; ++k) {
      whole[k] = std::log(evidence_[node * classes_ + k]) + apart[k];
      for (const std::size_t message : incoming_[node]) whole[k] += said(message, k);
    }
    const auto write = [&](double* to, std::size_t without) {
      double largest = -HUGE_VAL;
      for (std::size_t k = 0; k < classes_; ++k) {
        to[k] = whole[k] - (without == kNone ? 0 : said(without, k));
        largest = std::max(largest, to[k]);
      }
      for (std::size_t k = 0; k < classes_; ++k) to[k] = std::exp(to[k] - largest);
      normalise(to);
    };
    // What leaves towards a neighbour does not repeat what came from there.
    for (const std::size_t message : incoming_[node]) write(messages_.data() + (message ^ 1) * classes_, message);
    write(beliefs_.data() + node * classes_, kNone);
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  const GraphData& data_;
  const std::vector<double>& evidence_;
  std::size_t classes_;
  double same_, others_;
  std::vector<std::vector<std::size_t>> incoming_;
  std::vector<double> messages_, beliefs_;
};

}  // namespace

std::vector<double> propagate_beliefs(const GraphData& data, const std::vector<double>& evidence, double same,
                                      double others) {
  return Propagation(data, evidence, same, others).run();
}

}  // namespace norma
