// A log that only grows, in whole records: a record that could not be written whole is taken back.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "norma/store/flush_policy.h"
#include "norma/store/folder.h"
#include "store/xxh64.h"

namespace norma {

class AppendFile {
 public:
  enum class Mode : std::uint8_t { create, extend };

  // `create` throws Error when the file exists; `extend` keeps `kept`, with which it begins, and creates a missing one.
  // A new file has its entry on disk when this returns, so that nothing else can survive the loss of power without it.
  AppendFile(const Folder& folder, const std::string& name, Mode mode, FlushPolicy policy, std::string_view kept = {});
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;
  ~AppendFile();  // flushes; an error is lost, so flush() or sync() first

  void append(std::string_view record);
  void flush();  // to the operating system. On Error the records stay in memory, and a later flush may succeed.
  void sync();   // to disk

  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }             // of the whole records in the file
  std::uint64_t digest() const { return hash_.digest(); }  // XXH64 of them

 private:
  std::filesystem::path path_;
  FlushPolicy policy_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;  // of whole records in the file
  Xxh64 hash_;
  std::string waiting_;
  std::size_t waiting_records_ = 0;
  std::chrono::steady_clock::time_point oldest_{};
};

}  // namespace norma
