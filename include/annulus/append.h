#ifndef ANNULUS_APPEND_H_
#define ANNULUS_APPEND_H_

// New keys and values into the pages that batches read (annulus/batch.h), and rotary position
// embedding on the way: what an engine does in each layer between the projections and attention.
//
//   AppendPlan plan = plan_append(device, problem);   // once: compiles the kernel
//   plan.run(stream, operands);                       // once a layer, before BatchPlan::run
//
// A step has some rows, each with H heads of Q, and Hkv heads of new K and V. Where a row's K and V
// go is said by its slot, or follows from the metadata of the step. As with batches, the host knows
// structure and bounds alone, so that a graph captured once serves every step within them.
//
// Letters: R requests, H query heads, Hkv key/value heads, Dqk, Dv head dims, P rows of a page.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/batch.h"

namespace annulus::inline v0 {

// How a row knows its place in K and V.
enum class AppendPlace : int {
  kSlots = 1,     // by AppendOperands::slots: slot s is row s mod P of page s / P
  kRequests = 2,  // by AppendOperands::step: row i of a request with n rows is key k_length - n + i
};

// Which elements of a head are rotated together, of the first `dims` ones.
enum class RotaryOrder : int {
  kNone = 0,         // Q is not touched, and K is copied
  kInterleaved = 1,  // 2 i and 2 i + 1, as GPT-J has them
  kHalves = 2,       // i and i + dims / 2, as GPT-NeoX and Llama have them in Hugging Face's order
};

// Rotary position embedding (Su et al., RoFormer: Enhanced Transformer with Rotary Position
// Embedding, 2021): pair i of a row at position p is turned by the angle p * frequency i, in fp32,
// and rounded to the dtype once.
struct Rotary {
  RotaryOrder order = RotaryOrder::kNone;
  // Elements that are rotated, from the first on; the others are copied. A multiple of 8, with
  // kHalves of 16; at most Dqk and 1024. 0: Dqk.
  std::int64_t dims = 0;
  // At least 1. Frequency i is base^(-2 i / dims) radians for each position, unless `frequencies`
  // has it.
  double base = 10000;
  // [dims / 2], in radians for each position, from -4 to 4, as scaled embeddings have them (Llama
  // 3, YaRN). Empty: from `base`.
  std::vector<double> frequencies;
  // The cosines and sines come from AppendOperands::cosines and sines, which have this dtype:
  // kFloat32, kFloat16 or kBfloat16. Without a value angles are computed, from frequencies in 64
  // bits: they are right to 2^-28 radians at every position. A product of position and frequency in
  // fp32, as most models compute it, is up to 0.06 radians from that at position 10^6; where such
  // angles must be met, give their tables.
  std::optional<Dtype> tables;
};

struct AppendProblem {
  std::int64_t heads = 0;     // H, of the Q that is rotated; 0: no Q
  std::int64_t kv_heads = 1;  // Hkv >= 1
  std::int64_t dim_qk = 0;    // multiples of 8 from 8 to 1024
  std::int64_t dim_v = 0;
  // Q, the new K and V and the pages all have this one: kFloat16 or kBfloat16.
  Dtype dtype = Dtype::kBfloat16;
  AppendPlace place = AppendPlace::kSlots;
  std::int64_t page_rows = 0;  // P; 0: no pages
  // With AppendPlace::kRequests: which of a request's keys this rank holds, as
  // BatchProblem::interleave. K and V of a new key go to the rank that has it, at their place among
  // its keys; on other ranks they are left out, while Q is rotated on all. Slots say themselves
  // what is left out.
  KeyInterleave interleave;
  Rotary rotary;
  // The most that a step may have: `rows`, up to 2^27, and with AppendPlace::kRequests `requests`
  // and `keys_of_one`. The others do not matter.
  BatchBounds most;
};

// What a run reads and writes, in device memory, owned by the caller, who leaves it there until the
// work that was put on the stream has ended. Base addresses of Q, K and V are multiples of 16
// bytes, others of the size of a number. What is written overlaps nothing else of the call, but
// rotated_q may be q (the same address and strides).
struct AppendOperands {
  // [rows, H, Dqk], with a rotation and heads above 0; else null. Elements of rotated_q that are
  // not rotated are copied.
  const void* q = nullptr;
  void* rotated_q = nullptr;
  const void* new_k = nullptr;  // [rows, Hkv, Dqk]
  const void* new_v = nullptr;  // [rows, Hkv, Dv]
  RowStrides q_strides;         // these and all others are multiples of 8
  RowStrides rotated_q_strides;
  RowStrides new_k_strides;
  RowStrides new_v_strides;

  // As BatchOperands has them. Without pages slot s is row s.
  void* k = nullptr;
  void* v = nullptr;
  BatchStrides k_strides;
  BatchStrides v_strides;
  // Pages (without pages: rows) that K and V have, so that a number outside is found. 0: 2^31 - 1,
  // whatever the numbers. Slabs of requests have room for keys_of_one keys each, whatever this
  // says.
  std::int64_t k_pages = 0;
  std::int64_t v_pages = 0;

