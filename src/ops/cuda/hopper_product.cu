#include "ops/cuda/hopper_product.h"

#include <limits>

#include "norma/ops/weight_gradients.h"

#ifdef NORMA_SM90A
#include "ops/cuda/activation_math.cuh"
#include "ops/cuda/hopper_product_launch.cuh"
#include "ops/cuda/hopper_product_pair.cuh"
#endif

namespace norma::cuda {
namespace {

// The copy engine takes rows of whole 16 bytes; accesses are as wide.
bool is_whole(std::int64_t offset) { return offset % 16 == 0; }
bool is_size(std::int64_t size) { return size > 0 && size < std::numeric_limits<std::int32_t>::max() / 2; }

}  // namespace

bool fits(const FusedProduct& p) {
  return is_size(p.m) && is_size(p.n) && is_size(p.k) && p.n % 8 == 0 && p.k % 8 == 0 && is_whole(p.a) &&
         is_whole(p.b) && is_whole(p.out) && (p.before < 0 || is_whole(p.before)) && (p.bias < 0 || p.bias % 4 == 0);
}

bool fits(const WeightProduct& p) {
  return is_size(p.rows) && is_size(p.m) && is_size(p.n) && p.m % 8 == 0 && p.n % 8 == 0 && is_whole(p.a) &&
         is_whole(p.b) && p.out % 8 == 0;
}

bool fits(const ProductPair& p) {
  return is_size(p.m) && is_size(p.n) && is_size(p.made_k) && is_size(p.gradient_k) && p.n % 8 == 0 &&
         p.made_k % 8 == 0 && p.gradient_k % 8 == 0 && is_whole(p.x) && is_whole(p.weight) && is_whole(p.dy) &&
         is_whole(p.gradient_weight) && is_whole(p.y) && is_whole(p.dz) && (p.bias < 0 || p.bias % 4 == 0);
}

bool plain_product_pays(const FusedProduct& p, const Members& members) {
  // For one member of few rows the library is faster by a tenth of a step; 64 of them take 3 % less time with ours.
  // The fewest tiles are four for each multiprocessor of an H200; the largest that lost had 48.
  constexpr std::int64_t kDeepest = 512, kFewestTiles = 528, kSide = 128;
  const std::int64_t across = divide_up(p.n, kSide), tiles = across * divide_up(p.m, kSide) * members.count;
  return p.k <= kDeepest && tiles >= kFewestTiles && across * kSide * 4 <= p.n * 5 && fits(p) && has_hopper_products();
}

#ifdef NORMA_SM90A

namespace {

template <Activation F>
struct Function {
  __device__ __forceinline__ static float value(float x) { return activation_value<F, Exactness::bf16>(x); }
  __device__ __forceinline__ static float slope(float x) { return activation_slope<F, Exactness::bf16>(x); }
};

template <class Launch>
int with_function(Activation f, const Launch& launch) {
  switch (f) {
    case Activation::relu: return launch(Function<Activation::relu>{});
    case Activation::gelu: return launch(Function<Activation::gelu>{});
    case Activation::gelu_tanh: return launch(Function<Activation::gelu_tanh>{});
    case Activation::silu: return launch(Function<Activation::silu>{});
    case Activation::none: break;
  }
  return cudaErrorInvalidValue;
}

}  // namespace

bool has_hopper_products() {
  static const bool has = [] {
    int device = 0, major = 0, minor = 0;
    return cudaGetDevice(&device) == cudaSuccess &&
           cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) == cudaSuccess &&
           cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device) == cudaSuccess && major == 9 &&
           minor == 0 && product::map_encoder() != nullptr;
  }();
  return has;
}

int activated_product(const FusedProduct& p, Activation f, const Members& members, Stream stream) {
  product::Group<1> group{.members = in_order(members), .from_the_end = members.stride < 0};
  if (!product::add_product<true, false>(group, {p.a, p.m, p.k}, {p.b, p.k, p.n}, p.out)) return cudaErrorInvalidValue;
  return with_function(f, [&]<class F>(F) -> int {
    product::Activated<F> end{.keeps = p.before >= 0, .bias = p.bias};
    if (!product::make_map(end.out, group.members, {p.out, p.m, p.n}, product::kRowsOfWarp))
      return cudaErrorInvalidValue;
    if (end.keeps && !product::make_map(end.before, group.members, {p.before, p.m, p.n}, product::kRowsOfWarp))
      return cudaErrorInvalidValue;
    return product::launch_products<true, false, 2>(group, end, stream);
  });
}

