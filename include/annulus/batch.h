#ifndef ANNULUS_BATCH_H_
#define ANNULUS_BATCH_H_

// Batches of requests, as an inference engine has them: each request has queries and keys of its
// own number, K and V lie in pages that the engine gives and takes, and lengths and page tables are
// in device memory, written by work that may still run when the next step is queued.
//
//   BatchPlan plan = plan_batch(device, problem);            // once: compiles every kernel
//   DeviceMemory workspace = device.allocate(plan.workspace_bytes());
//   plan.prepare(stream, metadata, workspace.data());        // once a step of the model
//   for (each layer) plan.run(stream, operands, workspace.data());
//
// What the host knows is structure and bounds; whatever lengths the device memory holds, prepare()
// and run() launch the same kernels with the same sizes, so that a graph captured once serves every
// step within the bounds.
//
// Letters: R requests, H query heads, Hkv key/value heads, Dqk, Dv head dims. Rows of Q and O of
// all requests lie in one tensor each, those of a request behind one another; a row of Q is a
// query. The paging scheme is that of vLLM (Kwon et al., Efficient Memory Management for Large
// Language Model Serving with PagedAttention, 2023).

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "annulus/device.h"

namespace annulus::inline v0 {

// The most that a step may have. Steps with less cost less; the plan's workspace and the size of
// its launches follow from these.
struct BatchBounds {
  std::int64_t requests = 0;     // 1 to 65535
  std::int64_t rows = 0;         // of Q, of all requests together; at least 1
  std::int64_t rows_of_one = 0;  // of one request; 0: `rows`
  std::int64_t keys_of_one = 0;  // keys of one request; at least 1
  // Keys of all requests together; 0: requests x keys_of_one. Where they lie in a pool, give what
  // that holds, a prefix that requests share counted as often as it is read: workspace grows with
  // it. A number beyond requests x keys_of_one counts as that product.
  std::int64_t keys = 0;
};

// Which keys of a request are at hand where ranks share them out: key i of the whole request lies
// on rank i / block mod ranks, behind those that this rank has before it. So key j of those on a
// rank is key ((j / block) ranks + rank) block + j mod block of the request. A cache that grows
// does not move, and whatever a request's length, ranks hold as many of its keys but for one block.
struct KeyInterleave {
  std::int64_t block = 1;  // at least 1; block x ranks up to 2^24
  std::int64_t ranks = 1;  // 1 to 1024; 1: all keys are at hand
  std::int64_t rank = 0;   // 0 to ranks - 1
};
// How many of the first `keys` keys of a request are on the rank. Throws Error{kInvalidArgument}
// where there is no such rank, or `keys` is negative or beyond kMaxPosition.
ANNULUS_EXPORT std::int64_t held_keys(const KeyInterleave& interleave, std::int64_t keys);

// A batch of requests. A request with n queries and m keys is the problem with Sq = n, Sk = m and
// q0 = k_position + m - n: its queries are at the end of its keys.
struct BatchProblem {
  std::int64_t heads = 1;     // H >= 1
  std::int64_t kv_heads = 1;  // Hkv >= 1, divides H: query head h reads key head h / (H / Hkv)
  std::int64_t dim_qk = 0;    // see supported_dims()
  std::int64_t dim_v = 0;
  Dtype dtype = Dtype::kBfloat16;  // of Q, K, V and O: kFloat16 or kBfloat16

  // Which keys a query sees. Rows must be bands or a few runs of keys, as those of dense, causal,
  // window, sink, prefix, global, queries and keys and of what & and | make of them are. Heads may
  // differ (heads(...)): those of a group that share tiles read what any of them sees.
  Pattern pattern;
  Score score;  // all of it; score_mod gets the request's number as b

  BatchBounds most;
  // P, the rows of a page of K and of V; 0: no pages. Any number is right; multiples of 16 are
  // fast.
  std::int64_t page_rows = 0;
  // C, the keys of a block; 0: no lists of blocks. With them each head of K and V of a request has
  // a list of the blocks that its query heads look at (BatchMetadata::blocks), as sparse decoding
  // chooses them: a query sees the keys of those blocks that the pattern lets it see, and no
  // others, exactly. A multiple of 16 up to 2^29; how it goes with page_rows does not matter.
  std::int64_t block_keys = 0;
  std::int64_t most_blocks = 0;  // entries of such a list; 1 to 2^18 with block_keys, else 0
  // With several ranks K and V have the keys of this one alone, and O, LSE or the state are over
  // these; annulus/join.h joins those of all ranks. Everything else counts the keys of all ranks:
  // lengths, bounds, positions, row_end and tree_bits, so that ranks plan and prepare with the same
  // numbers. Pages, and rows from k_begin on, hold this rank's keys behind one another. Not with
  // lists of blocks. A sink logit counts for each rank that has it: give it to the join.
  KeyInterleave interleave;
  // Rows of Q have limits of their own besides the pattern (BatchMetadata::row_end, tree_bits), as
  // verifying drafts of speculative decoding needs.
  bool row_limits = false;

