#ifndef ANNULUS_BATCH_H_
#define ANNULUS_BATCH_H_

// Batches of requests, as an inference engine computes them: each request has its own number of
// queries and keys, K and V are in pages that the engine assigns, and lengths and page tables are
// in device memory, where pending work may still write them when the next step is queued.
//
//   AppendPlan append = plan_append(device, append_problem);  // once: compiles the kernel
//   BatchPlan plan = plan_batch(device, problem);             // once: compiles every kernel
//   DeviceMemory workspace = device.allocate(plan.workspace_bytes());
//   plan.prepare(stream, metadata, workspace.data());         // once a step of the model
//   for (each layer) {
//     append.run(stream, append_operands);                    // new keys and values, and rotation
//     plan.run(stream, operands, workspace.data());           // attention
//   }
//
// The host passes structure and bounds. Whatever lengths the device memory holds, the plans launch
// the same kernels with the same sizes, so a graph captured once serves every step within the
// bounds.
//
// Rules of both kinds of plans. A plan is immutable, any number of threads may use it at a time,
// and copies share it. It keeps what it needs of the device alive, but a captured graph does not
// keep the plan alive. prepare(), run() and clear_status() put launches on `stream` and return:
// they allocate nothing, take no lock and do not wait, and they may be captured in a graph. If they
// throw, nothing was launched. Device memory is the caller's and must stay until the stream's work
// has ended.
//
// Letters: R requests, H query heads, Hkv key/value heads, Dqk, Dv head dims, P rows of a page.
// Rows of Q and O of all requests are in one tensor each, request after request; a row of Q is a
// query. The paging scheme is from vLLM (Kwon et al., Efficient Memory Management for Large
// Language Model Serving with PagedAttention, 2023).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/device.h"

namespace annulus::inline v0 {

// ---- Batches

// The bounds of a step. They determine workspace and sizes of launches; smaller steps take less
// time.
struct BatchBounds {
  std::int64_t requests = 0;     // 1 to 65535
  std::int64_t rows = 0;         // rows of Q of all requests together; at least 1
  std::int64_t rows_of_one = 0;  // rows of Q of one request; 0: `rows`
  std::int64_t keys_of_one = 0;  // keys of one request; at least 1
  // Keys of all requests together; 0 or more than requests x keys_of_one: that product. For a pool
  // of pages pass the number of keys in the pool, counting a shared prefix once per request,
  // because the workspace grows with it.
  std::int64_t keys = 0;
};

// The keys of a request that one of several ranks holds: key i of the whole request is on rank i /
// block mod ranks, after the earlier keys of that rank. So key j on a rank is key ((j / block)
// ranks + rank) block + j mod block of the request. Keys never move when a request grows, and the
// numbers of keys on two ranks differ by at most one block.
struct KeyInterleave {
  std::int64_t block = 1;  // at least 1; block x ranks is at most 2^24
  std::int64_t ranks = 1;  // 1 to 1024; 1: one rank holds all keys
  std::int64_t rank = 0;   // 0 to ranks - 1
};
// The number of the first `keys` keys of a request that are on the rank. Throws
// Error{kInvalidArgument} if there is no such rank, or `keys` is negative or above kMaxPosition.
ANNULUS_EXPORT std::int64_t held_keys(const KeyInterleave& interleave, std::int64_t keys);

// Attention of a batch of requests. A request with n queries and m keys is the problem with Sq = n,
// Sk = m and q0 = k_position + m - n: its queries are at the end of its keys.
struct BatchProblem {
  std::int64_t heads = 1;     // H >= 1
  std::int64_t kv_heads = 1;  // Hkv >= 1, divides H: query head h reads key head h / (H / Hkv)
  std::int64_t dim_qk = 0;    // see supported_dims()
  std::int64_t dim_v = 0;
  Dtype dtype = Dtype::kBfloat16;  // dtype of Q, K, V and O: kFloat16 or kBfloat16

  // Which keys a query sees. The keys of each query must be one run or a few runs, as for dense,
  // causal, window, sink, prefix, global, queries and keys, and for their combinations by & and |.
  // Heads may differ (heads(...)); heads of a group that share tiles read the union of their keys.
  Pattern pattern;
  Score score;  // all terms are supported; b of score_mod is the request's number

