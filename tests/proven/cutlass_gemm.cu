// CUTLASS's warp-specialised GEMMs for sm_90a with its own adapter: D = A B, A row-major, B
// column-major, D column-major.
//
// VARIANT 0: f16, ping-pong, clusters 2 x 1; 1: f16, cooperative, clusters 4 x 2; 2: f32 operands
// rounded to tf32, as its example 48 has it; 3: f16, tiles 32 deep, so rows of 64 bytes;
// 4: f16, tiles 16 deep, so rows of 32 bytes; 5: e4m3 with fast accumulation, clusters 2 x 1;
// 6: f16 accumulators.
#include <cutlass/cutlass.h>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/gemm/kernel/tile_scheduler.hpp>
#include <cutlass/util/packed_stride.hpp>

#include "support.h"

using cute::_1, cute::_2, cute::_4, cute::_64, cute::_128;
using cute::Int, cute::Shape;
namespace collective = cutlass::gemm::collective;
namespace kernel = cutlass::gemm;

constexpr bool kTf32 = VARIANT == 2, kFp8 = VARIANT == 5;
using Element =
    std::conditional_t<kTf32, float,
                       std::conditional_t<kFp8, cutlass::float_e4m3_t, cutlass::half_t>>;
using Result = std::conditional_t<kTf32, float, cutlass::half_t>;
using Accumulator = std::conditional_t<VARIANT == 6, cutlass::half_t, float>;
constexpr int kDepth = VARIANT == 3 ? 32 : VARIANT == 4 ? 16 : kTf32 ? 32 : kFp8 ? 128 : 64;
using Tile = Shape<std::conditional_t<VARIANT == 0, _64, _128>, _128, Int<kDepth>>;
using Cluster = std::conditional_t<
    VARIANT == 1 || kTf32, Shape<_4, _2, _1>,
    std::conditional_t<VARIANT == 0 || kFp8, Shape<_2, _1, _1>, Shape<_1, _1, _1>>>;
using Schedule = std::conditional_t<
    VARIANT == 0, kernel::KernelTmaWarpSpecializedPingpong,
    std::conditional_t<kFp8, kernel::KernelTmaWarpSpecializedCooperativeFP8FastAccum,
                       std::conditional_t<kTf32, collective::KernelScheduleAuto,
                                          kernel::KernelTmaWarpSpecializedCooperative>>>;
using EpilogueSchedule = std::conditional_t<
    VARIANT == 0, cutlass::epilogue::TmaWarpSpecialized,
    std::conditional_t<kTf32, cutlass::epilogue::collective::EpilogueScheduleAuto,
                       cutlass::epilogue::TmaWarpSpecializedCooperative>>;
constexpr int kAlign = 16 / sizeof(Element), kAlignResult = 16 / sizeof(Result);

using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Tile, Cluster,
    cutlass::epilogue::collective::EpilogueTileAuto, Accumulator, float, void,
    cutlass::layout::ColumnMajor, kAlignResult, Result, cutlass::layout::ColumnMajor, kAlignResult,
    EpilogueSchedule>::CollectiveOp;
using Mainloop = typename collective::CollectiveBuilder<
    cutlass::arch::Sm90, cutlass::arch::OpClassTensorOp, Element, cutlass::layout::RowMajor, kAlign,
    Element, cutlass::layout::ColumnMajor, kAlign, Accumulator, Tile, Cluster,
    collective::StageCountAutoCarveout<int(sizeof(typename Epilogue::SharedStorage))>,
    Schedule>::CollectiveOp;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<
    cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int>, Mainloop, Epilogue>>;

int main(int argc, char** argv) {
  proven::use_device(9);
  const int m = proven::argument(argc, argv, "--m", 512);
  const int n = proven::argument(argc, argv, "--n", 384);
  const int k = proven::argument(argc, argv, "--k", 544);
  proven::Array<Element> a(size_t(m) * k), b(size_t(n) * k);
  proven::Array<Result> d(size_t(m) * n);
  a.normal(1), b.normal(2);

  auto stride = [](auto type, int rows, int columns) {
    return cutlass::make_cute_packed_stride(type, cute::make_shape(rows, columns, 1));
  };
  using Kernel = typename Gemm::GemmKernel;
  cutlass::KernelHardwareInfo hardware;
  proven::check(cudaGetDevice(&hardware.device_id), "cudaGetDevice");
  hardware.sm_count =
      cutlass::KernelHardwareInfo::query_device_multiprocessor_count(hardware.device_id);
  typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm,
                                     {m, n, k},
                                     {a.device, stride(typename Kernel::StrideA{}, m, k), b.device,
                                      stride(typename Kernel::StrideB{}, n, k)},
                                     {{},
                                      nullptr,
                                      stride(typename Kernel::StrideC{}, m, n),
                                      d.device,
                                      stride(typename Kernel::StrideD{}, m, n)},
                                     hardware};
  arguments.epilogue.thread.alpha = 1, arguments.epilogue.thread.beta = 0;

  Gemm gemm;
  proven::Array<uint8_t> workspace(Gemm::get_workspace_size(arguments));
  auto done = [](cutlass::Status status, const char* what) {
    if (status == cutlass::Status::kSuccess) return;
    printf("FAILED %s: %s\n", what, cutlass::cutlassGetStatusString(status));
    proven::check(cudaGetLastError(), what);
    exit(2);
  };
  done(gemm.can_implement(arguments), "can_implement");
  done(gemm.initialize(arguments, workspace.device), "initialize");
  done(gemm.run(), "run");
  proven::finish_launch("GemmUniversal");

  d.download();
  proven::Answer answer;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < m; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l)
        sum += double(float(a.host[size_t(i) * k + l])) * float(b.host[size_t(j) * k + l]);
      answer.add(float(d.host[size_t(j) * m + i]), sum);
    }
  // tf32 keeps 10 bits of each operand's fraction. A product of 544 such terms has a smaller error.
  // An accumulator of f16 loses 11 bits at each of its 34 steps.
  return answer.finish(VARIANT == 6 ? 0.05 : proven::kBoundF16);
}
