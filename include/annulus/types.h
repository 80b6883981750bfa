#ifndef ANNULUS_TYPES_H_
#define ANNULUS_TYPES_H_

// Small types that every other header uses, the error type, and rules of all C++ headers.
//
// Shape letters: B batch, H query heads, Hkv key/value heads, Sq and Sk lengths, D head dim (Dqk of
// Q and K, Dv of V and O).
//
// Handles (Device, Plan, Pattern, ...) copy a pointer and share their object. They have no move
// operations, because a moved-from handle would be empty. The validate() functions throw
// Error{kInvalidArgument} or Error{kUnsupported}, whose message names the wrong value and the
// correct values.

// A compiler of an older standard stops here with one line, not with errors in templates.
#if !defined(__cplusplus)
#error "this header of annulus is C++; the C interface is annulus/c.h"
#elif __cplusplus < 202002L
#error "annulus needs C++20: compile with -std=c++20, or include annulus/c.h"
#endif

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>

#include "annulus/version.h"

namespace annulus::inline v0 {

// kFloat8E4M3 is the E4M3 format of the OCP 8-bit floating point specification, version 1.0: finite
// values up to 448, and NaN, but no infinities.
enum class Dtype : int { kFloat16 = 1, kBfloat16 = 2, kFloat32 = 3, kFloat8E4M3 = 4 };

constexpr std::size_t size_in_bytes(Dtype dtype) {
  return dtype == Dtype::kFloat8E4M3 ? 1 : dtype == Dtype::kFloat32 ? 4 : 2;
}
ANNULUS_EXPORT const char* to_string(Dtype dtype);  // "fp16", "bf16", "fp32", "e4m3"

// The base of the logarithm in LSE = log(sum of exp(score)). Each signature with an LSE names it,
// because a mismatch would be a silent error of 44 %.
enum class LseBase : int { kNatural = 1, kTwo = 2 };
ANNULUS_EXPORT const char* to_string(LseBase base);  // "natural", "two"

// Distances in elements between neighbours of a [B, S, H, D] tensor, in any memory order. The
// stride of D is 1. If a dimension is larger than 1, its stride is a multiple of 8 (of 16 with
// e4m3).
struct Strides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;

  static constexpr Strides bshd(std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return {rows * heads * dim, dim, heads * dim};
  }
  static constexpr Strides bhsd(std::int64_t rows, std::int64_t heads, std::int64_t dim) {
    return {heads * rows * dim, rows * dim, dim};
  }
  friend bool operator==(const Strides&, const Strides&) = default;
};

// Rows [start, start + length) of a sequence. A shard of a sequence is a list of segments.
struct Segment {
  std::int64_t start = 0;
  std::int64_t length = 0;
  friend bool operator==(const Segment&, const Segment&) = default;
};

// The share of (query, key) pairs that are visible, in [0, 1]. Sparsity is 1 - density; they are
// different types so that neither can be passed for the other.
struct Density {
  double value = 0;
};
struct Sparsity {
  double value = 0;
};
constexpr Sparsity sparsity(Density density) { return {1.0 - density.value}; }
constexpr Density density(Sparsity sparsity) { return {1.0 - sparsity.value}; }

// ---- Errors
//
// The library throws only Error. Its message names the failure, the values and the remedy. Expected
// outcomes (a cache miss, no configuration) are values, not errors.

// The numbers never change: they are the return codes of the C interface.
enum class ErrorCode : int {
  kInvalidArgument = 1,  // a shape, stride, pointer, option or combination that is not acceptable
  kUnsupported = 2,      // a valid request that the library does not implement
  kParse = 3,            // a text that does not parse; the message has the column
  kInvalidFile = 4,      // a file whose contents are damaged, hostile or of another format
  kFile = 5,             // a file that cannot be opened, read or written
  kLibrary = 6,          // libcuda, libnvrtc or libnccl is missing, too old, or lacks a symbol
  kOutOfMemory = 7,      // host or device memory ran out
  kDevice = 8,           // the CUDA driver refused a call
  kCompile = 9,          // NVRTC rejected a kernel, or a kernel broke a rule (spills, C75xx notes)
  kFault = 10,           // a kernel did something undefined; the context is lost
  kInternal = 11,        // a defect of this library
  kLimit = 12,           // the call needs more work than its WorkLimit allows
  kCancelled = 13,       // the caller cancelled the call
  kCommunication = 14,   // a rank or a connection failed or is late
};

// "invalid argument", "unsupported", ...
ANNULUS_EXPORT const char* to_string(ErrorCode code);

class ANNULUS_EXPORT Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const { return code_; }

 private:
  ErrorCode code_;
};

// ---- Limits of work
//
// Calls whose time depends on a pattern (parsing, layouts, statistics, planning, rings) have a
// limit of host work and a way to cancel them. Tuning has its own time limit and flag.
//
//   PlanOptions options;
//   options.work.steps = 20'000'000;                           // a tenth of the default
//   options.work.cancelled = [&flag] { return flag.load(); }; // set by another thread
//
// Calls that work on a layout, and the oracle, have no such parameter; a WorkScope limits them:
//
//   const WorkScope scope({.steps = 0, .cancelled = [&flag] { return flag.load(); }});
//   const Reference expected = reference(problem, inputs);
//
// Work is counted in steps (keys of a leaf, tiles of a list, calls in the text of a mask), not in
// time, so that the same call is refused on every machine or on none, however busy the machine is.
// A step is about five nanoseconds of one core. Cached results cost nothing.

// About a second of work on one core.
constexpr std::int64_t kDefaultWorkSteps = 200'000'000;

struct WorkLimit {
  // A call that needs more steps throws Error{kLimit}, at once if an estimate shows it; 0: no
  // limit. Steps are added up in batches of a few thousand, so smaller calls always pass.
  std::int64_t steps = kDefaultWorkSteps;
  // Called every few tens of microseconds of work, on any thread that works for the call. When it
  // returns true, the call throws Error{kCancelled}; NVRTC and the driver are not interrupted. It
  // must neither throw nor call the library.
  std::function<bool()> cancelled = {};
};

// Limits all calls that its thread makes during its lifetime: their steps count together, and the
// WorkLimits of the calls are ignored. Without a scope, functions that make, convert or count a
// layout have the default limit, and the oracle has none. An inner scope does nothing.
class ANNULUS_EXPORT WorkScope {
 public:
  // Throws Error{kInvalidArgument} for a negative number of steps, and Error{kCancelled} if
  // `cancelled` already returns true.
  explicit WorkScope(const WorkLimit& limit);
  ~WorkScope();  // must run on the thread that made the scope, inner scopes first
  WorkScope(const WorkScope&) = delete;
  WorkScope& operator=(const WorkScope&) = delete;

  // The steps so far, including an outer scope's.
  std::int64_t steps() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace annulus::inline v0

#endif  // ANNULUS_TYPES_H_
