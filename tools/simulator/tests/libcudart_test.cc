// The CUDA runtime, called as nvcc's host code and programs call it: by its symbols, and with fat
// binaries like those of nvcc.

#include <doctest/doctest.h>

#include <array>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "simulator/runtime/entries.h"

namespace annulus::simulator::runtime {

#define ENTRY(name, symbol, parameters) extern "C" Error symbol parameters;
#define ENTRY_PTSZ(name, symbol, parameters) \
  ENTRY(name, symbol, parameters)            \
  ENTRY(name, symbol##_ptsz, parameters)
#define ENTRY_PTDS(name, symbol, parameters) \
  ENTRY(name, symbol, parameters)            \
  ENTRY(name, symbol##_ptds, parameters)
#define FORWARD(name, symbol, driver_symbol, parameters) ENTRY(name, symbol, parameters)
#define FORWARD_PTSZ(name, symbol, driver_symbol, parameters) ENTRY_PTSZ(name, symbol, parameters)
#define ABSENT(symbol) extern "C" Error symbol();
#include "simulator/runtime/functions.def"

namespace {

constexpr const char* kPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .const .align 4 .b8 factor[4];
.visible .global .align 4 .b32 base = 100;
.visible .global .attribute(.managed) .align 4 .b32 both = 40;
.visible .entry scale(.param .u64 numbers, .param .u32 plus) {
  .reg .b64 %at, %offset;
  .reg .b32 %thread, %value, %more;
  ld.param.u64 %at, [numbers];
  ld.param.u32 %more, [plus];
  mov.u32 %thread, %tid.x;
  mul.wide.u32 %offset, %thread, 4;
  add.u64 %at, %at, %offset;
  ld.const.u32 %value, [factor];
  mad.lo.u32 %value, %value, %thread, %more;
  ld.global.u32 %more, [base];
  add.u32 %value, %value, %more;
  st.global.u32 [%at], %value;
  atom.global.add.u32 %more, [both], 1;
  ret;
}
)";

// The fat binary that nvcc puts into a program: a wrapper that leads to a header, one entry and its
// text.
struct FatBinary {
  explicit FatBinary(const std::string& ptx) : bytes(16 + 80 + ptx.size() + 1, '\0') {
    put<std::uint32_t>(0, 0xba55ed50);
    put<std::uint16_t>(4, 1);
    put<std::uint16_t>(6, 16);
    put<std::uint64_t>(8, 80 + ptx.size() + 1);
    put<std::uint16_t>(16, 1);
    put<std::uint32_t>(20, 80);
    put<std::uint64_t>(24, ptx.size() + 1);
    std::memcpy(bytes.data() + 96, ptx.data(), ptx.size());
    wrapper.data = bytes.data();
  }
  template <typename T>
  void put(std::size_t at, T value) {
    std::memcpy(bytes.data() + at, &value, sizeof(T));
  }
  std::string bytes;
  struct {
    std::uint32_t magic = 0x466243b1;
    std::uint32_t version = 1;
    const void* data = nullptr;
    void* more = nullptr;
  } wrapper;
};

// The host side of a kernel and two variables in a program. Their addresses identify them.
struct Program {
  explicit Program(const std::string& ptx = kPtx) : image(ptx) {
    handle = __cudaRegisterFatBinary(&image.wrapper);
    __cudaRegisterFunction(handle, &kernel, &kernel, "scale", -1, nullptr, nullptr, nullptr,
                           nullptr, nullptr);
    __cudaRegisterVar(handle, &factor, &factor, "factor", 0, 4, 1, 0);
    __cudaRegisterVar(handle, &base, &base, "base", 0, 4, 0, 0);
    __cudaRegisterManagedVar(handle, &both, reinterpret_cast<char*>(&both), "both", 0, 4, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
  }
  ~Program() { unregister(); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  void unregister() {
    if (handle != nullptr) __cudaUnregisterFatBinary(handle);
    handle = nullptr;
  }

  // kernel<<<1, threads, 0, stream>>>(numbers, plus)
  Error run(void* numbers, unsigned plus, unsigned threads = 32, CUstream stream = nullptr) {
    if (__cudaPushCallConfiguration({}, {threads, 1, 1}, 0, stream) != 0) return cudaErrorUnknown;
    Dim3 grid, block;
    std::size_t shared = 0;
    CUstream on = nullptr;
    Kernel* found = nullptr;
    __cudaGetKernel(&found, &kernel);
    if (const Error code = __cudaPopCallConfiguration(&grid, &block, &shared, &on)) return code;
    void* parameters[] = {&numbers, &plus};
    return __cudaLaunchKernel(found, grid, block, parameters, shared, on);
  }

  FatBinary image;
  void** handle = nullptr;
  char kernel = 0, factor = 0, base = 0;
  void* both = nullptr;
};

struct Numbers {
  Numbers() { REQUIRE(cudaMalloc(&pointer, 128) == cudaSuccess); }
  ~Numbers() { cudaFree(pointer); }
  Numbers(const Numbers&) = delete;
  Numbers& operator=(const Numbers&) = delete;
  std::array<unsigned, 32> read() const {
    std::array<unsigned, 32> values{};
    CHECK(cudaMemcpy(values.data(), pointer, 128, kDeviceToHost) == cudaSuccess);
    return values;
  }
  void* pointer = nullptr;
};

TEST_CASE("a registered kernel and its variables") {
  Program program;
  const Numbers numbers;
  const unsigned three = 3, thousand = 1000;
  unsigned base = 0;
  CHECK(cudaMemcpyFromSymbol(&base, &program.base, 4, 0, kDeviceToHost) == cudaSuccess);
  CHECK(base == 100);
  CHECK(cudaMemcpyToSymbol(&program.factor, &three, 4, 0, kHostToDevice) == cudaSuccess);
  CHECK(program.run(numbers.pointer, 7) == cudaSuccess);
  CHECK(numbers.read()[5] == 3 * 5 + 7 + 100);
  CHECK(cudaMemcpyToSymbol_ptds(&program.base, &thousand, 4, 0, kByAddress) == cudaSuccess);
  void* parameters[] = {const_cast<void**>(&numbers.pointer), const_cast<unsigned*>(&three)};
  CHECK(cudaLaunchKernel_ptsz(&program.kernel, {}, {32, 1, 1}, parameters, 0, nullptr) ==
        cudaSuccess);
  CHECK(numbers.read()[31] == 3 * 31 + 3 + 1000);

  SUBCASE("a symbol has bounds and directions") {
    CHECK(cudaMemcpyToSymbol(&program.factor, &three, 4, 1, kHostToDevice) ==
          cudaErrorInvalidValue);
    CHECK(cudaMemcpyToSymbol(&program.factor, &three, 4, 0, kDeviceToHost) ==
          cudaErrorInvalidMemcpyDirection);
    CHECK(cudaMemcpyToSymbol(&numbers, &three, 4, 0, kHostToDevice) == cudaErrorInvalidSymbol);
    std::size_t bytes = 0;
    CHECK(cudaGetSymbolSize(&bytes, &program.factor) == cudaSuccess);
    CHECK(bytes == 4);
  }
  SUBCASE("a program that is gone has no kernels") {
    Kernel* kernel = nullptr;
    CHECK(cudaGetKernel(&kernel, &program.kernel) == cudaSuccess);
    program.unregister();
    CHECK(program.run(numbers.pointer, 0) == cudaErrorInvalidDeviceFunction);
    CHECK(cudaLaunchKernel(kernel, {}, {}, parameters, 0, nullptr) ==
          cudaErrorInvalidDeviceFunction);
  }
  SUBCASE("a kernel's attributes") {
    FunctionAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, &program.kernel) == cudaSuccess);
    CHECK(attributes.maxThreadsPerBlock == 1024);
    int blocks = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &program.kernel, 1024, 0) ==
          cudaSuccess);
    CHECK(blocks == 2);
    std::size_t bytes = 0;
    CHECK(cudaOccupancyAvailableDynamicSMemPerBlock(&bytes, &program.kernel, 5, 128) ==
          cudaSuccess);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &program.kernel, 128, bytes) ==
          cudaSuccess);
    CHECK(blocks == 5);
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, &program.kernel, 128, bytes + 1) ==
          cudaSuccess);
    CHECK(blocks == 4);
    const char* name = nullptr;
    CHECK(cudaFuncGetName(&name, &program.kernel) == cudaSuccess);
    CHECK(std::string(name) == "scale");
  }
}

