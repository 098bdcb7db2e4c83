#include "bench/cuda/attention_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/cuda/attention_reference.h"

namespace norma::bench {
namespace {

using cuda::AttentionMath;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN(), kInfinity = std::numeric_limits<double>::infinity();

TensorType type_of(AttentionMath math) { return math == AttentionMath::bf16 ? TensorType::bf16 : TensorType::f32; }

std::string describe(const AttentionSetup& s, const char* direction) {
  const char* const math = s.math == AttentionMath::f32 ? "f32" : s.math == AttentionMath::tf32 ? "tf32" : "bf16";
  std::string text = std::string(direction) + " " + math + " batch " + std::to_string(s.batch) + " queries " +
                     std::to_string(s.queries) + " keys " + std::to_string(s.key_count()) + " heads " +
                     std::to_string(s.heads) + "/" + std::to_string(s.kv_count()) + " width " + std::to_string(s.width);
  text += s.mask == cuda::KeyMask::causal ? " causal" : " full";
  text += s.wires == AttentionWires::packed ? " packed" : " separate";
  if (!s.lengths.empty()) text += " lengths";
  if (s.scale != 0) text += " scale " + std::to_string(s.scale);
  if (s.poison == AttentionPoison::hidden) text += " hidden NaN";
  if (s.poison == AttentionPoison::future) text += " future NaN";
  if (s.outputs != AttentionOutputs::all) text += " outputs " + std::to_string(static_cast<int>(s.outputs));
  if (s.shift != 0) text += " shifted";
  if (s.context) text += " with context";
  return text;
}

// Share of the largest value: the rounding of factors and of results, and what sums of that many random ones make of
// it. An error of a score is a relative one of its probability, and rounded factors are off by a share of the score:
// scores that spread wider than 1 give errors that are as much larger.
double tolerance_of(const AttentionSetup& s) {
  const double unit = std::ldexp(1.0, s.math == AttentionMath::f32 ? -22 : s.math == AttentionMath::tf32 ? -11 : -9);
  const double spread = std::max(1.0, std::abs(s.factor()) * std::sqrt(s.width));
  return unit * (8 * spread + (std::sqrt(s.width) + std::sqrt(s.key_count())) / 2);
}

// Columns [first, first + count) of rows of a [., row] tensor.
struct Columns {
  std::string tensor;
  std::int64_t first, count, row;
};
struct WireColumns {
  Columns q, k, v;
};

WireColumns columns_of(const AttentionSetup& s, bool gradients) {
  const std::int64_t q = std::int64_t{s.heads} * s.width, kv = std::int64_t{s.kv_count()} * s.width, row = q + 2 * kv;
  const std::string d = gradients ? "d" : "";
  if (s.wires == AttentionWires::packed) {
    return {{d + "qkv", 0, q, row}, {d + "qkv", q, kv, row}, {d + "qkv", q + kv, kv, row}};
  }
  return {{d + "q", 0, q, q}, {d + "k", 0, kv, kv}, {d + "v", 0, kv, kv}};
}

std::vector<double> gather(const KernelCase& at, const std::byte* member, const Columns& columns) {
  const CaseTensor& tensor = at.find(columns.tensor);
  std::vector<double> values;
  for (std::int64_t row = 0; row < tensor.size / columns.row; ++row) {
    for (std::int64_t c = 0; c < columns.count; ++c) {
      values.push_back(read_element(member, tensor, row * columns.row + columns.first + c));
    }
  }
  return values;
}

void scatter(const Columns& columns, const std::vector<double>& values, std::vector<double>& to) {
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns.count;
  to.resize(static_cast<std::size_t>(rows * columns.row));
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t c = 0; c < columns.count; ++c) {
      to[static_cast<std::size_t>(row * columns.row + columns.first + c)] =
          values[static_cast<std::size_t>(row * columns.count + c)];
    }
  }
}

AttentionInputs inputs_of(const AttentionSetup& s, const KernelCase& at, const std::byte* member, bool backward) {
  const WireColumns columns = columns_of(s, false);
  AttentionInputs inputs{
      gather(at, member, columns.q), gather(at, member, columns.k), gather(at, member, columns.v), {}};
  if (backward) inputs.dcontext = read_tensor(member, at.find("dcontext"));
  return inputs;
}