  BatchBounds most;
  // P, the rows of a page of K and of V; 0: no pages. Multiples of 16 are fast.
  std::int64_t page_rows = 0;
  // C, the keys of a block; a multiple of 16 up to 2^29, independent of page_rows; 0: no lists of
  // blocks. With lists, as in sparse decoding, a query sees exactly the visible keys of the pattern
  // that are in the blocks listed for its request and its head of K and V (BatchMetadata::blocks).
  std::int64_t block_keys = 0;
  std::int64_t max_blocks = 0;  // entries of a list; 1 to 2^18 with block_keys, else 0
  // With several ranks, K and V have only the keys of this rank, packed without gaps in pages or in
  // rows from k_begin on, and O, LSE or the state are over these keys; annulus/join.h joins the
  // ranks. All other numbers (lengths, bounds, positions, row_end and tree_bits) count the keys of
  // all ranks, so that all ranks plan and prepare with the same numbers. Not with lists of blocks.
  // A sink logit here would count once per rank: pass it to the join.
  KeyInterleave interleave;
  // Whether rows of Q have limits in addition to the pattern (BatchMetadata::row_end and
  // tree_bits), as for verifying drafts in speculative decoding.
  bool row_limits = false;

  bool want_lse = false;                 // write LSE; not with carry_out
  LseBase lse_base = LseBase::kNatural;  // base of the LSE that is written
  bool carry_in = false;                 // start from a state of other keys
  bool carry_out = false;                // write the state instead of O and LSE
};

struct BatchOptions {
  // How many multiprocessors the plan's kernels may occupy; 0: all. It changes no bit of a result.
  int max_multiprocessors = 0;
  // Requests whose queries see more keys than this number are computed in parts of this number of
  // keys, in parallel, and then joined. A request's result depends on the number and never on other
  // requests. A multiple of 128 from 128 to 2^20; 0: planning chooses it from the bounds and the
  // device (BatchInfo::part_keys).
  std::int64_t part_keys = 0;
  // The most workspace bytes; 0: no limit. A plan that needs more takes longer parts. If that does
  // not suffice, plan_batch throws Error{kOutOfMemory}.
  std::int64_t max_workspace_bytes = 0;
  // For debugging: run() waits for the stream, reads the status of prepare(), and throws
  // Error{kInvalidArgument} if a request breaks a rule. Such a run cannot be captured.
  bool check_status = false;
  // Configurations of the kernels as in BatchInfo::config, separated by ", ", at most one for each
  // class of requests (few queries, many queries). A class without one has its default
  // configuration. Another configuration may give other bits. A kernel that is withheld
  // (PlanOptions::config) runs only if it is named here.
  std::string config = {};
};

// The page numbers of requests, int32 in device memory. Page j of request r is ids[r * width + j],
// or ids[begin[r] + j] if `begin` (int32 [R + 1], ascending) is not null. Only entries of pages
// with a key that the pattern shows to some query of the request are read, whatever row_end and
// tree_bits contain. Other entries, such as those after the last key or before a window, may hold
// anything. One exception: if the queries of a tile see more than three runs of keys together, the
// entries between the third run and the last are read too.
struct PageTable {
  const std::int32_t* ids = nullptr;
  const std::int32_t* begin = nullptr;
  std::int64_t width = 0;  // entries of a row; ignored if `begin` is not null
};

// The description of a step: int32 arrays in device memory, 4-byte aligned. prepare() reads them in
// stream order; run() reads page tables, k_begin, v_begin, row_end and tree_bits again.
struct BatchMetadata {
  // [R + 1], ascending: the rows of Q of request r are q_begin[r] to q_begin[r + 1] - 1. Rows of no
  // request are neither read nor written.
  const std::int32_t* q_begin = nullptr;
  // [R]: the number of keys of each request, on all ranks together.
  const std::int32_t* k_length = nullptr;
  // [1]: the number of requests of this step; null: BatchBounds::requests.
  const std::int32_t* requests = nullptr;
  const std::int32_t* k_position = nullptr;  // [R]: the position of a request's key 0; null: 0
  // With pages. If v_pages.ids is null, V uses K's table.
  PageTable k_pages;
  PageTable v_pages;
  // Without pages, [R]: the row of K (of V) with a request's first key on this rank. If v_begin is
  // null, V uses k_begin. If both are null, the keys of request r begin r * BatchStrides::page
  // elements after the first element of the tensor, with room for its share of
  // BatchBounds::keys_of_one.
  const std::int32_t* k_begin = nullptr;
  const std::int32_t* v_begin = nullptr;

