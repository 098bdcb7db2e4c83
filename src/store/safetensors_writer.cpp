#include "norma/store/safetensors_writer.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "norma/core/error.h"
#include "store/safetensors_header.h"
#include "store/xxh64.h"

namespace norma {
namespace {

std::vector<TensorInfo> lay_out(std::vector<TensorEntry> entries, TensorOrder order) {
  if (order == TensorOrder::by_size_and_name) {
    std::stable_sort(entries.begin(), entries.end(), [](const TensorEntry& a, const TensorEntry& b) {
      const std::size_t wide = size_of(a.type), narrow = size_of(b.type);
      return wide != narrow ? wide > narrow : a.name < b.name;
    });
  }
  std::vector<TensorInfo> tensors;
  std::set<std::string_view> names;
  std::uint64_t end = 0;
  for (TensorEntry& entry : entries) {
    const std::uint64_t bytes = tensor_bytes(entry.name, entry.type, entry.shape);
    if (bytes > static_cast<std::uint64_t>(INT64_MAX) - end)
      fail("the tensors up to '{}' are larger than any file", entry.name);
    tensors.push_back({std::move(entry.name), entry.type, std::move(entry.shape), end, end + bytes});
    end += bytes;
  }
  for (const TensorInfo& tensor : tensors) {
    if (!names.insert(tensor.name).second) fail("two tensors are called '{}'", tensor.name);
    if (tensor.name == "__metadata__") fail("'__metadata__' cannot be the name of a tensor");
  }
  return tensors;
}

}  // namespace

SafetensorsWriter::SafetensorsWriter(AtomicFile file, std::vector<TensorEntry> entries, Metadata metadata,
                                     SafetensorsOptions options)
    : file_(std::move(file)), tensors_(lay_out(std::move(entries), options.order)) {
  metadata.erase(std::string(kChecksumKey));
  if (options.checksum == Checksum::xxh64) {
    metadata.emplace(kChecksumKey, std::string(kChecksumPrefix) + std::string(kChecksumDigits, '0'));
    hash_ = std::make_unique<Xxh64>();
  }
  const std::string header = print_header(tensors_, metadata);
  if (hash_) {
    checksum_offset_ = find_checksum_digits(header);
    NORMA_ASSERT(checksum_offset_ != std::string::npos);
    hash_->update(std::as_bytes(std::span(header)));
  }
  file_.write(header);
}

SafetensorsWriter::SafetensorsWriter(SafetensorsWriter&&) noexcept = default;
SafetensorsWriter::~SafetensorsWriter() = default;

std::size_t SafetensorsWriter::next_unfinished() const {
  const auto next = std::partition_point(tensors_.begin(), tensors_.end(),
                                         [this](const TensorInfo& tensor) { return tensor.end <= data_written_; });
  return static_cast<std::size_t>(next - tensors_.begin());
}

void SafetensorsWriter::write(std::string_view name, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  const std::size_t turn = next_unfinished();
  if (turn == tensors_.size())
    fail("'{}': {} bytes for '{}', but every tensor is complete", file_.path().string(), bytes.size(), name);
  const TensorInfo& tensor = tensors_[turn];
  if (tensor.name != name)
    fail("'{}': bytes for '{}', but it is the turn of '{}'", file_.path().string(), name, tensor.name);
  if (bytes.size() > tensor.end - data_written_)
    fail("'{}': {} bytes for '{}', which is {} and lacks {}", file_.path().string(), bytes.size(), name, tensor.str(),
         tensor.end - data_written_);
  if (hash_) hash_->update(bytes);
  file_.write(bytes);
  data_written_ += bytes.size();
}

void SafetensorsWriter::commit() {
  if (const std::size_t turn = next_unfinished(); turn < tensors_.size())
    fail("'{}': tensor '{}' lacks {} bytes", file_.path().string(), tensors_[turn].name,
         tensors_[turn].end - std::max(data_written_, tensors_[turn].begin));
  if (hash_) file_.rewrite(checksum_offset_, checksum_text(hash_->digest()));
  file_.commit();
}

void write_safetensors(AtomicFile file, std::span<const TensorData> tensors, Metadata metadata,
                       SafetensorsOptions options) {
  std::vector<TensorEntry> entries;
  std::map<std::string_view, const TensorData*> given;
  for (const TensorData& tensor : tensors) {
    const std::uint64_t needed = tensor_bytes(tensor.entry.name, tensor.entry.type, tensor.entry.shape);
    if (!tensor.read && tensor.bytes.size() != needed)
      fail("tensor '{}' of shape [{}] needs {} bytes; {} were given", tensor.entry.name,
           fmt::join(tensor.entry.shape, ", "), needed, tensor.bytes.size());
    entries.push_back(tensor.entry);
    given.emplace(tensor.entry.name, &tensor);
  }
  SafetensorsWriter writer(std::move(file), std::move(entries), std::move(metadata), options);
  std::vector<std::byte> copy;
  for (const TensorInfo& tensor : writer.tensors()) {
    const TensorData& data = *given.at(tensor.name);
    if (data.read) {
      copy.resize(static_cast<std::size_t>(tensor.end - tensor.begin));
      data.read(copy);
    }
    writer.write(tensor.name, data.read ? std::span<const std::byte>(copy) : data.bytes);
  }
  writer.commit();
}

}  // namespace norma
