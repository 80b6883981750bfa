#ifndef ANNULUS_SUPPORT_IDLE_LAUNCHES_H_
#define ANNULUS_SUPPORT_IDLE_LAUNCHES_H_

// A driver table around another one. While `idle` is set, the calls of a run return at once and do
// nothing, so a run takes only the time of the library's own code. Planning uses the wrapped
// driver.
//
//   const abi::CudaTable table = IdleLaunches::wrap(test::simulator_table());
//   IdleLaunches::idle = true;
//
// Only one such table can exist at a time, because the functions of a table have no object.

#include "abi/cuda_table.h"

namespace annulus::test {

struct IdleLaunches {
  static inline abi::CudaTable below;
  static inline bool idle = false;
  static inline bool current = false;  // while idle: whether the thread appears to have a context
  static inline thread_local long launches = 0;  // launches by this thread
  static inline thread_local long context_calls = 0;

  static abi::CudaTable wrap(const abi::CudaTable& table) {
    below = table;
    idle = current = false;
    abi::CudaTable wrapped = table;
    wrapped.ctx_get_current = [](abi::CUcontext* context) -> abi::CUresult {
      if (!idle) return below.ctx_get_current(context);
      ++context_calls;
      *context = current ? context_ : nullptr;
      return abi::kCudaSuccess;
    };
    wrapped.ctx_push_current = [](abi::CUcontext context) -> abi::CUresult {
      context_ = context;
      if (!idle) return below.ctx_push_current(context);
      ++context_calls;
      return abi::kCudaSuccess;
    };
    wrapped.ctx_pop_current = [](abi::CUcontext* context) -> abi::CUresult {
      if (!idle) return below.ctx_pop_current(context);
      ++context_calls;
      return abi::kCudaSuccess;
    };
    // A driver without tensor maps keeps its null pointer, from which the library detects it.
    if (below.tensor_map_encode_tiled != nullptr) {
      wrapped.tensor_map_encode_tiled = [](auto... arguments) -> abi::CUresult {
        return idle ? abi::kCudaSuccess : below.tensor_map_encode_tiled(arguments...);
      };
    }
    wrapped.event_record = [](abi::CUevent event, abi::CUstream stream) -> abi::CUresult {
      return idle ? abi::kCudaSuccess : below.event_record(event, stream);
    };
    wrapped.stream_is_capturing = [](abi::CUstream stream, int* status) -> abi::CUresult {
      if (!idle) return below.stream_is_capturing(stream, status);
      *status = 0;
      return abi::kCudaSuccess;
    };
    wrapped.stream_wait_event = [](abi::CUstream stream, abi::CUevent event,
                                   unsigned flags) -> abi::CUresult {
      return idle ? abi::kCudaSuccess : below.stream_wait_event(stream, event, flags);
    };
    wrapped.memcpy_peer_async = [](abi::CUdeviceptr to, abi::CUcontext to_context,
                                   abi::CUdeviceptr from, abi::CUcontext from_context,
                                   std::size_t bytes, abi::CUstream stream) -> abi::CUresult {
      if (idle) return abi::kCudaSuccess;
      return below.memcpy_peer_async(to, to_context, from, from_context, bytes, stream);
    };
    wrapped.memcpy_dtod_async = [](abi::CUdeviceptr to, abi::CUdeviceptr from, std::size_t bytes,
                                   abi::CUstream stream) -> abi::CUresult {
      return idle ? abi::kCudaSuccess : below.memcpy_dtod_async(to, from, bytes, stream);
    };
    wrapped.memset_d32_async = [](abi::CUdeviceptr to, unsigned value, std::size_t count,
                                  abi::CUstream stream) -> abi::CUresult {
      return idle ? abi::kCudaSuccess : below.memset_d32_async(to, value, count, stream);
    };
    wrapped.launch_kernel = [](abi::CUfunction function, unsigned grid_x, unsigned grid_y,
                               unsigned grid_z, unsigned block_x, unsigned block_y,
                               unsigned block_z, unsigned shared, abi::CUstream stream,
                               void** parameters, void** extra) -> abi::CUresult {
      ++launches;
      if (idle) return abi::kCudaSuccess;
      return below.launch_kernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z,
                                 shared, stream, parameters, extra);
    };
    return wrapped;
  }

 private:
  static inline abi::CUcontext context_ = nullptr;  // the context that was pushed last
};

}  // namespace annulus::test

#endif  // ANNULUS_SUPPORT_IDLE_LAUNCHES_H_
