#ifndef ANNULUS_C_API_OBJECTS_H_
#define ANNULUS_C_API_OBJECTS_H_

// Objects behind handles that several files of the C interface make or use: texts, layouts, arrays,
// ranks of a rendezvous, and communicators.

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include "annulus/c_layout.h"
#include "annulus/c_ring.h"
#include "annulus/communicator.h"
#include "annulus/layout.h"
#include "c_api/call.h"

namespace annulus::c_api {

struct TextObject {
  std::string text;
};
HandleTable<TextObject>& texts();
using TextPin = HandleTable<TextObject>::Pin;

// Makes a handle of a text that a function returns.
inline void give_text(annulus_text** to, std::string text) {
  give(to, texts(), std::make_unique<TextObject>(TextObject{std::move(text)}));
}

// A layout with its own arrays, with the pages of a file, or shared with a cache.
struct LayoutObject {
  std::variant<BlockLayout, MappedLayout, std::shared_ptr<const GridLayout>> held;
  LayoutView view() const;
};
HandleTable<LayoutObject>& layouts();
using LayoutPin = HandleTable<LayoutObject>::Pin;

// Throws Error{kInvalidArgument} if the pointer for the handle is null.
template <typename Layout>
void give_layout(annulus_layout** to, Layout&& layout) {
  check_pointer("layout (where the handle goes)", to);
  give(to, layouts(), std::make_unique<LayoutObject>(LayoutObject{std::forward<Layout>(layout)}));
}

// Throws as write_struct.
void write_counters(annulus_cache_counters* to, const LayoutCacheCounters& counters);

LayoutSizes sizes_of(const annulus_layout_sizes* given);

// The arrays of a layout in a format. Their names are literals.
struct ArraysObject {
  struct Array {
    const char* name;
    annulus_array_type type;
    std::size_t count;
    std::vector<std::byte> bytes;
  };
  std::vector<Array> arrays;
};
HandleTable<ArraysObject>& array_sets();
using ArraysPin = HandleTable<ArraysObject>::Pin;

// Texts that callers may keep as long as the handle lives.
class KeptTexts {
 public:
  const char* keep(const std::string& text) {
    const std::lock_guard lock(mutex_);
    return texts_.insert(text).first->c_str();
  }

 private:
  std::mutex mutex_;
  std::unordered_set<std::string> texts_;
};

struct RendezvousObject {
  explicit RendezvousObject(Rendezvous met) : rendezvous(std::move(met)) {}
  Rendezvous rendezvous;
  std::atomic<bool> posting{false};
  KeptTexts reasons;  // the reasons why ranks are gone
};
HandleTable<RendezvousObject>& rendezvouses();
using RendezvousPin = HandleTable<RendezvousObject>::Pin;

struct CommunicatorObject {
  explicit CommunicatorObject(Communicator opened) : communicator(std::move(opened)) {}
  Communicator communicator;
  // Memory in which an exchange converts its messages. One exchange at a time uses it.
  std::vector<SentBytes> sends;
  std::vector<ReceivedBytes> receives;
  std::atomic<bool> busy{false};
  KeptTexts reasons;  // the reasons why ranks are gone
  std::mutex mutex;   // protects the texts and events that callers may keep
  struct Failure {
    std::string reason;
    std::vector<int> blamed;
  };
  std::optional<Failure> failure;
  std::map<std::int64_t, CommunicatorEvent> events;  // the key is the number of the event
  std::map<void*, ExchangeMemory> memory;            // memory that callers have not released
};
HandleTable<CommunicatorObject>& communicators();
using CommunicatorPin = HandleTable<CommunicatorObject>::Pin;

// Writes the state of the rank in `states`, which may lack that rank. Throws
// Error{kInvalidArgument} if it does.
void write_rank_state(annulus_rank_state* to, const std::vector<RankState>& states, int rank,
                      KeptTexts* reasons);

// Throws Error{kInvalidArgument}, which names the field, for a negative number or more than a year.
std::chrono::milliseconds milliseconds_of(const char* name, std::int64_t given);

}  // namespace annulus::c_api

#endif  // ANNULUS_C_API_OBJECTS_H_
