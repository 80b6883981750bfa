#ifndef ANNULUS_SUPPORT_SANITIZED_H_
#define ANNULUS_SUPPORT_SANITIZED_H_

#include <chrono>

namespace annulus::test {

// Whether this is compiled with a sanitizer of addresses or threads. Such a sanitizer needs much
// address space, and ends a process that runs out of it.
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

// A deadline of a test. It is ten times as long under a sanitizer of addresses or threads, because
// the simulated GPU is ten times slower there.
constexpr std::chrono::milliseconds scaled(std::chrono::milliseconds deadline) {
  return kSanitized ? 10 * deadline : deadline;
}

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_SANITIZED_H_