TEST_CASE("a managed variable is the host's as well") {
  Program program;
  const Numbers numbers;
  CHECK(__cudaInitModule(program.handle) == 1);
  REQUIRE(program.both != nullptr);
  auto* const both = static_cast<unsigned*>(program.both);
  CHECK(*both == 40);
  *both = 1000;
  CHECK(program.run(numbers.pointer, 0) == cudaSuccess);
  CHECK(cudaDeviceSynchronize() == cudaSuccess);
  CHECK(*both == 1032);
  const unsigned two = 2;
  CHECK(cudaMemcpyToSymbol(both, &two, 4, 0, kHostToDevice) == cudaSuccess);
  CHECK(*both == 2);
}

TEST_CASE("shapes that no device has are an invalid configuration, other mistakes are not") {
  Program program;
  const Numbers numbers;
  CHECK(program.run(numbers.pointer, 0, 1025) == cudaErrorInvalidConfiguration);
  CHECK(program.run(numbers.pointer, 0, 0) == cudaErrorInvalidConfiguration);
  unsigned plus = 0;
  void* parameters[] = {const_cast<void**>(&numbers.pointer), &plus};
  CHECK(cudaLaunchKernel(&program.kernel, {1, 70000, 1}, {}, parameters, 0, nullptr) ==
        cudaErrorInvalidConfiguration);
  CHECK(cudaLaunchKernel(&program.kernel, {}, {}, parameters, 1 << 20, nullptr) ==
        cudaErrorInvalidValue);
  CHECK(cudaLaunchKernel(&numbers, {}, {}, parameters, 0, nullptr) ==
        cudaErrorInvalidDeviceFunction);
  Dim3 shape;
  std::size_t bytes = 0;
  CUstream stream = nullptr;
  CHECK(__cudaPopCallConfiguration(&shape, &shape, &bytes, &stream) ==
        cudaErrorMissingConfiguration);
  cudaGetLastError();
}

