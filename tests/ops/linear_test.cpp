// Matrix products and linear layers: derivatives, reference, awkward sizes, f32 against f64, same bits for any threads.
#include "norma/ops/linear.h"

#include "check.h"
#include "norma/ops/matmul.h"

namespace norma {
namespace {

using test::check_gradients;

struct Case {
  Transpose a, b;
};

class BatchedProduct : public testing::TestWithParam<Case> {};

TEST_P(BatchedProduct, Derivative) {
  const auto [ta, tb] = GetParam();
  check_gradients(
      [&](Graph& g) {
        const Wire a = g.input("a", {ta == Transpose::yes ? Shape{2, 4, 3} : Shape{2, 3, 4}, DType::f64});
        const Wire b = g.input("b", {tb == Transpose::yes ? Shape{2, 5, 4} : Shape{2, 4, 5}, DType::f64});
        return sum_all(square(matmul(a, b, ta, tb)));
      },
      {"a", "b"});
}

INSTANTIATE_TEST_SUITE_P(Transposes, BatchedProduct,
                         testing::Values(Case{Transpose::no, Transpose::no}, Case{Transpose::yes, Transpose::no},
                                         Case{Transpose::no, Transpose::yes}, Case{Transpose::yes, Transpose::yes}));

TEST(MatMul, RowProductsDerivative) {
  for (const Transpose transpose : {Transpose::no, Transpose::yes}) {
    check_gradients(
        [&](Graph& g) {
          const Wire x = g.input("x", {{2, 3, 7}, DType::f64});
          const Wire w = g.parameter("w", {transpose == Transpose::yes ? Shape{5, 7} : Shape{7, 5}, DType::f64});
          return sum_all(square(matmul_rows(x, w, transpose)));
        },
        {"x", "w"});
  }
}

TEST(MatMul, ReducedRowsDerivative) {
  check_gradients(
      [](Graph& g) {
        const Wire a = g.input("a", {{2, 3, 4}, DType::f64}), b = g.input("b", {{2, 3, 5}, DType::f64});
        return sum_all(square(matmul_reduce_rows(a, b)));
      },
      {"a", "b"});
}

class LinearActivation : public testing::TestWithParam<Activation> {};

TEST_P(LinearActivation, DerivativeAndReference) {
  const Activation activation = GetParam();
  check_gradients(
      [&](Graph& g) {
        const Wire x = g.input("x", {{3, 5, 7}, DType::f64}), w = g.parameter("w", {{7, 6}, DType::f64});
        return sum_all(square(linear(x, w, g.parameter("b", {{6}, DType::f64}), activation)));
      },
      {"x", "w", "b"});
  Graph g;
  const Wire in[] = {g.input("x", {{19, 33}, DType::f64}), g.parameter("w", {{33, 31}, DType::f64}),
                     g.parameter("b", {{31}, DType::f64})};
  const Wire difference = linear(in[0], in[1], in[2], activation) - Linear(true, activation).reference(in)[0];
  g.output("difference", sum_all(square(difference)));
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.run();
  EXPECT_LT(session.tensor<double>("difference")[0], 1e-24);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LinearActivation,
                         testing::Values(Activation::none, Activation::relu, Activation::gelu, Activation::gelu_tanh,
                                         Activation::silu),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// One forward and backward of a linear layer in T; returns y, dx, dw, db one after another.
template <typename T>
std::vector<double> run_linear(std::int64_t rows, std::int64_t in, std::int64_t out, int threads, int members,
                               int member) {
  Graph g;
  const DType dtype = dtype_of<T>();
  const Wire x = g.input("x", {{rows, in}, dtype}), w = g.parameter("w", {{in, out}, dtype}),
             b = g.parameter("b", {{out}, dtype});
  const Wire y = linear(x, w, b, Activation::gelu);
  const Wire wrt[] = {x, w, b};
  const Wires d = differentiate(sum_all(square(y)), wrt);
  g.output("y", y);
  g.output("dx", d[0]);
  g.output("dw", d[1]);
  g.output("db", d[2]);
  CpuSession session(test::plain_plan(g), {.members = members, .threads = threads});
  test::randomise_all(session);
  session.run();
  std::vector<double> all;
  for (const char* name : {"y", "dx", "dw", "db"}) {
    for (const T v : session.tensor<T>(name, member)) all.push_back(static_cast<double>(v));
  }
  return all;
}

TEST(Linear, SinglePrecisionAgreesWithDouble) {
  for (const auto& [rows, in, out] :
       {std::array<std::int64_t, 3>{1, 1, 1}, {3, 31, 33}, {257, 65, 17}, {130, 128, 130}, {515, 37, 512}}) {
    const std::vector<double> f32 = run_linear<float>(rows, in, out, 2, 1, 0),
                              f64 = run_linear<double>(rows, in, out, 2, 1, 0);
    double scale = 0;
    for (const double v : f64) scale = std::max(scale, std::abs(v));
    // Longest reduction: rows or channels; errors of a sum of n terms grow like sqrt(n) eps, with two products chained.
    const double tolerance =
        8 * epsilon_of(DType::f32) * std::sqrt(static_cast<double>(std::max({rows, in, out}))) * scale;
    for (std::size_t i = 0; i < f32.size(); ++i)
      ASSERT_NEAR(f32[i], f64[i], tolerance) << rows << "x" << in << "x" << out << " at " << i;
  }
}

TEST(Linear, SameBitsForAnyThreadsAndMembers) {
  for (const std::int64_t out : {130, 512}) {  // the second is packed
    const std::vector<double> alone = run_linear<float>(515, 96, out, 1, 1, 0);
    for (const int threads : {1, 2, 3}) {
      EXPECT_EQ(alone, run_linear<float>(515, 96, out, threads, 1, 0)) << threads << " threads";
      EXPECT_EQ(alone, run_linear<float>(515, 96, out, threads, 3, 2)) << threads << " threads, member 2 of 3";
    }
  }
}

// A weight that is packed for being wide gives the bits of one that is taken as it is.
TEST(Linear, PackedWeightsGiveTheSameBits) {
  Graph g;
  const Wire x = g.input("x", {{515, 40}, DType::f32}), w = g.parameter("w", {{40, 512}, DType::f32});
  g.output("plain", matmul_rows(x, w));
  g.output("packed", linear(x, w));
  CpuSession session(test::plain_plan(g));
  test::randomise_all(session);
  session.run();
  const std::span<float> plain = session.tensor<float>("plain"), packed = session.tensor<float>("packed");
  EXPECT_TRUE(std::equal(plain.begin(), plain.end(), packed.begin(), packed.end()));
}

TEST(Linear, WrongShapesAreNamed) {
  Graph g;
  const Wire x = g.input("x", {{4, 8}, DType::f32}), w = g.parameter("w", {{9, 3}, DType::f32}),
             b = g.parameter("b", {{4}, DType::f32});
  EXPECT_EQ(test::error_of([&] { linear(x, w); }),
            "linear(x f32[4, 8], w f32[9, 3]): the input has 8 channels but the weight [9, 3] takes 9");
  const Wire fitting = g.parameter("v", {{8, 3}, DType::f32});
  EXPECT_EQ(test::error_of([&] { linear(x, fitting, b); }),
            "linear(x f32[4, 8], v f32[8, 3], b f32[4]): the bias must be f32[3] but is f32[4]");
}

}  // namespace
}  // namespace norma
