#include "store/mapped_file.h"

#include "norma/core/error.h"

namespace norma {

std::string read_text(const std::filesystem::path& path) {
  constexpr std::size_t kMaxText = std::size_t{64} << 20;
  const MappedFile file(path);
  if (file.bytes().size() > kMaxText)
    fail("'{}' has {} bytes; a text file of a run has at most {}", path.string(), file.bytes().size(), kMaxText);
  return std::string(file.text());
}

}  // namespace norma
