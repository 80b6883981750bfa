#ifndef ANNULUS_C_API_CALL_H_
#define ANNULUS_C_API_CALL_H_

// The parts that every function of the C interface uses: a boundary that no exception crosses,
// structs of other versions, and handles.
//
//   annulus_status annulus_plan_destroy(annulus_plan* plan) {
//     return c_api::guarded([&] { c_api::plans().erase(c_api::number(plan)); });
//   }

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "annulus/c.h"
#include "annulus/device.h"
#include "annulus/selection.h"
#include "c_api/handle_table.h"

namespace annulus::c_api {

// Returns the code of the exception that is being handled, and keeps its text for
// annulus_last_error().
annulus_status failed() noexcept;

template <typename Body>
annulus_status guarded(const Body& body) noexcept {
  try {
    body();
    return ANNULUS_OK;
  } catch (...) {
    return failed();
  }
}

// ---- Structs. `name` and `init` are for messages: "annulus_problem", "ANNULUS_PROBLEM_INIT".

struct StructName {
  const char* name;
  const char* init;
};

// Copies the fields that the caller's version has over `known_bytes` bytes of defaults. Throws
// Error{kInvalidArgument} for null or an impossible struct_size, and Error{kUnsupported} if a newer
// caller sets fields that this version does not have.
void read_struct(const StructName& name, const void* given, void* into, std::size_t known_bytes);

// Checks a struct that is to be filled. Returns the number of its bytes that the caller's version
// has.
std::size_t check_output(const StructName& name, const void* given);

// The size of every version is a multiple of 8 bytes, so such a size cuts no field.
template <typename T>
constexpr bool kIsCStruct = std::is_trivially_copyable_v<T> && sizeof(T) % 8 == 0;

template <typename T>
T read_struct(const StructName& name, const T* given, const T& defaults) {
  static_assert(kIsCStruct<T>);
  T known = defaults;
  read_struct(name, given, &known, sizeof(T));
  return known;
}

// Copies the fields of `filled` that the caller's version has; the caller's struct_size does not
// change.
void write_struct(void* to, std::size_t bytes, const void* filled, std::size_t known_bytes);

template <typename T>
void write_struct(const StructName& name, T* to, const T& filled) {
  static_assert(kIsCStruct<T>);
  write_struct(to, check_output(name, to), &filled, sizeof(T));
}

// Convert input structs. They throw as read_struct, validate() and Pattern::parse do.
Problem problem_of(const annulus_problem* given);
// Throws Error{kInvalidArgument} if the operands have buffers of a selection.
Operands operands_of(const annulus_operands* given);
// The operands of a plan's run, and the buffers of its selection.
struct RunOperands {
  Operands operands;
  std::optional<SelectionBuffers> buffers;
};
RunOperands run_operands_of(const annulus_operands* given);
// Null stands for the defaults. Throws Error{kUnsupported} if the options have a selection.
PlanOptions plan_options_of(const annulus_plan_options* given);
struct SelectedPlanOptions {
  PlanOptions options;
  std::optional<Selection> selection;
};
SelectedPlanOptions selected_plan_options_of(const annulus_plan_options* given);
LayoutCacheLimits limits_of(const annulus_cache_limits* given);  // null: the defaults
// Throws Error{kInvalidArgument} that names the option.
SimulationOptions simulation_of(std::int32_t checked, std::uint64_t seed, std::int64_t threads);
// Returns null for null.
std::shared_ptr<const BlockLayout> layout_of(const annulus_block_layout* given);
// A null text means dense, or blocks() if a layout is given.
Pattern pattern_of(const char* text, const annulus_block_layout* layout,
                   const ParseOptions& options = {});
// `text`, which may be null, must not state what the other arguments state.
Score score_of(const char* text, bool has_scale, double scale, double softcap);
// Returns a function that reads the caller's flag by an atomic load; it returns true once the flag
// is set. With null it never does. The flag must outlive the function.
std::function<bool()> cancelled_by(const volatile std::int32_t* flag);
WorkLimit work_limit_of(std::int64_t max_work, const volatile std::int32_t* cancel);
WorkLimit work_limit_of(const annulus_work_limit* given);  // null: the defaults
// A path that the caller omits by passing a null pointer.
inline std::optional<std::string> path_of(const char* given) {
  if (given == nullptr) return std::nullopt;
  return given;
}

inline Strides strides_of(const annulus_strides& c) { return {c.batch, c.head, c.row}; }
inline StatePointers state_of(const annulus_state& c) { return {c.acc, c.m, c.l}; }

// The host's executor; empty for null.
std::function<void(std::function<void()>)> executor_of(annulus_execute_callback execute,
                                                       void* user);

// One part per line, without a line end after the last.
std::string lines(const std::vector<std::string>& parts);

// Throws Error{kInvalidArgument} "`name` is null".
void check_pointer(const char* name, const void* pointer);
// Throws Error{kInvalidArgument} if the number of entries of an array is not the number that is
// read. A count of 0 means that the caller gave none.
void check_array_count(const char* name, std::size_t count, std::int64_t read);
// Converts 0 or 1. Throws Error{kInvalidArgument} for another number.
bool truth(const char* name, std::int64_t value);

// ---- Handles

struct DeviceObject {
  explicit DeviceObject(Device opened) : device(std::move(opened)) {}
  Device device;
  std::mutex mutex;
  std::unordered_map<void*, DeviceMemory> memory;  // memory from annulus_device_allocate
  std::unordered_set<std::string> names;           // names of counters, which the caller may keep
};

struct PlanObject {
  explicit PlanObject(Plan made) : plan(std::move(made)) {}
  Plan plan;

  struct Lines {
    std::string decisions;
    std::string rejected;
  };
  // The lines of one of the plan's infos. They last as long as the object.
  const Lines& lines_of(const PlanInfo& info) const;

 private:
  mutable std::mutex mutex_;
  mutable std::map<const PlanInfo*, Lines> lines_;  // protected by mutex_
};

// The handles of this process. These tables and the recorder of spans (base/span.h) are the only
// global objects; they are needed because C callers pass numbers. They are never destroyed, so the
// order of destruction at exit does not matter.
HandleTable<DeviceObject>& devices();
HandleTable<PlanObject>& plans();
HandleTable<BoundCall>& bound_calls();

template <typename Handle>
std::uintptr_t number(const Handle* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}
// Stores an object in its table and passes the handle to the caller.
template <typename Handle, typename Object>
void give(Handle** to, HandleTable<Object>& table, std::unique_ptr<Object> object) {
  *to = reinterpret_cast<Handle*>(table.insert(std::move(object)));
}
using DevicePin = HandleTable<DeviceObject>::Pin;
using PlanPin = HandleTable<PlanObject>::Pin;
using BoundPin = HandleTable<BoundCall>::Pin;

}  // namespace annulus::c_api

#endif  // ANNULUS_C_API_CALL_H_