  // With BatchProblem::block_keys, [R, Hkv, max_blocks]: the numbers of the blocks that each head
  // of K and V of a request may see, in any order, padded with -1. Block i has the keys i C to (i +
  // 1) C - 1 of the request. A repeated block counts once, a block without a key of the request is
  // skipped, and the status reports both.
  const std::int32_t* blocks = nullptr;

  // With BatchProblem::row_limits, at least one of the following two. [rows]: a row of Q sees only
  // the first row_end[row] keys of its request.
  const std::int32_t* row_end = nullptr;
  // [rows], 8-byte aligned: of the newest 64 keys of its request, a row of Q sees only those with a
  // set bit; bit i is key k_length - 1 - i. Older keys are not affected. In a tree of drafts (Cai
  // et al., Medusa, 2024) a row has the bits of its ancestors and its own.
  const std::uint64_t* tree_bits = nullptr;

  // The number of entries of `ids` in a page table with `begin`. The status reports a `begin`
  // beyond it, and nothing outside is read. 0: not checked.
  std::int64_t k_entries = 0;
  std::int64_t v_entries = 0;
};

// Distances in elements. Key j of a request (counting the keys on this rank), head h, is
//
//   page(j / P) * page + (j mod P) * row + h * head
//
// elements after the first element of the tensor. So strides describe every order of rows and heads
// in a page, K and V in one tensor, and one layer of a tensor of all layers. Strides are multiples
// of 8, and `row` is below 2^30. If some request may have more than 64 rows of (query, head of a
// group), sm_90a has stricter rules: strides of Q, K and V whose dimension has several entries, and
// Q's stride between groups of heads, are above 0 and below 2^39; `page` and `head` of K and V may
// be 0.
struct BatchStrides {
  std::int64_t page = 0;  // between pages; without pages and k_begin, between requests
  std::int64_t row = 0;
  std::int64_t head = 0;
};
struct RowStrides {
  std::int64_t row = 0;
  std::int64_t head = 0;
};

// The tensors of one layer, in device memory. Base addresses are multiples of 16 bytes, of 4 for
// LSE, m and l. Memory that is written overlaps no other memory of the call, except that O may be Q
// (the same address and strides), and state_out may be state_in. For a query without visible keys,
// O = 0 and LSE = -inf or the score's sink logit; in a state, l = 0 and m = -inf.
struct BatchOperands {
  const void* q = nullptr;  // [rows, H, Dqk]
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;     // [rows, H, Dv]; null with carry_out
  float* lse = nullptr;  // [rows, H] in any order; null without want_lse
  RowStrides q_strides;  // multiples of 8
  BatchStrides k_strides;
  BatchStrides v_strides;
  // Rows and heads of O and LSE must not overlap. If the bounds allow several rows, the check
  // assumes two rows; only equal strides of LSE are checked for one row, because [H, rows] has them
  // in a step with one row.
  RowStrides o_strides;
  RowStrides lse_strides;
  // The number of pages of K and V. The keys of a page number outside are not seen. Without pages,
  // but with k_begin: the number of rows of K and V. If the keys of a request exceed it, none of
  // them is seen (BatchRule::kPages). The status reports both. With these numbers nothing outside
  // is read or written. 0: 2^31 - 1, so that almost nothing is checked.
  std::int64_t k_pages = 0;
  std::int64_t v_pages = 0;
  // Contiguous: acc [rows, H, Dv], m and l [rows, H] (annulus/problem.h).
  StatePointers state_in;   // the state to start from; with carry_in
  StatePointers state_out;  // the state to write; with carry_out
};

// Rules of a step that only the device can check.
enum class BatchRule : int {
  kNone = 0,
  kRequests = 1,  // the number of requests is negative or exceeds BatchBounds::requests
  kRows = 2,      // q_begin descends, is negative, ends beyond BatchBounds::rows, or has rows of an
                  // earlier request
  kRowsOfOne = 3,  // more rows than BatchBounds::rows_of_one
  kKeys = 4,       // a length that is negative or beyond BatchBounds::keys_of_one
  kPages = 5,      // keys beyond the entries of the request's pages, entries beyond k_entries or
                   // v_entries, or a negative begin; without pages, found by run(): keys beyond the
                   // rows of K or V
  kAllKeys = 6,    // the sum of keys up to this request exceeds BatchBounds::keys
  kPosition = 7,   // positions beyond 2^30
  kPage = 8,       // found by run(): a page number beyond BatchOperands::k_pages or v_pages
  kBlocks = 9,     // a block that has no key of the request or is repeated
  kRowEnd = 10,    // a row_end below 0 or beyond the request's keys
};
ANNULUS_EXPORT const char* to_string(BatchRule rule);  // a few words

// The first rule that was broken. If there are too many requests, the first BatchBounds::requests
// are computed. A request that breaks kRows or kRowsOfOne is computed without queries. A request
// that breaks another rule is computed without keys, but with these exceptions: kPage hides only
// the keys of the page; kBlocks ignores only the entry of the list; kRowEnd hides all keys of the
// row (below 0) or ignores the limit (beyond the keys). All other requests have correct results.
struct BatchStatus {
  BatchRule rule = BatchRule::kNone;  // the first rule that the request breaks
  std::int64_t request = 0;           // the first request that breaks a rule
};

// The decisions of planning, for people and for logs. The numbers of a kernel describe the kernel
// for requests with few queries.
struct BatchInfo {
  // The kernel for requests with few queries, then the kernel for others: "decode m16 n64 w4 s2 q
  // x2, chunk_wgmma m128 n128 w8 s3".
  std::string config;
  // The sources of tuned configurations (PlanInfo::tuned) in the order of `config`; empty: none.
  std::string tuned;
  std::vector<std::string> decisions;  // one line each
  std::string specialised_source;      // the compiled source
  std::int64_t part_keys = 0;          // BatchOptions::part_keys, or the number that was chosen
  std::int64_t ctas = 0;               // CTAs of run()'s persistent kernel
  int launches = 0;                    // launches of run()
  int threads = 0;                     // threads of a CTA
  std::int64_t shared_bytes = 0;       // shared memory of a CTA
  int registers = 0;                   // registers of a thread; an estimate on a simulated device
  int local_bytes = 0;                 // local memory of a thread: spills
  // Bytes of K and V that a multiprocessor has in flight by design while a step is computed.
  std::int64_t bytes_under_way = 0;
  std::int64_t device_bytes = 0;  // memory that the plan holds
  double plan_ms = 0;             // time to decide
  double compile_ms = 0;          // time to find or compile the kernels
};

// A batch made ready for a device.
class ANNULUS_EXPORT BatchPlan {
 public:
  struct Impl;
  explicit BatchPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  BatchPlan(const BatchPlan&) = default;
  BatchPlan& operator=(const BatchPlan&) = default;

