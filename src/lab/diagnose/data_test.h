// Do the data say anything beyond how frequent each answer is? Asked of a plain model of counts, which needs no
// training and cannot fail to learn. It sees the one or two tokens before a target, or which words a labelled text has:
// what it finds is there, what it does not find may still be.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "norma/data/source.h"

namespace norma {

struct DataTest {
  std::string words;  // what was compared, with numbers
  double gain = 0;    // nats a target below guessing by frequency; of a classification the gain in accuracy
  double error = 0;   // its standard error
  std::int64_t targets = 0;

  bool says_something() const { return gain > kLeast + 3 * error; }
  bool says_nothing() const { return gain + 3 * error < 2 * kLeast; }
  static constexpr double kLeast = 0.01;
};

// None for data that it does not know how to ask.
std::optional<DataTest> test_data(const Source& source, std::uint64_t seed);

}  // namespace norma