TEST_CASE("the last error is the thread's, and is told once") {
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(cudaMalloc(nullptr, 4) == cudaErrorInvalidValue);
  CHECK(cudaSetDevice(99) == cudaErrorInvalidDevice);
  std::thread([] { CHECK(cudaGetLastError() == cudaSuccess); }).join();
  CHECK(cudaPeekAtLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaErrorInvalidDevice);
  CHECK(cudaGetLastError() == cudaSuccess);
  CHECK(std::string(cudaGetErrorName(2)) == "cudaErrorMemoryAllocation");
  CHECK(std::string(cudaGetErrorString(719)) == "unspecified launch failure");
  CHECK(std::string(cudaGetErrorName(12345)) == "unrecognized error code");
}

TEST_CASE("a fault loses the context until the device is reset, on every thread") {
  Program program;
  void* numbers = nullptr;
  CHECK(cudaMalloc(&numbers, 64) == cudaSuccess);
  std::thread([&] {
    CHECK(program.run(numbers, 0) == cudaSuccess);  // 32 numbers, but there is room for 16
    CHECK(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaGetLastError() == cudaErrorIllegalAddress);
    CHECK(cudaMalloc(&numbers, 64) == cudaErrorIllegalAddress);
    CHECK(cudaDeviceReset() == cudaSuccess);
    CHECK(cudaGetLastError() == cudaSuccess);
  }).join();
  const Numbers fresh;
  CHECK(program.run(fresh.pointer, 1) == cudaSuccess);
  CHECK(fresh.read()[0] == 101);
}

TEST_CASE("code that the device does not run is an error of the launch") {
  std::string newer = kPtx;
  newer.replace(newer.find("sm_80"), 5, "sm_99");
  Program program(newer);
  const Numbers numbers;
  CHECK(program.run(numbers.pointer, 0) == cudaErrorNoKernelImageForDevice);
  CHECK(program.run(numbers.pointer, 0) == cudaErrorNoKernelImageForDevice);
  cudaGetLastError();
}

