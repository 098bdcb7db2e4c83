// One name, colour and marker for each scheme of some results, the same in every figure and sentence.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "norma/lab/results.h"
#include "report/figures/scene.h"

namespace norma {

struct CastMember {
  std::string name;
  std::string title;  // in full
  std::string label;  // without what stands in brackets at its end
  draw::Tone tone = draw::Tone::rest;
  int marker = 0;
};

class Cast {
 public:
  explicit Cast(const Results& results);

  int index(std::string_view scheme) const;  // every scheme that the results mention has one
  const CastMember& of(std::string_view scheme) const { return members_[static_cast<std::size_t>(index(scheme))]; }
  const std::vector<CastMember>& members() const { return members_; }

 private:
  void add(const std::string& name, const std::string& title);

  std::vector<CastMember> members_;
};

// "A, B and C".
std::string listed(const std::vector<std::string>& items);

}  // namespace norma