  const BatchProblem& problem() const;
  const BatchInfo& info() const;

  // Bytes of device memory that prepare() and the runs after it share, 16-byte aligned, enough for
  // every step within the bounds. The memory may hold anything before prepare(). Steps that may
  // execute at the same time need separate workspaces.
  std::size_t workspace_bytes() const;

  // Makes the lists of work for a step, by one launch, or two with lists of blocks. All runs with
  // this workspace use them until the next prepare(), so layers of equal shape share one. Throws
  // Error{kInvalidArgument} for missing or misaligned pointers, and Error{kDevice}.
  void prepare(void* stream, const BatchMetadata& metadata, void* workspace) const;

  // Computes the attention of one layer for the step of the last prepare() on the workspace. Throws
  // Error{kInvalidArgument} for operands that do not fit the problem, Error{kUnsupported} for
  // strides that no kernel takes, and Error{kDevice}.
  void run(void* stream, const BatchOperands& operands, void* workspace) const;

  // The errors that prepare() and the runs on this workspace have found so far. Waits for the
  // device's default stream, like Device::copy_to_host; work on other streams must have ended.
  BatchStatus status(const void* workspace) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

ANNULUS_EXPORT void validate(const BatchProblem& problem);

// Chooses kernels, compiles them and uploads what they need. Throws the errors of validate();
// Error{kInvalidArgument} for options out of range and an ill-formed configuration;
// Error{kUnsupported} if the keys of a query are not a few runs, the device has no kernel, or a
// named configuration is not possible; Error{kOutOfMemory}, Error{kCompile} and Error{kDevice}; and
// Error{kLimit} and Error{kCancelled}, with the default limit of work or the one of a WorkScope
// around the call.
ANNULUS_EXPORT BatchPlan plan_batch(const Device& device, const BatchProblem& problem,
                                    const BatchOptions& options = {});

// ---- Appending keys and values, and rotary position embedding
//
// AppendPlan::run does an engine's work in each layer between the projections and attention: it
// writes new keys and values to the pages that batches read, and rotates K and Q. A step has rows,
// each with H heads of Q and Hkv heads of new K and V.

// How the place of a row in K and V is determined.
enum class AppendPlace : int {
  kSlots = 1,     // AppendOperands::slots: slot s is row s mod P of page s / P
  kRequests = 2,  // AppendOperands::step: row i of a request with n rows is key k_length - n + i
};

// Which two of the first `dims` elements of a head form pair i, which is rotated together.
enum class RotaryOrder : int {
  kNone = 0,         // no rotation: Q is not used, and K is copied
  kInterleaved = 1,  // elements 2 i and 2 i + 1, as in GPT-J
  kHalves = 2,  // elements i and i + dims / 2, as in GPT-NeoX, and Llama in Hugging Face's order
};

// Rotary position embedding (Su et al., RoFormer: Enhanced Transformer with Rotary Position
// Embedding, 2021): pair i of a row at position p is rotated by the angle p * frequency i, in fp32,
// and rounded to the dtype once.
struct Rotary {
  RotaryOrder order = RotaryOrder::kNone;
  // The number of first elements of a head that are rotated; the others are copied. A multiple of
  // 8, with kHalves of 16; at most Dqk and 1024. 0: Dqk.
  std::int64_t dims = 0;
  // At least 1. Frequency i is base^(-2 i / dims) radians per position without `frequencies`.
  double base = 10000;
  // [dims / 2], in radians per position, from -4 to 4, for scaled embeddings (Llama 3, YaRN).
  // Empty: computed from `base`.
  std::vector<double> frequencies;
  // The dtype of AppendOperands::cosines and sines: kFloat32, kFloat16 or kBfloat16. Not set:
  // angles are computed from 64-bit frequencies with errors up to 2^-28 radians at every position.
  // Most models compute the product of position and frequency in fp32, which differs by up to 0.06
  // radians at position 10^6; to reproduce their angles, pass tables.
  std::optional<Dtype> tables;
};

struct AppendProblem {
  std::int64_t heads = 0;     // H, heads of Q that are rotated; 0: no Q
  std::int64_t kv_heads = 1;  // Hkv >= 1
  std::int64_t dim_qk = 0;    // multiples of 8 from 8 to 1024
  std::int64_t dim_v = 0;
  // The dtype of Q, new K and V, and the pages: kFloat16 or kBfloat16.
  Dtype dtype = Dtype::kBfloat16;
  AppendPlace place = AppendPlace::kSlots;
  std::int64_t page_rows = 0;  // P; 0: no pages
  // With kRequests: the keys that this rank holds, as in BatchProblem::interleave. Only this rank's
  // new keys and values are written, but Q is rotated on all ranks. With kSlots, slot -1 skips a
  // key.
  KeyInterleave interleave;
  Rotary rotary;
  // The largest step; only `rows`, up to 2^27, and with kRequests `requests` and `keys_of_one` are
  // used.
  BatchBounds most;
};

// The tensors of one run, in device memory. Base addresses of Q, K and V are multiples of 16 bytes;
// other addresses are aligned to their type. Memory that is written overlaps no other memory of the
// call, except that rotated_q may be q (the same address and strides).
struct AppendOperands {
  // [rows, H, Dqk], with a rotation and heads above 0; else null. Elements of q that are not
  // rotated are copied to rotated_q.
  const void* q = nullptr;
  void* rotated_q = nullptr;
  const void* new_k = nullptr;  // [rows, Hkv, Dqk]
  const void* new_v = nullptr;  // [rows, Hkv, Dv]
  RowStrides q_strides;         // all strides are multiples of 8
  RowStrides rotated_q_strides;
  RowStrides new_k_strides;
  RowStrides new_v_strides;

