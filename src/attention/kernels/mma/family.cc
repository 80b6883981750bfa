// The family mma: cp.async and mma.sync, sm_80 and newer.

#include "attention/kernels/mma/family.h"

#include <algorithm>

#include "attention/kernels/mma/config.h"

namespace annulus::attention {
namespace {

constexpr ConfigField kFields[] = {
    {"warps", 'w', ConfigField::Form::kNumber, 32},
    {"stages", 's', ConfigField::Form::kNumber, 16, 1},
    {"query_in_registers", 'q', ConfigField::Form::kFlag, 1, 1},
    {"resident", 'x', ConfigField::Form::kOption, 32},
};

// The columns are M, N, warps, stages, Q in registers and resident CTAs. With 32 rows to a warp
// every fragment of K and V that is read from shared memory feeds two products instead of one, and
// these kernels are bound by shared memory. From head dim 192 on, the output alone takes the
// registers that this would need.
constexpr ShippedConfig kShipped[] = {
    {{32, 32}, MmaConfig{128, 64, 4, 2, false, 2}, Reach::kEvery},
    {{32, 32}, MmaConfig{64, 64, 4, 2, false, 4}, Reach::kEvery},
    {{32, 32}, MmaConfig{128, 128, 8, 2, false, 1}, Reach::kEvery},
    {{64, 64}, MmaConfig{256, 64, 8, 2, true, 1}, Reach::kEvery},
    {{64, 64}, MmaConfig{128, 64, 4, 2, false, 2}, Reach::kEvery},
    {{64, 64}, MmaConfig{64, 64, 4, 2, false, 3}, Reach::kEvery},
    {{64, 64}, MmaConfig{128, 128, 8, 2, false, 1}, Reach::kEvery},
    {{96, 96}, MmaConfig{256, 64, 8, 2, false, 1}, Reach::kEvery},
    {{96, 96}, MmaConfig{128, 32, 4, 2, false, 2}, Reach::kEvery},
    {{96, 96}, MmaConfig{64, 64, 4, 2, false, 2}, Reach::kEvery},
    {{96, 96}, MmaConfig{128, 64, 8, 2, false, 1}, Reach::kEvery},
    {{128, 128}, MmaConfig{128, 48, 4, 2, false, 2}, Reach::kEvery},
    {{128, 128}, MmaConfig{128, 32, 4, 2, false, 2}, Reach::kEvery},
    {{128, 128}, MmaConfig{64, 64, 4, 2, false, 2}, Reach::kEvery},
    {{128, 128}, MmaConfig{128, 64, 8, 2, false, 1}, Reach::kEvery},
    {{128, 128}, MmaConfig{64, 64, 4, 2, true, 2}, Reach::kEvery},
    {{128, 128}, MmaConfig{64, 32, 4, 2, true, 3}, Reach::kEvery},
    {{128, 128}, MmaConfig{128, 128, 8, 2, true, 1}, Reach::kLarge},
    {{192, 128}, MmaConfig{128, 64, 8, 2, false, 1}, Reach::kLarge},
    {{192, 128}, MmaConfig{128, 64, 8, 1, false, 1}, Reach::kEvery},
    {{192, 128}, MmaConfig{64, 64, 4, 1, false, 2}, Reach::kEvery},
    {{192, 192}, MmaConfig{128, 64, 8, 2, false, 1}, Reach::kLarge},
    {{192, 192}, MmaConfig{128, 64, 8, 1, false, 1}, Reach::kEvery},
    {{192, 192}, MmaConfig{64, 32, 4, 2, false, 2}, Reach::kEvery},
    {{256, 256}, MmaConfig{128, 64, 8, 1, false, 1}, Reach::kLarge},
    {{256, 256}, MmaConfig{128, 32, 8, 1, false, 1}, Reach::kEvery},
    {{256, 256}, MmaConfig{64, 32, 4, 2, false, 2}, Reach::kEvery},
};

// The widest tiles whose general kernels spill nothing.
constexpr ShippedConfig kGeneral[] = {
    {{32, 32}, MmaConfig{128, 64, 4, 2, false, 2}, Reach::kEvery},
    {{64, 64}, MmaConfig{128, 64, 4, 2, false, 2}, Reach::kEvery},
    {{96, 96}, MmaConfig{128, 32, 4, 2, false, 2}, Reach::kEvery},
    {{128, 128}, MmaConfig{64, 64, 4, 2, true, 2}, Reach::kEvery},
    {{192, 128}, MmaConfig{128, 64, 8, 1, false, 1}, Reach::kEvery},
    {{192, 192}, MmaConfig{64, 32, 4, 2, false, 2}, Reach::kEvery},
    {{256, 256}, MmaConfig{64, 32, 4, 2, false, 2}, Reach::kEvery},
};

// Whether a configuration may compute parts of rows. A tile of 48 columns with 32 rows to a warp
// has just enough registers for a band of whole rows.
bool can_split_rows(const KernelConfig& any) {
  const MmaConfig config = mma_config(any);
  return config.tile_columns != 48 || config.tile_rows != 32 * config.warps;
}

// Tiles of 64 rows for blocks of 16 to 112 columns, with Q in registers if there are enough. A tile
// has the columns of a block.
void mma_for_blocks(const AddCandidates& add) {
  for (const int columns : {16, 32}) add({{MmaConfig{64, columns, 4, 2, true, 3}}});
  add({{MmaConfig{64, 48, 4, 2, true, 2}}});
  for (const int columns : {80, 96, 112}) add({{MmaConfig{64, columns, 4, 1, true, 2}}});
  for (const int columns : {16, 32, 48, 80, 96, 112}) {
    add({{MmaConfig{64, columns, 4, 2, false, 2}}});
  }
}

// The family's copies take any strides.
std::optional<std::string> why_never_strided(const Problem&, const OperandStrides&) {
  return std::nullopt;
}

jit::KernelSpec spec(const KernelConfig& any, const KernelFeatures& features, jit::Arch arch) {
  using jit::Constant;
  const MmaConfig config = mma_config(any);
  const std::vector<Constant> tile = {
      Constant::integer("kTileRows", config.tile_rows),
      Constant::integer("kTileColumns", config.tile_columns),
      Constant::integer("kWarps", config.warps), Constant::integer("kResident", config.resident),
      Constant::boolean("kQueryInRegisters", config.query_in_registers)};
  return forward_spec("mma_forward", mma_family.source, config.stages, tile, features, arch);
}

Pace pace(const KernelConfig&) { return {}; }

LaunchShape shape(const KernelConfig& config, const Problem& problem, const WorkGroup&,
                  std::int64_t rows, int) {
  return {.grid_x = static_cast<unsigned>(rows),
          .grid_y = static_cast<unsigned>(problem.heads),
          .grid_z = static_cast<unsigned>(std::min(problem.batch, kMaxGridZ)),
          .threads = static_cast<unsigned>(threads(config)),
          .shared_bytes = shared_bytes(config, {problem.dim_qk, problem.dim_v})};
}

void bind(const BindRequest& request, BoundLaunch* launch) {
  launch->grid = {request.shape.grid_x, request.shape.grid_y,
                  static_cast<unsigned>(request.range.batches)};
  launch->arguments.add(request.parameters);
}

}  // namespace

constinit const Family mma_family = {
    ConfigFamily{.name = "mma",
                 .revision = 3,
                 .instructions = "cp.async and mma.sync run on",
                 .fields = kFields,
                 .why_illegal = mma_why_illegal,
                 .why_spills = mma_why_spills,
                 .enumerate = mma_enumerate,
                 .cta = mma_cta,
                 .footprint = mma_footprint},
    ProblemKernels{.source = "kernels/mma/mma_forward.cu",
                   .second_segment_rows = 1,
                   .shipped = kShipped,
                   .general = kGeneral,
                   .for_blocks = mma_for_blocks,
                   .supports_kv_splits = can_split_rows,
                   .why_unsuited = mma_why_unsuited,
                   .why_no_strides = why_never_strided,
                   .spec = spec,
                   .tile_work = mma_tile_work,
                   .row_work = mma_row_work,
                   .pace = pace,
                   .shape = shape,
                   .bind = bind},
};

}  // namespace annulus::attention
