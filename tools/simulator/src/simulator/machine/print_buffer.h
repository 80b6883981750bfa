#ifndef ANNULUS_SIMULATOR_MACHINE_PRINT_BUFFER_H_
#define ANNULUS_SIMULATOR_MACHINE_PRINT_BUFFER_H_

// The texts that the CTAs of a launch print. CTAs run on several host threads, and their texts are
// stored apart, so that the whole text is the same every time.

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace annulus::simulator {

class PrintBuffer {
 public:
  // The limit of all texts. CUDA keeps a megabyte by default and drops older text; here later text
  // is dropped.
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 26;

  void add(std::uint64_t cta, std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (bytes_ + text.size() > kMaxBytes) return;
    bytes_ += text.size();
    texts_[cta] += text;
  }
  // All texts, in the order of the CTAs.
  std::string all() const {
    std::string whole;
    for (const auto& [cta, text] : texts_) whole += text;
    return whole;
  }

 private:
  std::mutex mutex_;
  std::size_t bytes_ = 0;
  std::map<std::uint64_t, std::string> texts_;
};

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_MACHINE_PRINT_BUFFER_H_