  // K and V are as in BatchOperands. Without pages, slot s is row s.
  void* k = nullptr;
  void* v = nullptr;
  BatchStrides k_strides;
  BatchStrides v_strides;
  // The number of pages (without pages: rows) of K and V, to detect numbers outside. 0: 2^31 - 1,
  // so that almost nothing is checked. Ignored without pages and begins: each request has room for
  // keys_of_one.
  std::int64_t k_pages = 0;
  std::int64_t v_pages = 0;

  // With kSlots, one of the two: [rows]. K and V of a row with slot -1 are not written; its Q is
  // rotated. If two rows have the same slot, each 16 bytes of it come from either row.
  const std::int64_t* slots = nullptr;
  const std::int32_t* slots_32 = nullptr;
  // With kSlots, [1]: the number of rows of this step. Null: BatchBounds::rows.
  const std::int32_t* rows = nullptr;
  // With kRequests: the metadata for BatchPlan::prepare, whose k_length counts the new keys. Rows
  // of no request are neither read nor written.
  BatchMetadata step;

  // With a rotation, one of the two: [rows], the position of each row, from -2^30 to 2^30. With
  // kRequests both may be null: then a row's position is k_position plus the number of its key.
  const std::int64_t* positions = nullptr;
  const std::int32_t* positions_32 = nullptr;
  // With Rotary::tables: [table_rows, dims / 2]. If one table has rows of cosines followed by
  // sines, `sines` is cosines + dims / 2.
  const void* cosines = nullptr;
  const void* sines = nullptr;
  std::int64_t table_stride = 0;  // elements between the rows of two positions
  std::int64_t table_rows = 0;    // the tables have the positions 0 to table_rows - 1