void write_poison(const AttentionSetup& s, const KernelCase& at, std::byte* member, bool backward) {
  const WireColumns columns = columns_of(s, false);
  const auto put = [&](const Columns& to, int sample, int times, int time, std::int64_t column, double value) {
    if (time < 0 || time >= times) return;
    write_element(member, at.find(to.tensor), (std::int64_t{sample} * times + time) * to.row + to.first + column,
                  value);
  };
  if (s.poison == AttentionPoison::hidden) {
    for (int sample = 0; sample < s.batch; ++sample) {
      const int length = std::max(0, s.lengths[static_cast<std::size_t>(sample)]);
      for (int time = length; time < s.key_count(); ++time) {
        for (std::int64_t c = 0; c < columns.k.count; ++c) {
          put(columns.k, sample, s.key_count(), time, c, c % 2 == 0 ? kNan : kInfinity);
          put(columns.v, sample, s.key_count(), time, c, c % 3 == 0 ? -kInfinity : kNan);
        }
      }
    }
  }
  if (s.poison == AttentionPoison::future) {
    put(columns.v, 0, s.key_count(), s.key_count() - 3, 0, kNan);
    put(columns.k, 0, s.key_count(), s.key_count() - 2, 0, kInfinity);
    put(columns.q, 0, s.queries, 0, 0, kNan);
    if (backward) {
      const std::int64_t row = std::int64_t{s.heads} * s.width;
      put({"dcontext", 0, row, row}, 0, s.queries, 2, row - 1, kInfinity);
    }
  }
}

void fill_inputs(const AttentionSetup& s, const KernelCase& at, std::byte* member, std::mt19937_64& random,
                 bool backward) {
  std::normal_distribution<double> normal;
  for (const CaseTensor& tensor : at.tensors) {
    if (tensor.use != TensorUse::input || tensor.name == "lengths") continue;
    for (std::int64_t i = 0; i < tensor.size; ++i) write_element(member, tensor, i, normal(random));
  }
  if (!s.lengths.empty()) write_tensor(member, at.find("lengths"), {s.lengths.begin(), s.lengths.end()});
  write_poison(s, at, member, backward);
  if (!backward) return;
  const AttentionResults results = attention_reference(s, inputs_of(s, at, member, false));
  write_tensor(member, at.find("lse"), results.lse);
  if (s.context) write_tensor(member, at.find("context"), results.context);
}

// Half of the pairs are hidden by a causal mask.
double pairs_of(const AttentionSetup& s) {
  const double queries = s.queries, keys = s.key_count();
  return s.batch * s.heads * (s.mask == cuda::KeyMask::causal ? queries * (queries + 1) / 2 : queries * keys);
}

cuda::AttentionCall call_of(const AttentionSetup& s, KernelCase& at) {
  cuda::AttentionCall call;
  call.math = s.math;
  call.batch = s.batch;
  call.queries = s.queries;
  call.keys = s.key_count();
  call.heads = s.heads;
  call.kv_heads = s.kv_count();
  call.width = s.width;
  call.mask = s.mask;
  call.scale = static_cast<float>(s.factor());
  const WireColumns columns = columns_of(s, false);
  call.q_row = columns.q.row;
  call.kv_row = columns.k.row;
  const TensorType type = type_of(s.math);
  const std::int64_t element = type == TensorType::bf16 ? 2 : 4;
  const std::int64_t q_size = columns.q.row * s.batch * s.queries, kv_size = columns.k.row * s.batch * s.key_count();
  if (s.wires == AttentionWires::packed) {
    call.q = at.add("qkv", TensorUse::input, type, q_size, s.shift);
    call.k = call.q + columns.k.first * element;
    call.v = call.q + columns.v.first * element;
  } else {
    call.q = at.add("q", TensorUse::input, type, q_size, s.shift);
    call.k = at.add("k", TensorUse::input, type, kv_size, s.shift);
    call.v = at.add("v", TensorUse::input, type, kv_size, s.shift);
  }
  if (!s.lengths.empty()) call.lengths = at.add("lengths", TensorUse::input, TensorType::i32, s.batch);
  return call;
}

}  // namespace

