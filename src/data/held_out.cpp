#include "data/held_out.h"

#include "norma/core/error.h"
#include "norma/core/names.h"

namespace norma {
namespace {

class HeldOutPart final : public Source {
 public:
  HeldOutPart(std::unique_ptr<Source> whole, std::int64_t first) : whole_(std::move(whole)), first_(first) {}

  void fill(std::uint64_t index, std::uint64_t seed, Batch& batch) const override { whole_->fill(index, seed, batch); }
  std::int64_t evaluation_batches() const override { return (whole_->evaluation_batches() + 1 - first_) / 2; }
  void fill_evaluation(std::int64_t index, Batch& batch) const override {
    whole_->fill_evaluation(2 * index + first_, batch);
  }
  std::int64_t vocabulary() const override { return whole_->vocabulary(); }
  std::int64_t classes() const override { return whole_->classes(); }
  std::vector<std::string> labels() const override { return whole_->labels(); }
  std::int64_t held_out_records() const override { return (whole_->held_out_records() + 1 - first_) / 2; }
  std::int32_t first_token() const override { return whole_->first_token(); }
  std::map<std::string, std::int64_t> sizes() const override { return whole_->sizes(); }
  std::optional<double> best_accuracy() const override { return whole_->best_accuracy(); }
  SpecialTokens special() const override { return whole_->special(); }
  std::optional<double> optimum() const override { return whole_->optimum(); }
  std::string describe() const override { return whole_->describe(); }
  std::string decode(std::span<const std::int32_t> tokens) const override { return whole_->decode(tokens); }
  const Tokenizer* tokenizer() const override { return whole_->tokenizer(); }
  const ImageReading* images() const override { return whole_->images(); }
  std::string reference(std::int64_t index, std::int64_t row) const override {
    return whole_->reference(2 * index + first_, row);
  }
  const GaussianMixture* mixture() const override { return whole_->mixture(); }
  const Source* clean() const override { return whole_->clean(); }

 private:
  std::unique_ptr<Source> whole_;
  std::int64_t first_;
};

}  // namespace

HeldOut parse_held_out(const std::string& name) {
  if (name == "all") return HeldOut::all;
  if (name == "even") return HeldOut::even;
  if (name == "odd") return HeldOut::odd;
  const std::string known[] = {"all", "even", "odd"};
  fail("data.held_out is '{}'; expected all, even or odd{}", name, did_you_mean(name, known));
}

std::unique_ptr<Source> part_of(std::unique_ptr<Source> whole, HeldOut part) {
  if (part == HeldOut::all) return whole;
  return std::make_unique<HeldOutPart>(std::move(whole), part == HeldOut::odd ? 1 : 0);
}

}  // namespace norma
