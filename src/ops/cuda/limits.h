// What kernels cannot take; the table of kernels refuses it.
#pragma once

namespace norma {

constexpr int kMostSumTerms = 64;  // of one sum: where they are must fit into what a kernel is told

}  // namespace norma
