#include "bench/cuda/cross_entropy_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/cuda/cross_entropy_rows.h"

namespace norma::bench {
namespace {

constexpr int kIgnore = -100;
constexpr double kNoLoss = std::numeric_limits<double>::quiet_NaN();

std::string describe_rows(const CrossEntropySetup& s, const char* direction) {
  return std::string(direction) + " rows " + std::to_string(s.rows) + " classes " + std::to_string(s.classes) +
         " smoothing " + std::to_string(s.smoothing) + " targets " + std::to_string(static_cast<int>(s.targets)) +
         (s.shift != 0 ? " shifted" : "");
}

struct CrossEntropyResults {
  double loss = 0;
  std::vector<double> lse, dlogits;
};

CrossEntropyResults cross_entropy_reference(const CrossEntropySetup& s, const std::vector<double>& z,
                                            const std::vector<double>& targets, double smoothing, double dloss) {
  CrossEntropyResults results;
  double counted = 0;
  for (const double target : targets) counted += target == kIgnore ? 0 : 1;
  const double n = static_cast<double>(s.classes);
  for (std::size_t row = 0; row < targets.size(); ++row) {
    const double* const x = z.data() + row * static_cast<std::size_t>(s.classes);
    double largest = x[0], sum = 0, total = 0;
    for (std::int64_t i = 0; i < s.classes; ++i) largest = std::max(largest, x[i]);
    for (std::int64_t i = 0; i < s.classes; ++i) {
      sum += std::exp(x[i] - largest);
      total += x[i];
    }
    const double lse = largest + std::log(sum), target = targets[row];
    const bool known = target >= 0 && target < n;
    results.lse.push_back(lse);
    for (std::int64_t i = 0; i < s.classes; ++i) {
      const double wanted = (static_cast<double>(i) == target ? 1 - smoothing : 0) + smoothing / n;
      const double d = dloss / counted * (std::exp(x[i] - lse) - wanted);
      results.dlogits.push_back(target == kIgnore ? 0 : known ? d : kNoLoss);
    }
    if (target == kIgnore) continue;
    results.loss +=
        known ? (1 - smoothing) * (lse - x[static_cast<std::size_t>(target)]) + smoothing * (lse - total / n) : kNoLoss;
  }
  results.loss /= counted;
  return results;
}

CrossEntropyResults reference_of(const CrossEntropySetup& s, const KernelCase& at, const std::byte* member,
                                 double dloss) {
  return cross_entropy_reference(s, read_tensor(member, at.find("logits")), read_tensor(member, at.find("targets")),
                                 read_element(member, at.find("smoothing"), 0), dloss);
}

void fill_rows(const CrossEntropySetup& s, const KernelCase& at, std::byte* member, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<std::int64_t> any(0, s.classes - 1);
  const CaseTensor &logits = at.find("logits"), &targets = at.find("targets");
  for (std::int64_t i = 0; i < logits.size; ++i) write_element(member, logits, i, 3 * normal(random));
  for (std::int64_t row = 0; row < s.rows; ++row) {
    const bool ignored = s.targets == CrossEntropyTargets::all_ignored ||
                         (s.targets == CrossEntropyTargets::some_ignored && row % 3 == 1);
    write_element(member, targets, row, ignored ? kIgnore : static_cast<double>(any(random)));
  }
  if (s.targets == CrossEntropyTargets::one_unknown) {
    write_element(member, targets, s.rows / 2, static_cast<double>(s.classes));
  }
  write_element(member, at.find("smoothing"), 0, s.smoothing);
}

cuda::CrossEntropyRows rows_of(const CrossEntropySetup& s, KernelCase& at, TensorUse logits) {
  cuda::CrossEntropyRows rows{.members = {}, .rows = s.rows, .classes = s.classes, .ignore = kIgnore};
  rows.logits = at.add("logits", logits, TensorType::f32, s.rows * s.classes, s.shift);
  rows.targets = at.add("targets", TensorUse::input, TensorType::i32, s.rows);
  rows.smoothing = at.add("smoothing", TensorUse::input, TensorType::f32, 1);
  at.flops = 10.0 * static_cast<double>(s.rows * s.classes);
  return rows;
}

// Sums of that many numbers in f32.
double tolerance_of(const CrossEntropySetup& s) {
  return std::ldexp(1.0, -22) * (8 + std::sqrt(static_cast<double>(s.classes)) / 2);
}

}  // namespace

KernelCase cross_entropy_case(const CrossEntropySetup& setup) {
  KernelCase made{.name = describe_rows(setup, "cross-entropy")};
  cuda::CrossEntropyRows rows = rows_of(setup, made, TensorUse::input);
  rows.lse = made.add("lse", TensorUse::output, TensorType::f32, setup.rows);
  const std::int64_t loss = made.add("loss", TensorUse::output, TensorType::f32, 1);
  const std::int64_t losses = made.add("losses", TensorUse::scratch, TensorType::f32, setup.rows);
  made.fill = [setup, at = made](std::byte* member, std::mt19937_64& random) { fill_rows(setup, at, member, random); };
  made.expect = [setup, at = made](const std::byte* member) {
    const CrossEntropyResults results = reference_of(setup, at, member, 0);
    return std::map<std::string, Wanted>{{"lse", {results.lse, tolerance_of(setup)}},
                                         {"loss", {{results.loss}, tolerance_of(setup)}}};
  };
  made.launch = [=](const cuda::Members& members, cuda::Stream stream) {
    cuda::CrossEntropyRows now = rows;
    now.members = members;
    if (const int error = cuda::row_losses(now, losses, stream)) return error;
    return cuda::mean_loss({members, now.rows, now.ignore, now.targets}, losses, loss, stream);
  };
  return made;
}

KernelCase cross_entropy_backward_case(const CrossEntropySetup& setup) {
  KernelCase made{.name = describe_rows(setup, "cross-entropy backward")};
  cuda::CrossEntropyRows rows = rows_of(setup, made, TensorUse::overwritten);
  rows.lse = made.add("lse", TensorUse::input, TensorType::f32, setup.rows);
  const std::int64_t dloss = made.add("dloss", TensorUse::input, TensorType::f32, 1);
  const std::int64_t scale = made.add("scale", TensorUse::scratch, TensorType::f32, 1);
  made.fill = [setup, at = made](std::byte* member, std::mt19937_64& random) {
    fill_rows(setup, at, member, random);
    write_tensor(member, at.find("lse"), reference_of(setup, at, member, 0).lse);
    write_element(member, at.find("dloss"), 0, 1.75);
  };
  made.expect = [setup, at = made](const std::byte* member) {
    return std::map<std::string, Wanted>{
        {"logits", {reference_of(setup, at, member, 1.75).dlogits, tolerance_of(setup)}}};
  };
  made.launch = [=](const cuda::Members& members, cuda::Stream stream) {
    cuda::CrossEntropyRows now = rows;
    now.members = members;
    const cuda::CountedRows counted{members, now.rows, now.ignore, now.targets};
    if (const int error = cuda::gradient_scale(counted, dloss, scale, stream)) return error;
    return cuda::row_gradients(now, scale, now.logits, stream);
  };
  return made;
}

}  // namespace norma::bench