  // A word in device memory to which runs write errors, until AppendPlan::clear_status. Null:
  // errors are not reported.
  std::uint32_t* status = nullptr;
};

// Rules of a step that only the device can check.
enum class AppendRule : int {
  kNone = 0,
  kRows = 1,      // the number of rows is negative or exceeds BatchBounds::rows
  kRequests = 2,  // the number of requests is negative or exceeds BatchBounds::requests; or q_begin
                  // is negative, descends or ends beyond BatchBounds::rows at that request
  kSlot = 3,      // a slot below -1 or beyond the pages
  kKey = 4,       // a row before its request's key 0, or a k_length that is negative or beyond
                  // BatchBounds::keys_of_one
  kEntry = 5,     // a key beyond the entries of its request's pages, or beyond the rows of K or V,
                  // or a negative begin
  kPage = 6,      // a page number outside the pages
  kPosition = 7,  // a position beyond 2^30 or outside the tables
};
ANNULUS_EXPORT const char* to_string(AppendRule rule);  // a few words

// The first rule that was broken. A row that breaks kPosition, or whose request has a wrong
// k_length or q_begin, is skipped. For a row that breaks another rule, neither K nor V is written.
// All other rows are correct.
struct AppendStatus {
  AppendRule rule = AppendRule::kNone;  // the first rule that the row breaks
  std::int64_t row = 0;  // the first such row; with AppendRule::kRequests, the request
};

// The decisions of planning, for people and for logs.
struct AppendInfo {
  std::string specialised_source;  // the compiled source
  int threads = 0;                 // threads of a CTA; each row of BatchBounds::rows has a CTA
  int registers = 0;               // registers of a thread; an estimate on a simulated device
  int local_bytes = 0;             // local memory of a thread: spills
  std::int64_t device_bytes = 0;   // memory that the plan holds
  double compile_ms = 0;           // time to find or compile the kernel
};

// An AppendProblem made ready for a device.
class ANNULUS_EXPORT AppendPlan {
 public:
  struct Impl;
  explicit AppendPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  AppendPlan(const AppendPlan&) = default;
  AppendPlan& operator=(const AppendPlan&) = default;

  const AppendProblem& problem() const;  // the problem with its defaults filled in
  const AppendInfo& info() const;

  // Appends the rows of one step by one launch, whose size depends only on the bounds. Throws
  // Error{kInvalidArgument} for operands that do not fit the problem, and Error{kDevice}.
  void run(void* stream, const AppendOperands& operands) const;

  // Sets the word at `status` to "no error" in stream order.
  void clear_status(void* stream, std::uint32_t* status) const;

  // The errors that runs with this word have found so far. Waits for the device's default stream,
  // like Device::copy_to_host; work on other streams must have ended.
  AppendStatus status(const std::uint32_t* status) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

ANNULUS_EXPORT void validate(const AppendProblem& problem);

// Compiles the kernel and uploads what it needs. Throws the errors of validate(),
// Error{kOutOfMemory}, Error{kCompile} and Error{kDevice}.
ANNULUS_EXPORT AppendPlan plan_append(const Device& device, const AppendProblem& problem);

}  // namespace annulus::inline v0

#endif  // ANNULUS_BATCH_H_