TEST_CASE("a kernel that is first launched under capture is loaded there") {
  Program program;
  const Numbers numbers;
  CHECK(cudaMemset(numbers.pointer, 0, 128) == cudaSuccess);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  CUgraphExec exec = nullptr;
  CHECK(cudaStreamCreate(&stream) == cudaSuccess);
  CHECK(cudaStreamBeginCapture(stream, 0) == cudaSuccess);
  CHECK(program.run(numbers.pointer, 5, 32, stream) == cudaSuccess);
  CHECK(cudaStreamEndCapture(stream, &graph) == cudaSuccess);
  CHECK(numbers.read()[0] == 0);
  CHECK(cudaGraphInstantiate(&exec, graph, 0) == cudaSuccess);
  CHECK(cudaGraphLaunch_ptsz(exec, stream) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(numbers.read()[0] == 105);
  CHECK(cudaGraphExecDestroy(exec) == cudaSuccess);
  CHECK(cudaGraphDestroy(graph) == cudaSuccess);
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("libraries hold kernels and variables by name") {
  Image* library = nullptr;
  Kernel* kernel = nullptr;
  {
    const FatBinary image(kPtx);  // destroyed after the load
    CHECK(cudaLibraryLoadData(&library, &image.wrapper, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          cudaSuccess);
  }
  CHECK(cudaLibraryGetKernel(&kernel, library, "none") == cudaErrorSymbolNotFound);
  CHECK(cudaLibraryGetKernel(&kernel, library, "scale") == cudaSuccess);
  void* base = nullptr;
  std::size_t bytes = 0;
  CHECK(cudaLibraryGetGlobal(&base, &bytes, library, "base") == cudaSuccess);
  CHECK(bytes == 4);
  const unsigned zero = 0;
  CHECK(cudaMemcpyAsync(base, &zero, 4, kHostToDevice, nullptr) == cudaSuccess);
  Numbers numbers;
  unsigned plus = 9;
  void* parameters[] = {&numbers.pointer, &plus};
  CHECK(cudaLaunchKernel(kernel, {}, {32, 1, 1}, parameters, 0, nullptr) == cudaSuccess);
  CHECK(numbers.read()[3] == 9);
  CHECK(cudaLibraryUnload(library) == cudaSuccess);
  CHECK(cudaLibraryUnload(library) == cudaErrorInvalidResourceHandle);
  CHECK(cudaLaunchKernel(kernel, {}, {}, parameters, 0, nullptr) == cudaErrorInvalidDeviceFunction);
  CHECK(cudaLibraryLoadData(&library, "nonsense", nullptr, nullptr, 0, nullptr, nullptr, 0) ==
        cudaErrorInvalidKernelImage);
  cudaGetLastError();
}

TEST_CASE("devices") {
  int count = 0, device = -1, value = 0;
  CHECK(cudaGetDeviceCount(&count) == cudaSuccess);
  REQUIRE(count >= 9);
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 0);
  DeviceProperties properties;
  CHECK(cudaGetDeviceProperties(&properties, 8) == cudaSuccess);
  CHECK(properties.major == 9);
  CHECK(properties.multiProcessorCount == 132);
  CHECK(properties.sharedMemPerBlockOptin == 232448);
  CHECK(properties.maxGridSize[1] == 65535);
  CHECK(cudaDeviceGetAttribute(&value, 16, 8) == cudaSuccess);
  CHECK(value == 132);
  DeviceProperties wanted{};
  wanted.major = 9;
  CHECK(cudaChooseDevice(&device, &wanted) == cudaSuccess);
  CHECK(device == 8);
  char id[32] = {};
  CHECK(cudaDeviceGetPCIBusId(id, sizeof(id), 3) == cudaSuccess);
  CHECK(cudaDeviceGetByPCIBusId(&device, id) == cudaSuccess);
  CHECK(device == 3);
  std::thread([] {
    int mine = -1;
    CHECK(cudaSetDevice(8) == cudaSuccess);
    CHECK(cudaGetDevice(&mine) == cudaSuccess);
    CHECK(mine == 8);
    void* there = nullptr;
    PointerAttributes attributes;
    CHECK(cudaMalloc(&there, 64) == cudaSuccess);
    CHECK(cudaPointerGetAttributes(&attributes, there) == cudaSuccess);
    CHECK(attributes.device == 8);
    CHECK(attributes.type == kDeviceMemory);
    CHECK(cudaFree(there) == cudaSuccess);
  }).join();
  CHECK(cudaGetDevice(&device) == cudaSuccess);
  CHECK(device == 0);
}

TEST_CASE("memory: nothing, the host's own, pitched") {
  void* pointer = &pointer;
  CHECK(cudaMalloc(&pointer, 0) == cudaSuccess);
  CHECK(pointer == nullptr);
  CHECK(cudaFree(nullptr) == cudaSuccess);
  int local = 0, other = 5;
  CHECK(cudaFree(&local) == cudaErrorInvalidValue);
  PointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, &local) == cudaSuccess);
  CHECK(attributes.type == kUnregistered);
  CHECK(attributes.hostPointer == &local);
  CHECK(cudaMemcpy(&local, &other, 4, kByAddress) == cudaSuccess);
  CHECK(local == 5);
  CHECK(cudaMemcpy(&local, &other, 4, 5) == cudaErrorInvalidMemcpyDirection);
  std::size_t pitch = 0;
  CHECK(cudaMallocPitch(&pointer, &pitch, 100, 3) == cudaSuccess);
  CHECK(pitch == 512);
  CHECK(cudaMemset(pointer, 1, 3 * pitch) == cudaSuccess);
  CHECK(cudaFree(pointer) == cudaSuccess);
  PitchedPointer box;
  CHECK(cudaMalloc3D(&box, {600, 4, 2}) == cudaSuccess);
  CHECK(box.pitch == 1024);
  CHECK(box.ysize == 4);
  CHECK(cudaFree(box.ptr) == cudaSuccess);
  CHECK(cudaMallocPitch(&pointer, &pitch, 1 << 20, ~std::size_t{0}) == cudaErrorMemoryAllocation);
  cudaGetLastError();
}

