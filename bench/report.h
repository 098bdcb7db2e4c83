// What a benchmark run says: the machine's limits, measured in the same run, and every result as a share of one.
#pragma once

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/timing.h"

namespace norma::bench {

struct Result {
  std::string name;  // "norm/layer/forward/131072x1024"
  double value = 0;
  std::string unit;
  std::string limit;       // key of the limit it is a share of; empty: none
  double limit_value = 0;  // the limit beside this result, in turns with it
  double share = 0;
  double noise = 0;  // median time / best time - 1
  double peer = 0;   // the same quantity measured in the peer; 0: not measured
};

class Report {
 public:
  void set_limit(const std::string& name, double value);
  double limit(const std::string& name) const { return limits_.at(name); }

  // A rate: amount / time, as a share of the named limit, or of its value as measured beside the result.
  void add_rate(const std::string& name, double amount, const Timing& timing, const std::string& unit,
                const std::string& limit, double limit_value = 0);
  // A plain number, with a share of what is possible where there is such a thing.
  void add_value(const std::string& name, double value, const std::string& unit, const std::string& limit = "",
                 double share = 0);

  // Reads the results of bench/pytorch_cpu.py and attaches them by name.
  void attach_peer(const nlohmann::json& peer);

  // These may be asked from another thread while results come in.
  bool empty() const;
  nlohmann::json json() const;
  std::string table() const;

 private:
  void add(Result result);

  mutable std::mutex mutex_;
  std::map<std::string, double> limits_;
  std::vector<Result> results_;
};

}  // namespace norma::bench
