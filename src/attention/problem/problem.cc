// The rules that a problem and its memory must satisfy before anything is planned or launched.
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

#include "annulus/problem.h"
#include "attention/problem/dims.h"
#include "attention/problem/operands.h"
#include "attention/score/score.h"
#include "base/fail.h"
#include "pattern/classify.h"

namespace annulus {
namespace attention {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

// Returns false if the product exceeds int64.
bool multiply(std::int64_t a, std::int64_t b, std::int64_t* product) {
  return !__builtin_mul_overflow(a, b, product);
}

void check_elements(const char* name, std::array<std::int64_t, 4> extents) {
  // The product starts at 8, so sizes in bytes (also in fp32) and signed byte offsets fit too.
  std::int64_t count = 8;
  for (const std::int64_t extent : extents) {
    if (!multiply(count, std::max<std::int64_t>(extent, 1), &count)) {
      base::fail(ErrorCode::kInvalidArgument,
                 "{} would hold {} x {} x {} x {} elements, more than 2^60; use a smaller problem",
                 name, extents[0], extents[1], extents[2], extents[3]);
    }
  }
}

struct Tensor {
  const char* name;
  const void* data;
  const Strides& strides;
  std::int64_t batch, rows, heads, dim;
  Dtype dtype;
};

bool empty(const Tensor& tensor) {
  return tensor.batch == 0 || tensor.rows == 0 || tensor.heads == 0;
}

std::array<Axis, 3> axes_of(const Tensor& tensor) {
  return {Axis{"batch", tensor.batch, tensor.strides.batch},
          Axis{"row", tensor.rows, tensor.strides.row},
          Axis{"head", tensor.heads, tensor.strides.head}};
}

void check_tensor(const Tensor& tensor) {
  if (empty(tensor)) return;
  check_address(tensor.name, tensor.data, 16);
  const std::array<Axis, 3> axes = axes_of(tensor);
  std::int64_t span = tensor.dim;
  const std::int64_t unit = 16 / static_cast<std::int64_t>(size_in_bytes(tensor.dtype));
  for (const Axis& axis : axes) {
    if (axis.extent <= 1) continue;
    if (axis.stride % unit != 0) {
      base::fail(ErrorCode::kInvalidArgument,
                 "the {} stride of {} is {} elements; it must be a multiple of {}", axis.name,
                 tensor.name, axis.stride, unit);
    }
    // The span of all axes must be below kMax / 8 elements, so that byte offsets fit in int64 even
    // for fp32. The least int64 has no abs().
    std::int64_t reach = 0;
    if (axis.stride == std::numeric_limits<std::int64_t>::min() ||
        !multiply(std::abs(axis.stride), axis.extent - 1, &reach) || reach > kMax / 8 - span) {
      base::fail(
          ErrorCode::kInvalidArgument,
          "the {} stride of {} is {} elements over {} steps, which is beyond the address space",
          axis.name, tensor.name, axis.stride, axis.extent);
    }
    span += reach;
  }
}

void check_rows(const Tensor& tensor, bool broadcast_rows) {
  attention::check_rows_given(tensor.name, tensor.strides,
                              {tensor.batch, tensor.rows, tensor.heads}, tensor.dim,
                              broadcast_rows);
}

void check_distinct(const Tensor& tensor) {
  if (!empty(tensor)) attention::check_distinct(tensor.name, axes_of(tensor), tensor.dim);
}

// O may be Q itself if the two have the same strides: a CTA reads its rows of Q before it writes
// the same rows of O, and no other CTA reads them. Any other tensor at O's address would be read
// while O is written.
void check_in_place(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& o) {
  if (empty(o)) return;
  for (const Tensor* other : {&k, &v}) {
    if (!empty(*other) && other->data == o.data) {
      base::fail(
          ErrorCode::kInvalidArgument,
          "O and {} are both at {:#x}; other rows still read {} when the first rows of O are "
          "written. Only Q may be O",
          other->name, reinterpret_cast<std::uintptr_t>(o.data), other->name);
    }
  }
  if (q.data != o.data) return;
  if (q.dtype != o.dtype) {
    base::fail(ErrorCode::kInvalidArgument,
               "O and Q are both at {:#x}, but Q is {} and O {}; rows of O would overwrite other "
               "rows of Q",
               reinterpret_cast<std::uintptr_t>(o.data), to_string(q.dtype), to_string(o.dtype));
  }
  const std::array<Axis, 3> q_axes = axes_of(q);
  const std::array<Axis, 3> o_axes = axes_of(o);
  for (std::size_t i = 0; i < q_axes.size(); ++i) {
    if (o_axes[i].extent <= 1 || q_axes[i].stride == o_axes[i].stride) continue;
    base::fail(ErrorCode::kInvalidArgument,
               "O is Q's memory, but their {} strides are {} and {} elements; rows of O would "
               "overwrite other rows of Q. Use the same strides, or other memory",
               o_axes[i].name, o_axes[i].stride, q_axes[i].stride);
  }
  check_distinct(q);
}

// Checks the dtypes and the rules of e4m3 alone: its head dims, the dtype of O, and blocks of
// scales.
void check_dtypes(const Problem& problem) {
  const bool bytes = problem.dtype == Dtype::kFloat8E4M3;
  if (!bytes && problem.dtype != Dtype::kFloat16 && problem.dtype != Dtype::kBfloat16) {
    base::fail(
        problem.dtype == Dtype::kFloat32 ? ErrorCode::kUnsupported : ErrorCode::kInvalidArgument,
        "dtype {} ({}) of Q, K and V has no kernel; convert to fp16, bf16 or e4m3",
        static_cast<int>(problem.dtype), to_string(problem.dtype));
  }
  if (bytes && (problem.dim_qk < 64 || problem.dim_v < 64)) {
    base::fail(ErrorCode::kUnsupported, "e4m3 has head dims from 64 on, not {}/{}; use bf16",
               problem.dim_qk, problem.dim_v);
  }
  const Dtype o = problem.output_dtype();
  if (bytes ? o != Dtype::kBfloat16 && o != Dtype::kFloat16 : o != problem.dtype) {
    base::fail(ErrorCode::kUnsupported, "O as {} with {} operands has no kernel; {}", to_string(o),
               to_string(problem.dtype),
               bytes ? "take bf16 or fp16" : "O has the dtype of Q, K and V");
  }
  const auto check_block = [&](const char* name, std::int64_t rows) {
    constexpr std::int64_t kLeast = 32;
    if (rows == 0) return;
    if (!bytes) {
      base::fail(ErrorCode::kInvalidArgument,
                 "scale_blocks.{} is {}, but {} operands have no scales; leave it 0", name, rows,
                 to_string(problem.dtype));
    }
    if (rows < kLeast || rows > kMaxPosition ||
        !std::has_single_bit(static_cast<std::uint64_t>(rows))) {
      base::fail(ErrorCode::kInvalidArgument,
                 "scale_blocks.{} is {} rows; it must be 0 (one scale for a head) or a power of "
                 "two from {} to 2^30",
                 name, rows, kLeast);
    }
  };
  check_block("q", problem.scale_blocks.q);
  check_block("k", problem.scale_blocks.k);
  check_block("v", problem.scale_blocks.v);
}

void check_scale(const char* name, const void* data, Dtype dtype) {
  if (data == nullptr) return;
  if (dtype != Dtype::kFloat8E4M3) check_unused(name, data, "only e4m3 operands have scales");
  check_address(name, data, 4);
}

struct StateNames {
  const char* acc;
  const char* m;
  const char* l;
};
constexpr StateNames kStateIn = {"state_in.acc", "state_in.m", "state_in.l"};
constexpr StateNames kStateOut = {"state_out.acc", "state_out.m", "state_out.l"};

void check_state(const StateNames& names, const StatePointers& state) {
  check_address(names.acc, state.acc, 16);
  check_address(names.m, state.m, 4);
  check_address(names.l, state.l, 4);
}

Tensor q_of(const Problem& problem, const Operands& operands) {
  return {"Q",           operands.q,    operands.q_strides, problem.batch,
          problem.seq_q, problem.heads, problem.dim_qk,     problem.dtype};
}

Tensor k_of(const Problem& problem, const Operands& operands) {
  return {"K",           operands.k,       operands.k_strides, problem.batch,
          problem.seq_k, problem.kv_heads, problem.dim_qk,     problem.dtype};
}

}  // namespace

void check_count(const char* name, std::int64_t value, std::int64_t least, std::int64_t most) {
  if (value < least || value > most) {
    base::fail(ErrorCode::kInvalidArgument, "{} is {}; give a number from {} to {}", name, value,
               least, most);
  }
}

void check_address(const char* name, const void* data, std::uintptr_t alignment) {
  if (data == nullptr) {
    base::fail(ErrorCode::kInvalidArgument, "{} is null; give the address of device memory", name);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(data);
  if (address % alignment != 0) {
    base::fail(ErrorCode::kInvalidArgument, "{} at {:#x} is not a multiple of {} bytes", name,
               address, alignment);
  }
}

void check_unused(const char* name, const void* data, const char* why) {
  if (data != nullptr) {
    base::fail(ErrorCode::kInvalidArgument, "{} is given although {}; leave it null", name, why);
  }
}

void check_distinct(const char* name, std::array<Axis, 3> axes, std::int64_t dim) {
  // The least int64 has no abs().
  const auto size = [](const Axis& axis) {
    return axis.stride == std::numeric_limits<std::int64_t>::min() ? kMax : std::abs(axis.stride);
  };
  std::ranges::sort(axes, {}, size);
  std::int64_t inner = dim;
  for (const Axis& axis : axes) {
    if (axis.extent <= 1) continue;
    if (size(axis) < inner) {
      base::fail(ErrorCode::kInvalidArgument,
                 "the {} stride of {} is {} elements, less than the {} that lie inside one step; "
                 "elements would overlap; give at least {}",
                 axis.name, name, axis.stride, inner, inner);
    }
    std::int64_t span = 0;
    if (!multiply(size(axis), axis.extent - 1, &span) || span > kMax - inner) span = kMax - inner;
    inner += span;
  }
}

void check_rows_given(const char* name, const Strides& strides, const RowExtents& extents,
                      std::int64_t dim, bool broadcast_rows) {
  const auto [batch, rows, heads] = extents;
  if (broadcast_rows || batch == 0 || rows == 0 || heads == 0) return;
  const bool none_given = strides == Strides{} && (batch > 1 || rows > 1 || heads > 1);
  if (!none_given && (strides.row != 0 || rows == 1)) return;
  const Strides contiguous = Strides::bshd(rows, heads, dim);
  base::fail(ErrorCode::kInvalidArgument,
             "the strides of {} are {}, {} and {} elements for batch, head and row, so its {} rows "
             "would be one row; give its strides, which are {}, {} and {} if it is contiguous in "
             "the order B, S, H, D, or set broadcast_rows if one row is meant",
             name, strides.batch, strides.head, strides.row, batch * rows * heads, contiguous.batch,
             contiguous.head, contiguous.row);
}

void check_rows_given(const Problem& problem, const OperandStrides& strides) {
  const auto check = [&](const char* name, const Strides& of, std::int64_t rows, std::int64_t heads,
                         std::int64_t dim) {
    check_rows_given(name, of, {problem.batch, rows, heads}, dim, strides.broadcast_rows);
  };
  check("Q", strides.q, problem.seq_q, problem.heads, problem.dim_qk);
  check("K", strides.k, problem.seq_k, problem.kv_heads, problem.dim_qk);
  check("V", strides.v, problem.seq_k, problem.kv_heads, problem.dim_v);
}

void check_queries_and_keys(const Problem& problem, const Operands& operands) {
  for (const Tensor& tensor : {q_of(problem, operands), k_of(problem, operands)}) {
    check_tensor(tensor);
    check_rows(tensor, operands.broadcast_rows);
  }
}

std::span<const Dims> supported_dims() {
  static constexpr Dims kDims[] = {{32, 32},   {64, 64},   {96, 96},  {128, 128},
                                   {192, 192}, {192, 128}, {256, 256}};
  return kDims;
}

std::string supported_dims_text() {
  std::string text;
  for (const Dims& dims : supported_dims()) {
    if (!text.empty()) text += ", ";
    text += dims.qk == dims.v ? std::to_string(dims.qk) : fmt::format("{}/{}", dims.qk, dims.v);
  }
  return text;
}

}  // namespace attention

inline namespace v0 {

using attention::check_address;
using attention::check_count;
using attention::check_unused;
using attention::Tensor;

std::vector<HeadDims> supported_dims() {
  std::vector<HeadDims> all;
  for (const attention::Dims& dims : attention::supported_dims()) all.push_back({dims.qk, dims.v});
  return all;
}

double Problem::effective_scale() const {
  return score.scale.value_or(1.0 /
                              std::sqrt(static_cast<double>(std::max<std::int64_t>(dim_qk, 1))));
}

PatternContext Problem::context() const {
  return {total_k.value_or(std::max<std::int64_t>(k_position() + seq_k, 0)), layer};
}

// Checks everything about a problem that does not need its memory. Counts come first, because later
// checks divide by them and multiply them. Products of lengths are checked last, when every factor
// is within its limit. Lengths and batches of 0 are valid.
void validate(const Problem& problem) {
  check_count("batch (B)", problem.batch, 0, std::numeric_limits<std::int32_t>::max());
  check_count("heads (H)", problem.heads, 1, kMaxHeads);
  check_count("kv_heads (Hkv)", problem.kv_heads, 1, kMaxHeads);
  if (problem.heads % problem.kv_heads != 0) {
    base::fail(ErrorCode::kInvalidArgument,
               "{} query heads are not a multiple of {} key/value heads; every key head must serve "
               "the same number of query heads",
               problem.heads, problem.kv_heads);
  }
  check_count("seq_q (Sq)", problem.seq_q, 0, kMaxPosition);
  check_count("seq_k (Sk)", problem.seq_k, 0, kMaxPosition);
  const auto dims = attention::supported_dims();
  if (std::none_of(dims.begin(), dims.end(), [&](const attention::Dims& d) {
        return d.qk == problem.dim_qk && d.v == problem.dim_v;
      })) {
    base::fail(problem.dim_qk < 1 || problem.dim_v < 1 ? ErrorCode::kInvalidArgument
                                                       : ErrorCode::kUnsupported,
               "no kernel has head dims {}/{} (Q and K / V); supported are {}", problem.dim_qk,
               problem.dim_v, attention::supported_dims_text());
  }
  attention::check_dtypes(problem);
  attention::check_score(problem);
  const auto check_positions = [](const char* name, std::int64_t first, std::int64_t count) {
    if (first < -kMaxPosition || first > kMaxPosition - count) {
      base::fail(ErrorCode::kInvalidArgument,
                 "{} is {}, so positions run up to {} + {}; they must stay within 2^30 of 0", name,
                 first, first, count);
    }
  };
  check_positions("q0", problem.q_position(), problem.seq_q);
  check_positions("k0", problem.k_position(), problem.seq_k);
  if (problem.total_k) {
    check_count("total_k", *problem.total_k, 0, kMaxPosition);
    const std::int64_t end = problem.k_position() + problem.seq_k;
    if (problem.seq_k > 0 && end > *problem.total_k) {
      base::fail(
          ErrorCode::kInvalidArgument,
          "total_k is {}, but the problem has keys at positions {} to {}; give the number of "
          "keys of the whole sequence, at least {}, or leave total_k out",
          *problem.total_k, problem.k_position(), end - 1, end);
    }
  }
  check_count("layer", problem.layer, 0, std::numeric_limits<std::int32_t>::max());
  problem.pattern.distinct_heads(problem.heads);  // throws if the pattern has other heads
  pattern::check_layouts(problem.pattern.node(), {problem.seq_q, problem.seq_k,
                                                  problem.q_position(), problem.k_position()});
  attention::check_elements("Q", {problem.batch, problem.seq_q, problem.heads, problem.dim_qk});
  attention::check_elements("K", {problem.batch, problem.seq_k, problem.kv_heads, problem.dim_qk});
  attention::check_elements("V", {problem.batch, problem.seq_k, problem.kv_heads, problem.dim_v});
  attention::check_elements("O", {problem.batch, problem.seq_q, problem.heads, problem.dim_v});
  if (problem.lse_base != LseBase::kNatural && problem.lse_base != LseBase::kTwo) {
    base::fail(ErrorCode::kInvalidArgument, "lse_base {} is neither natural nor two",
               static_cast<int>(problem.lse_base));
  }
  if (problem.want_lse && problem.carry_out) {
    base::fail(ErrorCode::kInvalidArgument,
               "want_lse and carry_out exclude each other: the LSE of a carried state is "
               "m + log2(l); set one of them");
  }
}

// Checks the memory of a call. Without query rows nothing is launched, and addresses are not
// checked. But a pointer for which the problem has no use is always refused, because it shows a
// mistake.
void validate(const Problem& problem, const Operands& operands) {
  const Tensor q = attention::q_of(problem, operands);
  const Tensor k = attention::k_of(problem, operands);
  const Tensor v = {"V",           operands.v,       operands.v_strides, problem.batch,
                    problem.seq_k, problem.kv_heads, problem.dim_v,      problem.dtype};
  const Tensor o = {"O",           operands.o,    operands.o_strides, problem.batch,
                    problem.seq_q, problem.heads, problem.dim_v,      problem.output_dtype()};
  const bool rows = problem.batch > 0 && problem.seq_q > 0;
  if (rows) {
    for (const Tensor* tensor : {&q, &k, &v}) {
      check_tensor(*tensor);
      check_rows(*tensor, operands.broadcast_rows);
    }
  }
  if (problem.carry_out) {
    check_unused("O", operands.o, "the state is carried out");
    if (rows) attention::check_state(attention::kStateOut, operands.state_out);
  } else {
    check_unused("state_out.acc", operands.state_out.acc, "nothing is carried out");
    if (rows) {
      check_tensor(o);
      check_distinct(o);
      check_in_place(q, k, v, o);
    }
  }
  if (problem.want_lse) {
    if (rows) check_address("LSE", operands.lse, 4);
  } else {
    check_unused("LSE", operands.lse, "want_lse of the problem is not set");
  }
  attention::check_scale("scale_q", operands.scale_q, problem.dtype);
  attention::check_scale("scale_k", operands.scale_k, problem.dtype);
  attention::check_scale("scale_v", operands.scale_v, problem.dtype);
  if (problem.carry_in) {
    if (rows) attention::check_state(attention::kStateIn, operands.state_in);
  } else {
    check_unused("state_in.acc", operands.state_in.acc, "nothing is carried in");
  }
  if (rows) attention::check_overlaps(problem, operands);
}

}  // namespace v0
}  // namespace annulus
