#include "program/input/host_tensor.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/fail.h"
#include "base/half.h"
#include "base/random.h"
#include "base/safetensors.h"

namespace annulus::program {
namespace {

using base::TensorType;
using base::TensorView;

const char* order_text(Order order) {
  return order == Order::kBshd ? "[B, S, H, D]" : "[B, H, S, D]";
}

float element(const TensorView& view, std::size_t index) {
  if (view.type == TensorType::kF32) {
    float value = 0;
    std::memcpy(&value, view.bytes.data() + index * 4, 4);
    return value;
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, view.bytes.data() + index * 2, 2);
  return view.type == TensorType::kF16 ? base::fp16_to_float(bits) : base::bf16_to_float(bits);
}

const TensorView& find(const base::Safetensors& file, const std::string& path, const char* name) {
  const auto found = file.tensors.find(name);
  if (found == file.tensors.end()) {
    std::string names;
    for (const auto& [other, view] : file.tensors) names += (names.empty() ? "" : ", ") + other;
    base::fail(ErrorCode::kInvalidFile,
               "{} has no tensor '{}'; it holds {}; rename them to q, k, v", path, name,
               names.empty() ? "none" : names);
  }
  const TensorView& view = found->second;
  if (view.type != TensorType::kF16 && view.type != TensorType::kBF16 &&
      view.type != TensorType::kF32) {
    base::fail(ErrorCode::kInvalidFile, "tensor '{}' of {} is {}; store it as F16, BF16 or F32",
               name, path, base::to_string(view.type));
  }
  if (view.shape.size() != 4) {
    base::fail(ErrorCode::kInvalidFile,
               "tensor '{}' of {} has {} dimensions; it must have four, [B, S, H, D] or "
               "[B, H, S, D]",
               name, path, view.shape.size());
  }
  return view;
}

// Converts to `dtype`. *overflowed counts the finite values that become infinite in `dtype`.
HostTensor convert(const TensorView& view, Order order, Dtype dtype, std::int64_t* overflowed) {
  const bool bshd = order == Order::kBshd;
  HostTensor tensor = make_tensor(view.shape[0], view.shape[bshd ? 1 : 2], view.shape[bshd ? 2 : 1],
                                  view.shape[3], order);
  const bool same = (view.type == TensorType::kF16 && dtype == Dtype::kFloat16) ||
                    (view.type == TensorType::kBF16 && dtype == Dtype::kBfloat16);
  if (same) {
    if (!tensor.bits.empty()) {
      std::memcpy(tensor.bits.data(), view.bytes.data(), tensor.bytes());
    }
    return tensor;
  }
  for (std::size_t i = 0; i < tensor.bits.size(); ++i) {
    const float value = element(view, i);
    tensor.bits[i] = base::from_float(dtype, value);
    *overflowed += std::isfinite(value) && !std::isfinite(base::to_float(dtype, tensor.bits[i]));
  }
  return tensor;
}

// "F16", or "F16, BF16 and F32" if the dtypes of q, k and v differ.
std::string stored_text(const TensorView& q, const TensorView& k, const TensorView& v) {
  if (q.type == k.type && q.type == v.type) return base::to_string(q.type);
  return fmt::format("{}, {} and {}", base::to_string(q.type), base::to_string(k.type),
                     base::to_string(v.type));
}

// Without this check, a file of NumPy would only be reported as damaged.
void check_is_not_numpy(base::FileSystem& files, const std::string& path) {
  const int file = files.open(base::kHere, path, O_RDONLY | O_NONBLOCK, 0);
  if (file < 0) return;  // the later read reports the error
  char begin[6] = {};
  const std::int64_t count = files.read(file, begin, sizeof(begin));
  files.close(file);
  const std::string_view text(begin, count < 0 ? 0 : static_cast<std::size_t>(count));
  const bool npy = text.starts_with("\x93NUMPY");
  if (!npy && !text.starts_with("PK\x03\x04")) return;
  base::fail(ErrorCode::kInvalidFile,
             "{} is {}; store q, k and v with safetensors.numpy.save_file({{'q': q, 'k': k, 'v': "
             "v}}, 'x.safetensors')",
             path, npy ? "a NumPy array (.npy)" : "an archive, such as NumPy's .npz");
}

}  // namespace

HostTensor make_tensor(std::int64_t batch, std::int64_t rows, std::int64_t heads, std::int64_t dim,
                       Order order) {
  HostTensor tensor;
  tensor.batch = batch;
  tensor.rows = rows;
  tensor.heads = heads;
  tensor.dim = dim;
  tensor.order = order;
  tensor.bits.resize(static_cast<std::size_t>(batch * rows * heads * dim));
  return tensor;
}

void fill_normal(HostTensor& tensor, Dtype dtype, std::uint64_t seed) {
  base::Random random(seed);
  for (std::uint16_t& bits : tensor.bits) bits = base::from_float(dtype, random.normal());
}

HostTensor quantise(const HostTensor& tensor, Dtype dtype, std::int64_t rows) {
  constexpr float kLargest = 448;
  HostTensor to = tensor;
  to.bits.clear();
  to.float8.resize(tensor.bits.size());
  const Strides strides = tensor.strides();
  const std::int64_t block = rows == 0 ? std::max<std::int64_t>(tensor.rows, 1) : rows;
  for (std::int64_t b = 0; b < tensor.batch; ++b) {
    for (std::int64_t head = 0; head < tensor.heads; ++head) {
      // A head without rows has one scale as well.
      for (std::int64_t first = 0; first < tensor.rows || (rows == 0 && first == 0);
           first += block) {
        const auto each = [&](auto&& visit) {
          for (std::int64_t row = first; row < std::min(first + block, tensor.rows); ++row) {
            const std::int64_t at = b * strides.batch + head * strides.head + row * strides.row;
            for (std::int64_t d = 0; d < tensor.dim; ++d) visit(static_cast<std::size_t>(at + d));
          }
        };
        float most = 0;
        each([&](std::size_t at) {
          const float value = std::abs(base::to_float(dtype, tensor.bits[at]));
          if (std::isfinite(value)) most = std::max(most, value);
        });
        const float scale = most / kLargest;
        to.scales.push_back(scale);
        each([&](std::size_t at) {
          const float value = base::to_float(dtype, tensor.bits[at]);
          to.float8[at] = base::float_to_e4m3(scale > 0 ? value / scale : value);
        });
      }
    }
  }
  return to;
}

LoadedTensors load_tensors(const std::string& path, Order order, Dtype convert_to, bool force) {
  base::FileSystem files;
  check_is_not_numpy(files, path);
  const base::Safetensors file = base::read_safetensors(files, path);
  const TensorView& q = find(file, path, "q");
  const TensorView& k = find(file, path, "k");
  const TensorView& v = find(file, path, "v");
  LoadedTensors loaded;
  loaded.stored_as = stored_text(q, k, v);
  loaded.dtype = convert_to;
  if (!force && q.type == TensorType::kF16) loaded.dtype = Dtype::kFloat16;
  if (!force && q.type == TensorType::kBF16) loaded.dtype = Dtype::kBfloat16;
  loaded.q = convert(q, order, loaded.dtype, &loaded.overflowed);
  loaded.k = convert(k, order, loaded.dtype, &loaded.overflowed);
  loaded.v = convert(v, order, loaded.dtype, &loaded.overflowed);
  const auto differ = [&](const char* what, std::int64_t a, const char* name, std::int64_t b) {
    if (a == b) return;
    base::fail(ErrorCode::kInvalidFile,
               "{}: q and {} read as {} have {} and {} {}; is the order of the dimensions another "
               "one (--layout)?",
               path, name, order_text(order), a, b, what);
  };
  // K and V with one batch serve all batches of Q.
  const bool shared = loaded.q.batch > 1 && loaded.k.batch == 1 && loaded.v.batch == 1;
  loaded.k.is_shared = loaded.v.is_shared = shared;
  if (!shared) {
    differ("batches", loaded.q.batch, "k", loaded.k.batch);
    differ("batches", loaded.q.batch, "v", loaded.v.batch);
  }
  differ("head dims", loaded.q.dim, "k", loaded.k.dim);
  if (loaded.k.rows != loaded.v.rows || loaded.k.heads != loaded.v.heads) {
    base::fail(ErrorCode::kInvalidFile,
               "{}: k has {} rows of {} heads, v has {} of {}; they must be the same", path,
               loaded.k.rows, loaded.k.heads, loaded.v.rows, loaded.v.heads);
  }
  return loaded;
}

void save_output(const std::string& path, const HostTensor& o, Dtype dtype,
                 const std::vector<float>& lse) {
  base::FileSystem files;
  const bool bshd = o.order == Order::kBshd;
  std::vector<base::NamedTensor> tensors(1);
  tensors[0].name = "o";
  tensors[0].tensor.type = dtype == Dtype::kFloat16 ? TensorType::kF16 : TensorType::kBF16;
  tensors[0].tensor.shape = {o.batch, bshd ? o.rows : o.heads, bshd ? o.heads : o.rows, o.dim};
  tensors[0].tensor.bytes = std::as_bytes(std::span(o.bits));
  if (!lse.empty()) {
    base::NamedTensor tensor;
    tensor.name = "lse";
    tensor.tensor.type = TensorType::kF32;
    tensor.tensor.shape = {o.batch, o.heads, o.rows};
    tensor.tensor.bytes = std::as_bytes(std::span(lse));
    tensors.push_back(std::move(tensor));
  }
  base::write_safetensors(files, path, tensors,
                          {{"producer", "annulus run"}, {"layout", order_text(o.order)}});
}

}  // namespace annulus::program