namespace {

template <bool kAlongB>
int plain_product_as(const FusedProduct& p, const Members& members, Stream stream) {
  product::Group<1> group{.members = in_order(members), .from_the_end = members.stride < 0};
  product::Biased end{.bias = p.bias};
  const product::Matrix b = kAlongB ? product::Matrix{p.b, p.n, p.k} : product::Matrix{p.b, p.k, p.n};
  if (!product::add_product<true, kAlongB>(group, {p.a, p.m, p.k}, b, p.out) ||
      !product::make_map(end.out, group.members, {p.out, p.m, p.n}, product::kRowsOfWarp))
    return cudaErrorInvalidValue;
  return product::launch_products<true, kAlongB, 2>(group, end, stream);
}

}  // namespace

int plain_product(const FusedProduct& p, Transpose of_b, const Members& members, Stream stream) {
  return of_b == Transpose::yes ? plain_product_as<true>(p, members, stream)
                                : plain_product_as<false>(p, members, stream);
}

int sloped_product(const FusedProduct& p, Activation f, const Members& members, Stream stream) {
  product::Group<1> group{.members = in_order(members), .from_the_end = members.stride < 0};
  if (!product::add_product<true, true>(group, {p.a, p.m, p.k}, {p.b, p.n, p.k}, p.out)) return cudaErrorInvalidValue;
  return with_function(f, [&]<class F>(F) -> int {
    product::Sloped<F> end{.lines = p.lines};
    if (!product::make_map(end.out, group.members, {p.out, p.m, p.n}, product::kRowsOfWarp) ||
        !product::make_map(end.before, group.members, {p.before, p.m, p.n}, product::kSide))
      return cudaErrorInvalidValue;
    return product::launch_products<true, true, 2>(group, end, stream);
  });
}

int made_and_sloped(const ProductPair& p, Activation f, const Members& members, Stream stream) {
  product::Pair pair{.bias = p.bias};
  pair.made.members = pair.gradient.members = in_order(members);
  pair.made.from_the_end = pair.gradient.from_the_end = members.stride < 0;
  if (!product::add_product<true, false>(pair.made, {p.x, p.m, p.made_k}, {p.weight, p.made_k, p.n}, p.y) ||
      !product::add_product<true, true>(pair.gradient, {p.dy, p.m, p.gradient_k},
                                        {p.gradient_weight, p.n, p.gradient_k}, p.dz) ||
      !product::make_map(pair.y, pair.made.members, {p.y, p.m, p.n}, product::kRowsOfWarp) ||
      !product::make_map(pair.dz, pair.made.members, {p.dz, p.m, p.n}, product::kRowsOfWarp))
    return cudaErrorInvalidValue;
  return with_function(f, [&]<class F>(F) -> int { return product::launch_pair<F>(pair, stream); });
}

int weight_products(std::span<const WeightProduct> products, const Members& members, Stream stream) {
  if (products.size() > static_cast<std::size_t>(kMostWeightGradients)) return cudaErrorInvalidValue;
  product::Group<kMostWeightGradients> group{.members = in_order(members), .from_the_end = members.stride < 0};
  for (const WeightProduct& p : products) {
    if (!product::add_product<false, false>(group, {p.a, p.rows, p.m}, {p.b, p.rows, p.n}, p.out))
      return cudaErrorInvalidValue;
    group.of[group.count - 1].sums = p.sums;
  }
  return product::has_few_tiles(group) ? product::launch_products<false, false, 1>(group, product::Wide{}, stream)
                                       : product::launch_products<false, false, 2>(group, product::Wide{}, stream);
}

#else

bool has_hopper_products() { return false; }
int activated_product(const FusedProduct&, Activation, const Members&, Stream) { return cudaErrorNotSupported; }
int plain_product(const FusedProduct&, Transpose, const Members&, Stream) { return cudaErrorNotSupported; }
int sloped_product(const FusedProduct&, Activation, const Members&, Stream) { return cudaErrorNotSupported; }
int made_and_sloped(const ProductPair&, Activation, const Members&, Stream) { return cudaErrorNotSupported; }
int weight_products(std::span<const WeightProduct>, const Members&, Stream) { return cudaErrorNotSupported; }

#endif

}  // namespace norma::cuda