  bool want_lse = false;                 // write LSE; needs the state not to be carried out
  LseBase lse_base = LseBase::kNatural;  // base of the LSE that is written
  bool carry_in = false;                 // start from a state of other keys
  bool carry_out = false;                // write the state instead of O and LSE
};

struct BatchOptions {
  // How many multiprocessors the plan's kernels may occupy; 0: all. Their number changes no bit.
  int max_multiprocessors = 0;
  // Requests whose queries see more keys than this are computed in parts of this many keys, side
  // by side, and joined. A request's answer depends on the number, and on nothing of the requests
  // beside it. 0: chosen from the bounds and the device, once for the plan: BatchInfo tells. A
  // multiple of 128 from 128 to 2^20.
  std::int64_t part_keys = 0;
  // The most workspace; 0: no limit. A plan that needs more takes longer parts, and where that does
  // not help throws Error{kOutOfMemory}.
  std::int64_t max_workspace_bytes = 0;
  // For debugging: run() waits for the stream, reads the status that prepare() has left, and throws
  // Error{kInvalidArgument} where a request breaks a rule. It cannot be captured then.
  bool check_status = false;
  // The configurations of the kernels, as BatchInfo::config tells them: texts that ", " separates,
  // at most one for each class of requests (few queries, many queries). A class for which none is
  // named has the one that it would have anyway; empty: all have. Another configuration may give
  // other bits. Only a named one may be of a kernel that is withheld (PlanOptions::config).
  std::string config = {};
};

// Names of pages, int32 in device memory. Page j of request r is ids[r * width + j], or
// ids[begin[r] + j] where `begin` is not null (int32 [R + 1], ascending). Only entries of pages in
// which the pattern lets some query of the request see a key are read, whatever row_end and
// tree_bits say: those behind the last key, and those that a window has left behind, may hold
// anything. Where the queries of a tile see more than three runs of keys together, entries between
// the third run and the last are read as well.
struct PageTable {
  const std::int32_t* ids = nullptr;
  const std::int32_t* begin = nullptr;
  std::int64_t width = 0;  // entries of a row; ignored where `begin` is given
};

// What a step consists of. All arrays are int32 in device memory, 4-byte aligned, and are read by
// prepare() when the stream comes to it; page tables, k_begin and v_begin are read by every run()
// as well. Nothing is read by the host.
struct BatchMetadata {
  // [R + 1]: the rows of Q of request r are q_begin[r] up to q_begin[r + 1]. Ascending. Rows of no
  // request are neither read nor written.
  const std::int32_t* q_begin = nullptr;
  // [R]: keys of each request, on all ranks together where they are interleaved.
  const std::int32_t* k_length = nullptr;
  // [1]: how many of BatchBounds::requests there are; null: all.
  const std::int32_t* requests = nullptr;
  // [R]: the position of a request's key 0; null: 0.
  const std::int32_t* k_position = nullptr;
  // With pages. V has K's table where its own has no ids.
  PageTable k_pages;
  PageTable v_pages;
  // Without pages: [R], the row of K (of V) that is the first of a request's keys at hand. Null:
  // request r's keys begin r times BatchStrides::page elements behind the tensor's begin, and it
  // has room for as many as it can have of BatchBounds::keys_of_one. V has K's where its own is
  // null.
  const std::int32_t* k_begin = nullptr;
  const std::int32_t* v_begin = nullptr;

  // With BatchProblem::block_keys, [R, Hkv, most_blocks]: the numbers of the blocks that a
  // head of K and V of a request looks at, in any order; -1 where there is none. Block i has the
  // keys i C to (i + 1) C - 1 of the request. One that is named twice counts once, one that has no
  // key of the request is none, and the status names either.
  const std::int32_t* blocks = nullptr;

