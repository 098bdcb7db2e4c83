#include "store/append_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "store/file_error.h"

namespace norma {

AppendFile::AppendFile(const Folder& folder, const std::string& name, Mode mode, FlushPolicy policy,
                       std::string_view kept)
    : path_(folder / name), policy_(policy), size_(kept.size()) {
  hash_.update(std::as_bytes(std::span(kept)));
  descriptor_ = folder.open(name, O_WRONLY | O_CREAT | O_EXCL);
  const bool fresh = descriptor_ >= 0;
  if (!fresh && errno == EEXIST && mode == Mode::extend) descriptor_ = folder.open(name, O_WRONLY);
  if (descriptor_ < 0) fail_with_errno("create the log", path_, errno);
  const auto end = static_cast<off_t>(size_);
  if (::ftruncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) != end || ::fsync(descriptor_) != 0) {
    const int error = errno;
    ::close(descriptor_);
    fail_with_errno("shorten the log", path_, error);
  }
  try {
    if (fresh) folder.sync();
  } catch (const Error&) {
    ::close(descriptor_);
    throw;
  }
}

AppendFile::~AppendFile() {
  try {
    flush();
  } catch (const Error&) {  // nobody is left to hear it
  }
  ::close(descriptor_);
}

void AppendFile::append(std::string_view record) {
  const auto now = std::chrono::steady_clock::now();
  if (waiting_records_ == 0) oldest_ = now;
  waiting_ += record;
  ++waiting_records_;
  if (waiting_records_ >= policy_.records || now - oldest_ >= policy_.age) flush();
}

void AppendFile::flush() {
  std::size_t done = 0;
  while (done < waiting_.size()) {
    const ssize_t written = ::write(descriptor_, waiting_.data() + done, waiting_.size() - done);
    if (written < 0) {
      if (errno == EINTR) continue;
      const int error = errno;
      // Whatever was written of these records goes: a later attempt would glue a whole one to half of one.
      const auto end = static_cast<off_t>(size_);
      if (::ftruncate(descriptor_, end) != 0 || ::lseek(descriptor_, end, SEEK_SET) != end)
        fail("cannot append to '{}': {}; nor could the half record be taken back: {}", path_.string(),
             std::system_category().message(error), std::system_category().message(errno));
      fail_with_errno("append to", path_, error);
    }
    done += static_cast<std::size_t>(written);
  }
  size_ += waiting_.size();
  hash_.update(std::as_bytes(std::span(waiting_)));
  waiting_.clear();
  waiting_records_ = 0;
}

void AppendFile::sync() {
  flush();
  if (::fsync(descriptor_) != 0) fail_with_errno("bring to disk", path_, errno);
}

}  // namespace norma
