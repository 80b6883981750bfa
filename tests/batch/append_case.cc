#include "batch/append_case.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/half.h"
#include "base/random.h"

namespace annulus::test {
namespace {

constexpr std::uint16_t kUntouched = 0x7f7f;

std::size_t size(std::int64_t value) { return static_cast<std::size_t>(value); }

// The spacing of the numbers of a 16-bit dtype around a value.
double spacing(Dtype dtype, double value) {
  const bool half = dtype == Dtype::kFloat16;
  const int exponent = value == 0 ? -1000 : std::ilogb(value);
  return std::ldexp(1.0, std::max(exponent, half ? -14 : -126) - (half ? 10 : 7));
}

}  // namespace

AppendCase::Tensor AppendCase::make(std::int64_t rows, std::int64_t heads, std::int64_t dim,
                                    const RowStrides& strides,
                                    const std::vector<std::int64_t>& written, std::uint64_t seed) {
  Tensor made;
  made.bits.resize(size(rows * strides.row), kUntouched);
  memory_.push_back(device_.allocate(std::max<std::size_t>(made.bits.size(), 8) * 2));
  made.data = memory_.back().data();
  for (const std::int64_t row : written) {
    base::Random random(seed * 1000003 + static_cast<std::uint64_t>(row));
    for (std::int64_t h = 0; h < heads; ++h) {
      const std::int64_t first = row * strides.row + h * strides.head;
      for (std::int64_t d = 0; d < dim; ++d) {
        made.bits[size(first + d)] = base::from_float(problem_.dtype, random.normal());
      }
      device_.copy_to_device(static_cast<std::uint16_t*>(made.data) + first,
                             &made.bits[size(first)], size(dim) * 2);
    }
  }
  return made;
}

AppendCase::AppendCase(const Device& device, const AppendProblem& problem,
                       const std::vector<AppendedRow>& rows, std::int64_t places,
                       const AppendLayout& layout)
    : device_(device), problem_(problem), rows_(rows) {
  if (problem_.rotary.dims == 0) problem_.rotary.dims = problem_.dim_qk;
  std::vector<std::int64_t> queries, keys;
  for (const AppendedRow& row : rows_) {
    if (row.rotates_q) queries.push_back(row.row);
    if (row.k) keys.push_back(row.row);
  }
  const bool rotates = problem_.rotary.order != RotaryOrder::kNone;
  const std::int64_t most = problem_.most.rows;
  const std::int64_t heads = problem_.heads, kv_heads = problem_.kv_heads;
  const std::int64_t dim_qk = problem_.dim_qk, dim_v = problem_.dim_v;
  if (rotates && heads > 0) {
    operands_.q_strides = {heads * dim_qk + 8, dim_qk};
    q_ = make(most, heads, dim_qk, operands_.q_strides, queries, layout.seed + 1);
    operands_.q = q_.data;
    operands_.rotated_q_strides =
        layout.in_place ? operands_.q_strides : RowStrides{heads * (dim_qk + 8), dim_qk + 8};
    operands_.rotated_q = q_.data;
    if (!layout.in_place) {
      rotated_q_ = make(most, heads, dim_qk, operands_.rotated_q_strides, {}, 0);
      operands_.rotated_q = rotated_q_.data;
    }
  }
  operands_.new_k_strides = {kv_heads * (dim_qk + 8), dim_qk + 8};
  new_k_ = make(most, kv_heads, dim_qk, operands_.new_k_strides, keys, layout.seed + 2);
  operands_.new_k = new_k_.data;
  operands_.new_v_strides = {kv_heads * dim_v, dim_v};
  new_v_ = make(most, kv_heads, dim_v, operands_.new_v_strides, keys, layout.seed + 3);
  operands_.new_v = new_v_.data;

  // BatchStrides::page is the stride of a page, or without pages the stride of a row. A test in
  // which each request has a slab changes it later.
  const std::int64_t rows_of_page = std::max<std::int64_t>(problem_.page_rows, 1);
  const auto strides = [&](std::int64_t dim) -> BatchStrides {
    return {rows_of_page * kv_heads * dim, layout.heads_first ? dim : kv_heads * dim,
            layout.heads_first ? rows_of_page * dim : dim};
  };
  operands_.k_strides = strides(dim_qk);
  operands_.v_strides = strides(dim_v);
  if (layout.together) {
    const std::int64_t page = operands_.k_strides.page + operands_.v_strides.page;
    k_ = make(places, 0, 0, {page, 0}, {}, 0);
    operands_.k = k_.data;
    operands_.v = static_cast<std::uint16_t*>(k_.data) + operands_.k_strides.page;
    operands_.k_strides.page = operands_.v_strides.page = page;
  } else {
    k_ = make(places, 0, 0, {operands_.k_strides.page, 0}, {}, 0);
    v_ = make(places, 0, 0, {operands_.v_strides.page, 0}, {}, 0);
    operands_.k = k_.data;
    operands_.v = v_.data;
  }
  operands_.k_pages = operands_.v_pages = places;
  clear();
}

void AppendCase::expect(const std::vector<AppendedRow>& rows) {
  rows_ = rows;
  clear();
}

void AppendCase::clear() const {
  for (const Tensor* tensor : {&rotated_q_, &k_, &v_}) {
    if (tensor->bits.empty()) continue;
    device_.copy_to_device(tensor->data, tensor->bits.data(), tensor->bits.size() * 2);
  }
}

long double AppendCase::angle(std::int64_t pair, std::int64_t position) const {
  const Rotary& rotary = problem_.rotary;
  const long double frequency =
      rotary.frequencies.empty()
          ? std::pow(static_cast<long double>(rotary.base),
                     -2.0L * static_cast<long double>(pair) / static_cast<long double>(rotary.dims))
          : static_cast<long double>(rotary.frequencies[size(pair)]);
  return frequency * static_cast<long double>(position);
}

void AppendCase::give_tables(std::int64_t positions, AppendOperands* operands) {
  const std::int64_t dims = problem_.rotary.dims;
  const Dtype dtype = *problem_.rotary.tables;
  std::vector<std::uint16_t> narrow;
  table_.clear();
  for (std::int64_t position = 0; position < positions; ++position) {
    for (std::int64_t i = 0; i < dims; ++i) {
      const long double of = angle(i % (dims / 2), position);
      const auto value = static_cast<float>(i < dims / 2 ? std::cos(of) : std::sin(of));
      const std::uint16_t bits = dtype == Dtype::kFloat32 ? 0 : base::from_float(dtype, value);
      narrow.push_back(bits);
      table_.push_back(dtype == Dtype::kFloat32 ? value : base::to_float(dtype, bits));
    }
  }
  const char* data = dtype == Dtype::kFloat32 ? reinterpret_cast<const char*>(put(table_))
                                              : reinterpret_cast<const char*>(put(narrow));
  operands->cosines = data;
  operands->sines = data + size(dims / 2) * size_in_bytes(dtype);
  operands->table_stride = dims;
  operands->table_rows = positions;
}

// Compares a head with its input. Elements that are not rotated must have the same bits. Others
// must be the exact value rounded once, apart from the rounding of an fp32 product and sum before.
std::string AppendCase::compare_head(const std::uint16_t* got, const std::uint16_t* given,
                                     std::int64_t dim, const AppendedRow* rotated) const {
  const Rotary& rotary = problem_.rotary;
  const std::int64_t dims =
      rotated == nullptr || rotary.order == RotaryOrder::kNone ? 0 : rotary.dims;
  for (std::int64_t d = dims; d < dim; ++d) {
    if (got[d] == given[d]) continue;
    return fmt::format("element {} is {:#x}, not {:#x}", d, got[d], given[d]);
  }
  const bool halves = rotary.order == RotaryOrder::kHalves;
  for (std::int64_t i = 0; i < dims / 2; ++i) {
    const std::int64_t at[] = {halves ? i : 2 * i, halves ? i + dims / 2 : 2 * i + 1};
    const auto value = [&](const std::uint16_t* bits, int which) -> double {
      return base::to_float(problem_.dtype, bits[at[which]]);
    };
    const double x = value(given, 0), y = value(given, 1);
    double cosine = 0, sine = 0;
    if (rotary.tables) {
      cosine = table_[size(rotated->position * dims + i)];
      sine = table_[size(rotated->position * dims + dims / 2 + i)];
    } else {
      cosine = static_cast<double>(std::cos(angle(i, rotated->position)));
      sine = static_cast<double>(std::sin(angle(i, rotated->position)));
    }
    const double exact[] = {x * cosine - y * sine, x * sine + y * cosine};
    for (int which = 0; which < 2; ++which) {
      const double error = std::abs(value(got, which) - exact[which]);
      const double most =
          spacing(problem_.dtype, exact[which]) / 2 + 0x1p-21 * (std::abs(x) + std::abs(y));
      if (error <= most) continue;
      return fmt::format("element {} at position {} is {}, not {}", at[which], rotated->position,
                         value(got, which), exact[which]);
    }
  }
  return {};
}

std::string AppendCase::first_wrong() const {
  const auto fetch = [&](const void* data, std::size_t count) {
    std::vector<std::uint16_t> bits(count);
    device_.copy_to_host(bits.data(), data, count * 2);
    return bits;
  };
  std::string wrong;
  // Compares the heads of rows of one tensor, and then removes them.
  const auto compare = [&](std::vector<std::uint16_t>* got, std::int64_t first, std::int64_t head,
                           const Tensor& given, const RowStrides& strides, const AppendedRow& row,
                           std::int64_t heads, std::int64_t dim, bool rotated, const char* name) {
    for (std::int64_t h = 0; h < heads; ++h) {
      std::uint16_t* const at = got->data() + first + h * head;
      const std::string text =
          compare_head(at, given.bits.data() + row.row * strides.row + h * strides.head, dim,
                       rotated ? &row : nullptr);
      if (!text.empty() && wrong.empty()) {
        wrong = fmt::format("{} of row {}, head {}: {}", name, row.row, h, text);
      }
      std::fill_n(at, dim, kUntouched);
    }
  };
  if (operands_.q != nullptr) {
    const Tensor& to = operands_.q == operands_.rotated_q ? q_ : rotated_q_;
    std::vector<std::uint16_t> got = to.bits;
    // Rows that were never written must not be read here either.
    for (const AppendedRow& row : rows_) {
      if (!row.rotates_q) continue;
      const RowStrides& strides = operands_.rotated_q_strides;
      for (std::int64_t h = 0; h < problem_.heads; ++h) {
        const std::int64_t first = row.row * strides.row + h * strides.head;
        const auto read = fetch(static_cast<const std::uint16_t*>(operands_.rotated_q) + first,
                                size(problem_.dim_qk));
        std::copy(read.begin(), read.end(), got.begin() + first);
      }
      compare(&got, row.row * strides.row, strides.head, q_, operands_.q_strides, row,
              problem_.heads, problem_.dim_qk, true, "Q");
    }
    if (operands_.q != operands_.rotated_q) {
      got = fetch(rotated_q_.data, rotated_q_.bits.size());
      for (const AppendedRow& row : rows_) {
        if (!row.rotates_q) continue;
        for (std::int64_t h = 0; h < problem_.heads; ++h) {
          std::fill_n(got.begin() + row.row * operands_.rotated_q_strides.row +
                          h * operands_.rotated_q_strides.head,
                      problem_.dim_qk, kUntouched);
        }
      }
      if (got != rotated_q_.bits && wrong.empty()) wrong = "rows of rotated_q that are nobody's";
    }
  }
  std::vector<std::uint16_t> k = fetch(k_.data, k_.bits.size());
  std::vector<std::uint16_t> own_v = fetch(v_.data == nullptr ? k_.data : v_.data, v_.bits.size());
  const bool together = v_.data == nullptr;
  std::vector<std::uint16_t>& v = together ? k : own_v;
  const std::int64_t v_begin =
      together ? static_cast<std::uint16_t*>(operands_.v) - static_cast<std::uint16_t*>(operands_.k)
               : 0;
  const auto place = [&](const KeyRow& at, const BatchStrides& strides) {
    return at.page * (problem_.page_rows > 0 ? strides.page : strides.row) + at.row * strides.row;
  };
  for (const AppendedRow& row : rows_) {
    if (!row.k) continue;
    compare(&k, place(*row.k, operands_.k_strides), operands_.k_strides.head, new_k_,
            operands_.new_k_strides, row, problem_.kv_heads, problem_.dim_qk, true, "K");
    compare(&v, v_begin + place(row.v.value_or(*row.k), operands_.v_strides),
            operands_.v_strides.head, new_v_, operands_.new_v_strides, row, problem_.kv_heads,
            problem_.dim_v, false, "V");
  }
  if (wrong.empty() && k != k_.bits) wrong = "rows of K or V that are nobody's";
  if (wrong.empty() && own_v != v_.bits) wrong = "rows of V that are nobody's";
  return wrong;
}

}  // namespace annulus::test