double AttentionSetup::factor() const { return scale == 0 ? 1 / std::sqrt(static_cast<double>(width)) : scale; }

KernelCase attention_forward_case(const AttentionSetup& setup) {
  KernelCase made{.name = describe(setup, "forward")};
  cuda::AttentionCall call = call_of(setup, made);
  const std::int64_t rows = std::int64_t{setup.batch} * setup.heads * setup.queries;
  call.context = made.add("context", TensorUse::output, type_of(setup.math), rows * setup.width, setup.shift);
  if (setup.outputs != AttentionOutputs::no_lse) call.lse = made.add("lse", TensorUse::output, TensorType::f32, rows);
  made.flops = 4 * setup.width * pairs_of(setup);
  made.fill = [setup, at = made](std::byte* member, std::mt19937_64& random) {
    fill_inputs(setup, at, member, random, false);
  };
  made.expect = [setup, at = made](const std::byte* member) {
    const AttentionResults results = attention_reference(setup, inputs_of(setup, at, member, false));
    const double tolerance = tolerance_of(setup);
    return std::map<std::string, Wanted>{{"context", {results.context, tolerance}}, {"lse", {results.lse, tolerance}}};
  };
  made.launch = [call](const cuda::Members& members, cuda::Stream stream) {
    cuda::AttentionCall now = call;
    now.members = members;
    return cuda::attention_forward(now, stream);
  };
  return made;
}

KernelCase attention_backward_case(const AttentionSetup& setup) {
  KernelCase made{.name = describe(setup, "backward")};
  cuda::AttentionCall call = call_of(setup, made);
  const TensorType type = type_of(setup.math);
  const std::int64_t rows = std::int64_t{setup.batch} * setup.heads * setup.queries;
  call.lse = made.add("lse", TensorUse::input, TensorType::f32, rows);
  call.dcontext = made.add("dcontext", TensorUse::input, type, rows * setup.width, setup.shift);
  if (setup.context) call.context = made.add("context", TensorUse::input, type, rows * setup.width, setup.shift);
  if (setup.wires == AttentionWires::packed) {
    call.dq = made.add("dqkv", TensorUse::output, type, made.find("qkv").size, setup.shift);
    call.dk = call.dq + (call.k - call.q);
    call.dv = call.dq + (call.v - call.q);
  } else {
    const auto wanted = [&](AttentionOutputs only) {
      return setup.outputs == AttentionOutputs::all || setup.outputs == only;
    };
    const std::int64_t kv_size = made.find("k").size;
    if (wanted(AttentionOutputs::first)) {
      call.dq = made.add("dq", TensorUse::output, type, made.find("q").size, setup.shift);
    }
    if (wanted(AttentionOutputs::second)) call.dk = made.add("dk", TensorUse::output, type, kv_size, setup.shift);
    if (wanted(AttentionOutputs::third)) call.dv = made.add("dv", TensorUse::output, type, kv_size, setup.shift);
  }
  call.scratch = made.add("scratch", TensorUse::scratch, TensorType::f32,
                          cuda::attention_backward_scratch(call) / static_cast<std::int64_t>(4));
  made.flops = 10 * setup.width * pairs_of(setup);
  made.fill = [setup, at = made](std::byte* member, std::mt19937_64& random) {
    fill_inputs(setup, at, member, random, true);
  };
  made.expect = [setup, at = made](const std::byte* member) {
    const AttentionResults results = attention_reference(setup, inputs_of(setup, at, member, true));
    const WireColumns columns = columns_of(setup, true);
    std::map<std::string, Wanted> wanted;
    for (const auto& [to, values] :
         {std::pair(columns.q, results.dq), {columns.k, results.dk}, {columns.v, results.dv}}) {
      scatter(to, values, wanted[to.tensor].values);
      wanted[to.tensor].tolerance = tolerance_of(setup);
      wanted[to.tensor].cancels = results.score_gradient;
    }
    return wanted;
  };
  made.launch = [call](const cuda::Members& members, cuda::Stream stream) {
    cuda::AttentionCall now = call;
    now.members = members;
    return cuda::attention_backward(now, stream);
  };
  return made;
}

}  // namespace norma::bench
