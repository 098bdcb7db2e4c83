// Writes safetensors files through an AtomicFile, with a checksum, without gathering the tensors in one buffer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "norma/store/atomic_file.h"
#include "norma/store/safetensors.h"

namespace norma {

class Xxh64;

enum class TensorOrder : std::uint8_t {
  by_size_and_name,  // wide elements first, then names: every tensor is aligned for its element
  as_given,
};

enum class Checksum : std::uint8_t { xxh64, none };

struct SafetensorsOptions {
  TensorOrder order = TensorOrder::by_size_and_name;
  Checksum checksum = Checksum::xxh64;
};

struct TensorEntry {
  std::string name;
  ElementType type = ElementType::f32;
  std::vector<std::int64_t> shape;
};

struct TensorData {
  TensorEntry entry;
  std::span<const std::byte> bytes;
  // Fills in the bytes when their turn comes, for tensors that lie elsewhere; `bytes` does not count then.
  std::function<void(std::span<std::byte>)> read = {};
};

template <typename T>
TensorData tensor_data(std::string name, std::vector<std::int64_t> shape, std::span<const T> values) {
  return {{std::move(name), element_type_of<T>(), std::move(shape)}, std::as_bytes(values)};
}

// For tensors that come one by one, or in pieces, such as from another device:
//   SafetensorsWriter writer(path, entries, metadata);
//   for (const TensorInfo& tensor : writer.tensors()) writer.write(tensor.name, bytes_of(tensor));
//   writer.commit();
class SafetensorsWriter {
 public:
  // Throws Error on a repeated name, a negative dimension or a size beyond 64 bits.
  SafetensorsWriter(AtomicFile file, std::vector<TensorEntry> entries, Metadata metadata = {},
                    SafetensorsOptions options = {});
  SafetensorsWriter(const std::filesystem::path& path, std::vector<TensorEntry> entries, Metadata metadata = {},
                    SafetensorsOptions options = {})
      : SafetensorsWriter(AtomicFile(path), std::move(entries), std::move(metadata), options) {}
  SafetensorsWriter(SafetensorsWriter&&) noexcept;
  ~SafetensorsWriter();

  std::span<const TensorInfo> tensors() const { return tensors_; }  // in the order in which they must be written

  // The next bytes of tensor `name`. Throws Error when it is another's turn or when there are too many.
  void write(std::string_view name, std::span<const std::byte> bytes);

  // Throws Error when a tensor is not complete.
  void commit();

 private:
  std::size_t next_unfinished() const;

  AtomicFile file_;
  std::vector<TensorInfo> tensors_;
  std::unique_ptr<Xxh64> hash_;        // null without checksum
  std::uint64_t checksum_offset_ = 0;  // of its digits in the file
  std::uint64_t data_written_ = 0;
};

void write_safetensors(AtomicFile file, std::span<const TensorData> tensors, Metadata metadata = {},
                       SafetensorsOptions options = {});
inline void write_safetensors(const std::filesystem::path& path, std::span<const TensorData> tensors,
                              Metadata metadata = {}, SafetensorsOptions options = {}) {
  write_safetensors(AtomicFile(path), tensors, std::move(metadata), options);
}

}  // namespace norma
