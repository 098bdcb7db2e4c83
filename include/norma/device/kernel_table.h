// The kernels of one device by the type of their op, with the floating dtypes that each computes.
#pragma once

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <typeindex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "norma/core/error.h"
#include "norma/graph/op.h"

namespace norma {

template <typename MadeKernel>
class KernelTable {
 public:
  // Enters the kernel of an op, for tensors of these floating dtypes; integers are the op's own business. Where
  // `serves` is given, only for applications that it says yes to.
  template <typename OpType>
  void add(MadeKernel (*kernel_of)(const OpType& op, Types in, Types out), std::initializer_list<DType> dtypes,
           bool (*serves)(const OpType& op, Types in, Types out) = nullptr) {
    NORMA_ASSERT(!entries_.contains(typeid(OpType)));
    entries_.emplace(
        typeid(OpType),
        Entry{.make = [kernel_of](const Op& op, Types in,
                                  Types out) { return kernel_of(static_cast<const OpType&>(op), in, out); },
              .serves = [serves](
                            const Op& op, Types in,
                            Types out) { return serves == nullptr || serves(static_cast<const OpType&>(op), in, out); },
              .dtypes = dtypes});
  }

  bool has(const Op& op, Types in, Types out) const {
    const auto found = entries_.find(typeid(op));
    if (found == entries_.end()) return false;
    const std::vector<DType>& dtypes = found->second.dtypes;
    const auto known = [&](const Type& type) {
      return !is_floating(type.dtype) || std::find(dtypes.begin(), dtypes.end(), type.dtype) != dtypes.end();
    };
    return std::all_of(in.begin(), in.end(), known) && std::all_of(out.begin(), out.end(), known) &&
           found->second.serves(op, in, out);
  }

  MadeKernel make(const Op& op, Types in, Types out) const {
    const auto found = entries_.find(typeid(op));
    NORMA_ASSERT(found != entries_.end());
    return found->second.make(op, in, out);
  }

  std::vector<std::type_index> ops() const {  // in no order
    std::vector<std::type_index> types;
    for (const auto& [type, entry] : entries_) types.push_back(type);
    return types;
  }

 private:
  struct Entry {
    std::function<MadeKernel(const Op& op, Types in, Types out)> make;
    std::function<bool(const Op& op, Types in, Types out)> serves;
    std::vector<DType> dtypes;
  };
  std::unordered_map<std::type_index, Entry> entries_;
};

}  // namespace norma