  // With AppendPlace::kSlots one of them: [rows]. The K and V of a row with slot -1 are left out;
  // its Q is rotated. No two rows have the same slot: if they do, each 16 bytes there are those of
  // either row.
  const std::int64_t* slots = nullptr;
  const std::int32_t* slots_32 = nullptr;
  // [1], with kSlots: how many rows of BatchBounds::rows there are. Null: all.
  const std::int32_t* rows = nullptr;
  // With AppendPlace::kRequests: what BatchPlan::prepare gets, whose k_length counts the new keys.
  // Rows of no request are neither read nor written.
  BatchMetadata step;

  // With a rotation one of them, [rows]: the position of each row, within plus and minus 2^30. With
  // kRequests both may be null: then a row's position is k_position plus the number of its key.
  const std::int64_t* positions = nullptr;
  const std::int32_t* positions_32 = nullptr;
  // With Rotary::tables: [table_rows, dims / 2]. Where both are halves of the rows of one table,
  // `sines` is cosines + dims / 2.
  const void* cosines = nullptr;
  const void* sines = nullptr;
  std::int64_t table_stride = 0;  // elements from one position to the next
  std::int64_t table_rows = 0;    // positions that the tables have, from 0 on

  // A word in device memory that is told what is wrong, by this run and those before it, from
  // AppendPlan::clear_status on. Null: nobody is told.
  std::uint32_t* status = nullptr;
};

// Rules of a step that only the device can see.
enum class AppendRule : int {
  kNone = 0,
  kRows = 1,      // there are more rows than planned, or a negative number
  kRequests = 2,  // more requests than planned, or a negative number; or q_begin is negative,
                  // descends or ends beyond BatchBounds::rows at that request
  kSlot = 3,      // a slot below -1 or beyond the pages
  kKey = 4,       // a row in front of its request's key 0, or a k_length that is negative or beyond
                  // BatchBounds::keys_of_one
  kEntry = 5,     // a key beyond the entries of its request's pages, or beyond the rows of K or V,
                  // or a negative begin
  kPage = 6,      // a page number that is no page
  kPosition = 7,  // a position beyond 2^30, or one that the tables do not have
};
ANNULUS_EXPORT const char* to_string(AppendRule rule);  // a few words: "a slot that is none"

// A row that breaks kPosition is left out, as are those whose request has a wrong k_length or
// q_begin. Of a row that breaks another rule K and V are left out: neither is written where one has
// no place. All other rows are right.
struct AppendStatus {
  AppendRule rule = AppendRule::kNone;  // the first that the row breaks
  std::int64_t row = 0;                 // the first that breaks one; with kRequests the request
};

// Everything that was decided, for people and for logs.
struct AppendInfo {
  std::string specialised_source;  // what the compiler was given
  int threads = 0;                 // of a CTA; there is one for each of BatchBounds::rows
  int registers = 0;               // of a thread; on a simulated device an estimate
  int local_bytes = 0;             // of a thread: spills
  std::int64_t device_bytes = 0;   // memory that the plan holds
  double compile_ms = 0;           // time to get the kernel, whatever its source
};

// A way of appending made ready for a device. Immutable: any number of threads may use it at a
// time. Copies share. Keeps what it needs of the device alive; a captured graph does not, so a plan
// must outlive the graphs that were captured of it.
class ANNULUS_EXPORT AppendPlan {
 public:
  struct Impl;
  explicit AppendPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a plan that was moved from would be none. A copy is a pointer.
  AppendPlan(const AppendPlan&) = default;
  AppendPlan& operator=(const AppendPlan&) = default;

  const AppendProblem& problem() const;  // with what was left to defaults
  const AppendInfo& info() const;

  // Puts one launch on `stream`, whose size depends on the bounds alone. Allocates nothing, takes
  // no lock, does not wait and may be captured. Throws Error{kInvalidArgument} for operands that
  // the problem does not go with, and Error{kDevice}; nothing was launched then.
  void run(void* stream, const AppendOperands& operands) const;

  // Puts on `stream` that the word at `status` says that nothing is wrong. Likewise.
  void clear_status(void* stream, std::uint32_t* status) const;

  // What runs with this word have found up to now. Waits for the device's default stream, as
  // Device::copy_to_host; work on other streams must have ended.
  AppendStatus status(const std::uint32_t* status) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Throws Error{kInvalidArgument} or Error{kUnsupported}, which names the wrong value and what would
// be right.
ANNULUS_EXPORT void validate(const AppendProblem& problem);

// Decides, compiles and uploads. Throws what validate() throws, Error{kOutOfMemory},
// Error{kCompile}, and Error{kDevice}.
ANNULUS_EXPORT AppendPlan plan_append(const Device& device, const AppendProblem& problem);

}  // namespace annulus::inline v0

#endif  // ANNULUS_APPEND_H_