  // With BatchProblem::row_limits; at least one of them is given. Read by every run() as well.
  // [rows]: a row of Q sees only the first row_end[row] keys of its request.
  const std::int32_t* row_end = nullptr;
  // [rows], 8-byte aligned: of the newest 64 keys of its request a row of Q sees only those whose
  // bits are set; bit i is key k_length - 1 - i. Trees of drafts (Cai et al., Medusa, 2024) are
  // said so: a row's bits are those of its ancestors and its own. Older keys are seen as ever.
  const std::uint64_t* tree_bits = nullptr;

  // The number of entries of `ids` of a page table that has `begin`. Begins beyond it are found,
  // and nothing outside is read. If it is 0, begins are not bounded.
  std::int64_t k_entries = 0;
  std::int64_t v_entries = 0;
};

// Distances in elements. Those of K and V: key j of those of a request that are at hand, head h, is
// at
//
//   page(j / P) * page + (j mod P) * row + h * head
//
// elements behind the tensor's begin, so that every order of rows and heads in a page, K and V in
// one tensor, and one layer of a tensor of all layers are only strides. Multiples of 8; `row` is
// below 2^30. On sm_90a, where some request may have more than 64 rows of (query, head of a group),
// strides of Q, K and V with more than one entry lie above 0 and below 2^39, as does Q's from one
// group of heads to the next; `page` and `head` of K and V may also be 0.
struct BatchStrides {
  std::int64_t page = 0;  // with pages; else from one request to the next, where k_begin is null
  std::int64_t row = 0;
  std::int64_t head = 0;
};
struct RowStrides {
  std::int64_t row = 0;
  std::int64_t head = 0;
};

// The tensors of one layer, in device memory. A query that sees no key leaves O = 0 and LSE = -inf,
// or the sink logit where the score has one; as a state, l = 0 and m = -inf. The caller owns them;
// they must stay until the work that was put on the stream has ended. Base addresses are multiples
// of 16 bytes, of 4 for LSE, m and l. Memory that is written overlaps nothing else of the call, but
// O may be Q (the same address and strides), and state_out may be state_in.
struct BatchOperands {
  const void* q = nullptr;  // [rows, H, Dqk]
  const void* k = nullptr;
  const void* v = nullptr;
  void* o = nullptr;     // [rows, H, Dv]; null with carry_out
  float* lse = nullptr;  // [rows, H] in any order; null unless want_lse
  RowStrides q_strides;  // multiples of 8
  BatchStrides k_strides;
  BatchStrides v_strides;
  // Rows and heads of O and LSE do not overlap. If the bounds allow several rows, these strides are
  // checked for two, but equal strides of LSE for one: [H, rows] has them in a step with one row.
  RowStrides o_strides;
  RowStrides lse_strides;
  // Pages that K and V have. A page number outside is no page: its keys are not seen, and the
  // status names the request. Without pages: rows that K and V have, with k_begin; of a request
  // whose keys go beyond them none is seen, and the status names it (BatchRule::kPages). 0: 2^31 -
  // 1, whatever the numbers. Nothing outside is read or written if these are given.
  std::int64_t k_pages = 0;
  std::int64_t v_pages = 0;
  // Contiguous [rows, H, Dv] and [rows, H]: as annulus/problem.h, with rows in place of batches.
  StatePointers state_in;   // with carry_in
  StatePointers state_out;  // with carry_out
};

// Rules of a step that only the device can see.
enum class BatchRule : int {
  kNone = 0,
  kRequests = 1,   // there are more than planned, or a negative number
  kRows = 2,       // q_begin descends, is negative, ends beyond BatchBounds::rows, or names rows
                   // that an earlier request has
  kRowsOfOne = 3,  // more rows than BatchBounds::rows_of_one
  kKeys = 4,       // a length that is negative or beyond BatchBounds::keys_of_one
  kPages = 5,      // keys beyond the entries of the request's pages, entries beyond k_entries or
                   // v_entries, or a negative begin; found by run(): without pages, keys beyond
                   // the rows of K or V
  kAllKeys = 6,    // with this request the keys of all are beyond BatchBounds::keys
  kPosition = 7,   // positions beyond 2^30
  kPage = 8,       // a page number beyond BatchOperands::k_pages or v_pages; found by run()
  kBlocks = 9,     // a block that has no key of the request, or is named twice
  kRowEnd = 10,    // a row_end below 0 or beyond the request's keys
};
ANNULUS_EXPORT const char* to_string(BatchRule rule);  // a few words: "rows of Q that descend"

// What prepare() and the runs behind it have found. Where there are more requests than planned, the
// first of them are computed. A request that breaks kRows or kRowsOfOne has no queries, one that
// breaks another rule no keys (kPage: not those of that page; kBlocks: all others that it lists;
// kRowEnd: in that row none, or all); all other requests are right.
struct BatchStatus {
  BatchRule rule = BatchRule::kNone;  // the first that the request breaks
  std::int64_t request = 0;           // the first that breaks one
};

// Everything that was decided, for people and for logs.
struct BatchInfo {
  // The kernel of requests with few queries, then that of others: "decode m16 n64 w4 s2 q x2,
  // chunk_wgmma m128 n128 w8 s3". All numbers below that are of a kernel are of the first.
  std::string config;
  // Where tuned results are from (annulus/tune.h), as PlanInfo::tuned, in the order of `config`;
  // empty: there are none.
  std::string tuned;
  std::vector<std::string> decisions;  // one line each
  std::string specialised_source;      // what the compiler was given for it
  std::int64_t part_keys = 0;          // BatchOptions::part_keys, or what was chosen
  std::int64_t ctas = 0;               // of run()'s persistent kernel
  int launches = 0;                    // of run()
  int threads = 0;                     // of a CTA
  std::int64_t shared_bytes = 0;       // of a CTA
  int registers = 0;                   // of a thread; on a simulated device an estimate
  int local_bytes = 0;                 // of a thread: spills
  // K and V that a multiprocessor has under way by construction, while a step is computed.
  std::int64_t bytes_under_way = 0;
  std::int64_t device_bytes = 0;  // memory that the plan holds
  double plan_ms = 0;             // time to decide
  double compile_ms = 0;          // time to get the kernels, whatever their source
};

// A batch made ready for a device. Immutable: any number of threads may use it at a time. Copies
// share. Keeps what it needs of the device alive; a captured graph does not, so a plan must outlive
// the graphs that were captured of it.
class ANNULUS_EXPORT BatchPlan {
 public:
  struct Impl;
  explicit BatchPlan(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}
  // No move: a plan that was moved from would be none. A copy is a pointer.
  BatchPlan(const BatchPlan&) = default;
  BatchPlan& operator=(const BatchPlan&) = default;

