#include "cli/progress.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <system_error>

#include "cli/output.h"
#include "cli/terminal.h"
#include "cli/text.h"

namespace norma::cli {
namespace {

using namespace std::chrono_literals;

constexpr auto kRedrawn = 100ms, kTick = 500ms;
constexpr auto kFirstLine = 2s, kNextLine = 10s;  // where lines are not redrawn
constexpr std::size_t kBar = 20, kUsualColumns = 80;
constexpr double kTelling = 0.02;  // a smaller share says nothing about the rest

std::string bar(double share) {
  const auto filled = static_cast<std::size_t>(static_cast<double>(kBar) * std::clamp(share, 0.0, 1.0));
  std::string text;
  for (std::size_t i = 0; i < kBar; ++i) text += i < filled ? "\u2588" : "\u2591";
  return text;
}

}  // namespace

Progress::Progress(bool quiet) : quiet_(quiet), live_(isatty(STDERR_FILENO) != 0) {
  if (quiet_) return;
  try {
    ticker_ = std::thread([this] { tick(); });
  } catch (const std::system_error&) {  // a limit on threads: what is told is still shown when it is told
  }
}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
    erase();
  }
  wake_.notify_all();
  if (ticker_.joinable()) ticker_.join();
}

void Progress::at(Now now) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  if (now.share && !(now_ && now_->share)) {
    first_share_ = *now.share;
    measured_from_ = Clock::now();
  }
  const bool first = !now_;
  now_ = std::move(now);
  if (live_ && (first || Clock::now() - shown_ >= kRedrawn)) show();
}

void Progress::say(const std::string& line) {
  if (quiet_) return;
  const std::lock_guard lock(mutex_);
  erase();
  note("{}\n", line);
  shown_ = Clock::now();
}

void Progress::warn(const std::string& what) {
  const std::lock_guard lock(mutex_);
  erase();
  note("warning: {}\n", what);
}

void Progress::clear() {
  const std::lock_guard lock(mutex_);
  erase();
  now_.reset();
}

void Progress::tick() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, kTick, [this] { return ended_; })) {
    if (!now_) continue;
    const auto wait = shown_ == began_ ? kFirstLine : kNextLine;
    if (live_ || Clock::now() - shown_ >= wait) show();
  }
}

void Progress::show() {
  shown_ = Clock::now();
  if (!live_) {
    note("{}\n", line());
    return;
  }
  // One column stays free: a terminal that is full to the last one may begin the next line.
  write_err("\r\x1b[K" + cut_to(printable(line()), error_columns().value_or(kUsualColumns) - 1));
  drawn_ = true;
}

void Progress::erase() {
  if (drawn_) write_err("\r\x1b[K");
  drawn_ = false;
}

std::string Progress::line() const {
  if (!now_->share) {
    const std::string left = now_->seconds_left ? ", " + duration_text(*now_->seconds_left) + " left" : "";
    return fmt::format("{} ({}{})", now_->what, duration_text(seconds_since(began_)), left);
  }
  const double share = *now_->share, done = share - first_share_;
  std::optional<double> left = now_->seconds_left;
  if (!left && done > kTelling) left = seconds_since(measured_from_) * (1 - share) / done;
  return fmt::format("{}{:>3.0f} %  {}{}", live_ ? bar(share) + " " : "", 100 * share,
                     left ? duration_text(*left) + " left  " : "", now_->what);
}

double Progress::seconds_since(Clock::time_point then) const {
  return std::chrono::duration<double>(Clock::now() - then).count();
}

}  // namespace norma::cli
