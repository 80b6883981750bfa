#ifndef ANNULUS_SUPPORT_SANITIZED_H_
#define ANNULUS_SUPPORT_SANITIZED_H_

#include <chrono>

namespace annulus::test {

// Whether this is compiled for a sanitizer of addresses or threads, which needs much address space
// and ends a process that has none left.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

// A deadline of a test, which is ten times as long under a sanitizer of addresses or threads: the
// simulated GPU is slower there by as much.
constexpr std::chrono::milliseconds scaled(std::chrono::milliseconds deadline) {
  return kSanitized ? 10 * deadline : deadline;
}

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_SANITIZED_H_
