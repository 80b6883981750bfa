#include "base/json.h"

#include <cstddef>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "base/fail.h"
#include "base/math.h"

namespace annulus::base {
namespace {

// Blocks are taken from the reserve in order. After all blocks were given back, it starts from the
// beginning. The vectors in destructors exist only for a short time.
struct Reserve {
  std::mutex mutex;
  alignas(std::max_align_t) std::byte bytes[1 << 20] = {};
  std::size_t used = 0;
  int blocks = 0;  // the number of blocks that were not given back

  bool holds(const void* memory) const { return memory >= bytes && memory < bytes + sizeof(bytes); }
};
constinit Reserve reserve;

}  // namespace

void* allocate_with_reserve(std::size_t bytes) {
  if (void* const memory = ::operator new(bytes, std::nothrow)) return memory;
  const std::lock_guard lock(reserve.mutex);
  if (bytes > sizeof(reserve.bytes) - reserve.used) throw std::bad_alloc();
  void* const memory = reserve.bytes + reserve.used;
  reserve.used += round_up(bytes, alignof(std::max_align_t));
  ++reserve.blocks;
  return memory;
}

void release_with_reserve(void* memory) {
  if (!reserve.holds(memory)) return ::operator delete(memory);
  const std::lock_guard lock(reserve.mutex);
  if (--reserve.blocks == 0) reserve.used = 0;
}

Json parse_json(std::string_view text, std::string_view what, const JsonLimits& limits) {
  if (text.size() > limits.bytes) {
    fail(ErrorCode::kInvalidFile, "{}: {} bytes of JSON, at most {} are read", what, text.size(),
         limits.bytes);
  }
  std::vector<std::set<std::string>> keys;
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    using Event = Json::parse_event_t;
    if (depth > limits.depth) {
      fail(ErrorCode::kInvalidFile, "{}: JSON nests deeper than {} levels", what, limits.depth);
    }
    if (event == Event::object_start) keys.emplace_back();
    if (event == Event::object_end) keys.pop_back();
    if (event == Event::key && keys.back().size() == limits.keys) {
      fail(ErrorCode::kInvalidFile, "{}: an object has more than {} keys", what, limits.keys);
    }
    if (event == Event::key && !keys.back().insert(parsed.get<std::string>()).second) {
      fail(ErrorCode::kInvalidFile, "{}: key '{}' occurs twice", what, parsed.get<std::string>());
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalidFile, "{}: not valid JSON: {}", what, error.what());
  }
}

}  // namespace annulus::base
