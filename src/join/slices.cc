#include "join/slices.h"

#include "base/math.h"

namespace annulus::join {
namespace {

std::int64_t length(const SliceRange& range) { return range.end - range.begin; }

jit::KernelSpec move_spec(bool states, bool packs, jit::Arch arch) {
  jit::Struct shape;
  shape.name = "Shape";
  shape.constants = {jit::Constant::boolean("kPacks", packs),
                     jit::Constant::boolean("kStates", states)};
  return {.family = "move_slices",
          .arch = arch,
          .file = "kernels/batch/move_slices.cu",
          .entry = "move_slices",
          .structs = {std::move(shape)}};
}

}  // namespace

Slice make_slice(const SliceForm& form, std::int64_t dim, std::int64_t rows, std::int64_t heads) {
  Slice slice = {rows, heads, 0, 0};
  slice.lse_at = rows * heads * dim * form.value_bytes;
  slice.bytes = base::round_up(slice.lse_at + rows * heads * 4 * form.numbers, kSliceAlignment);
  return slice;
}

Slices cut_slices(const SliceForm& form, std::int64_t dim, JoinedSlices cut, std::int64_t rows,
                  std::int64_t heads, int ranks) {
  Slices slices;
  for (int rank = 0; rank < ranks; ++rank) {
    Slice& slice = slices.of[static_cast<std::size_t>(rank)];
    if (cut == JoinedSlices::kRows) {
      slice = make_slice(form, dim, length(slice_of(rows, ranks, rank)), heads);
    } else if (cut == JoinedSlices::kHeads) {
      slice = make_slice(form, dim, rows, length(slice_of(heads, ranks, rank)));
    } else {
      slice = make_slice(form, dim, rows, heads);
      slices.bytes = slice.bytes;
      continue;
    }
    slices.begins[static_cast<std::size_t>(rank)] = slices.bytes;
    slices.bytes += slice.bytes;
  }
  return slices;
}

SliceMover::SliceMover(jit::KernelCache& kernels, jit::Arch arch, const SliceForm& form, bool packs)
    : form_(form), kernel_(kernels.get(move_spec(form.numbers == kStates.numbers, packs, arch))) {}

void SliceMover::run(device::LaunchSink& to, const Slices& slices, int count, bool of_rows,
                     char* memory, const WholeTensors& whole, std::int64_t rows, std::int64_t heads,
                     std::int64_t dim) const {
  kernels::SlicesParams params{};
  params.o = whole.values;
  params.lse = whole.lse;
  params.l = whole.l;
  params.o_row = whole.value_strides.row, params.o_head = whole.value_strides.head;
  params.lse_row = whole.lse_strides.row, params.lse_head = whole.lse_strides.head;
  params.slices = memory;
  params.count = count;
  for (int i = 0; i < count; ++i) {
    params.begins[i] = slices.begin(i);
    params.lses[i] = slices.at(i).lse_at;
  }
  params.of_rows = of_rows ? 1 : 0;
  params.rows = static_cast<int>(rows);
  params.heads = static_cast<int>(heads);
  params.chunks = static_cast<int>(dim * form_.value_bytes / 16);
  const std::int64_t ctas = base::ceil_div(rows * heads, std::int64_t{kernels::kMergeHeads});
  to.launch(kernel_.kernel->function, {static_cast<unsigned>(ctas)}, {kernels::kMergeThreads}, 0,
            params);
}

void gather_slices(const Slices& slices, int ranks, int rank, char* memory,
                   const Exchange& exchange) {
  std::array<SentBytes, kMaxMergeInputs> sends;
  std::array<ReceivedBytes, kMaxMergeInputs> receives;
  std::size_t sent = 0, received = 0;
  const Slice& own = slices.at(rank);
  for (int one = 0; one < ranks; ++one) {
    if (one == rank) continue;
    const Slice& theirs = slices.at(one);
    if (!own.empty()) {
      sends[sent++] = {one, memory + slices.begin(rank), static_cast<std::size_t>(own.bytes)};
    }
    if (!theirs.empty()) {
      receives[received++] = {one, memory + slices.begin(one),
                              static_cast<std::size_t>(theirs.bytes)};
    }
  }
  exchange({sends.data(), sent}, {receives.data(), received});
}

}  // namespace annulus::join