  const BatchProblem& problem() const;
  const BatchInfo& info() const;

  // Device memory that prepare() and the runs behind it share, 16-byte aligned: exact, and enough
  // for every step within the bounds. It may hold anything before prepare(). Steps that may be
  // under way at a time need one each.
  std::size_t workspace_bytes() const;

  // Puts one launch on `stream`, and with lists of blocks one in front of it, that makes the lists
  // of works of a step, which all runs with this workspace use until the next prepare(). All layers
  // of one shape share it. Allocates nothing, takes no lock, does not wait and may be captured.
  // Throws Error{kInvalidArgument} for pointers that are missing or not aligned, and
  // Error{kDevice}.
  void prepare(void* stream, const BatchMetadata& metadata, void* workspace) const;

  // Puts the attention of one layer on `stream`, for the step that prepare() was queued with last.
  // Likewise. Throws Error{kInvalidArgument} for operands that the problem does not go with,
  // Error{kUnsupported} for strides that no kernel takes, and Error{kDevice}; nothing was launched
  // then.
  void run(void* stream, const BatchOperands& operands, void* workspace) const;

  // What prepare() and the runs on this workspace have found up to now. Waits for the device's
  // default stream, as Device::copy_to_host; work on other streams must have ended.
  BatchStatus status(const void* workspace) const;

 private:
  std::shared_ptr<const Impl> impl_;
};

// Throws Error{kInvalidArgument} or Error{kUnsupported}, which names the wrong value and what would
// be right.
ANNULUS_EXPORT void validate(const BatchProblem& problem);

// Decides, compiles and uploads. Throws what validate() throws, Error{kInvalidArgument} for options
// out of range and a text that is no configuration, Error{kUnsupported} where the pattern's rows
// are not bands or runs, the device has no kernel, or a configuration that was named is not
// possible, Error{kOutOfMemory}, Error{kCompile}, Error{kDevice}, and Error{kLimit,
// kCancelled} where the pattern takes more work than the default limit, or than that of a WorkScope
// around the call (annulus/types.h).
ANNULUS_EXPORT BatchPlan plan_batch(const Device& device, const BatchProblem& problem,
                                    const BatchOptions& options = {});

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

#endif  // ANNULUS_BATCH_H_