TEST_CASE("callbacks come behind the work of their stream") {
  CUstream stream = nullptr;
  CHECK(cudaStreamCreateWithFlags(&stream, 1) == cudaSuccess);
  std::vector<CUstream> told;
  const auto tell = [](CUstream on, Error status, void* data) {
    if (status == cudaSuccess) static_cast<std::vector<CUstream>*>(data)->push_back(on);
  };
  CHECK(cudaStreamAddCallback(stream, tell, &told, 0) == cudaSuccess);
  CHECK(cudaLaunchHostFunc(
            stream, [](void* data) { static_cast<std::vector<CUstream>*>(data)->push_back({}); },
            &told) == cudaSuccess);
  CHECK(cudaStreamSynchronize(stream) == cudaSuccess);
  CHECK(told == std::vector<CUstream>{stream, nullptr});
  CHECK(cudaStreamDestroy(stream) == cudaSuccess);
}

TEST_CASE("versions, and the driver's functions by name") {
  int version = 0, status = -1;
  CHECK(cudaRuntimeGetVersion(&version) == cudaSuccess);
  CHECK(version == 13000);
  CHECK(cudaDriverGetVersion(&version) == cudaSuccess);
  CHECK(version == 13000);
  void* function = nullptr;
  CHECK(cudaGetDriverEntryPointByVersion("cuMemAlloc", &function, 12000, 0, &status) ==
        cudaSuccess);
  CHECK(function != nullptr);
  CHECK(status == 0);
  CHECK(cudaGetDriverEntryPoint("cuNothing", &function, 0, &status) == cudaSuccess);
  CHECK(status == 1);
}

TEST_CASE("functions that are not there say so") {
  int count = 0;
#define ENTRY(name, symbol, parameters)
#define FORWARD(name, symbol, driver_symbol, parameters)
#define ABSENT(symbol)                                \
  CHECK(symbol() == cudaErrorNotSupported);           \
  CHECK(cudaGetLastError() == cudaErrorNotSupported); \
  ++count;
#include "simulator/runtime/functions.def"
  CHECK(count > 50);
}

}  // namespace
}  // namespace annulus::simulator::runtime
