#ifndef ANNULUS_SIMULATOR_CHECK_ACCESS_KIND_H_
#define ANNULUS_SIMULATOR_CHECK_ACCESS_KIND_H_

// The kinds of access to global memory, and which kinds conflict. "Strong" is a term of the memory
// model of PTX. Strong accesses are atomics, and loads and stores that are volatile, relaxed,
// acquire or release, if their scope is the device or larger. Strong accesses never conflict with
// each other.

#include <cstdint>

namespace annulus::simulator {

enum class AccessKind : std::uint8_t { kRead, kStrongRead, kWrite, kStrongWrite };
constexpr int kAccessKinds = 4;

constexpr bool writes(AccessKind kind) { return kind >= AccessKind::kWrite; }
constexpr bool strong(AccessKind kind) {
  return kind == AccessKind::kStrongRead || kind == AccessKind::kStrongWrite;
}
constexpr bool conflict(AccessKind a, AccessKind b) {
  return (writes(a) || writes(b)) && !(strong(a) && strong(b));
}

// The verb for messages, as in "block (1,0,0) reads".
constexpr const char* verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::kRead:
      return "reads";
    case AccessKind::kStrongRead:
      return "reads atomically";
    case AccessKind::kWrite:
      return "writes";
    case AccessKind::kStrongWrite:
      return "updates atomically";
  }
  return "touches";
}

}  // namespace annulus::simulator

#endif  // ANNULUS_SIMULATOR_CHECK_ACCESS_KIND_H_
