#include <doctest/doctest.h>

#include <cstdlib>

#include <cstring>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "annulus/types.h"
#include "device/buffer.h"
#include "device/module.h"
#include "device/simulator.h"
#include "device/stream.h"
#include "support/context.h"
#include "support/kernels.h"

namespace annulus::device {
namespace {

using test::open_context;

ErrorCode code_of(const auto& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode{};
}

TEST_CASE("a device says what it is") {
  const ContextPointer context = open_context();
  const DeviceInfo& info = context->info();
  CHECK(info.compute_capability() >= 80);
  CHECK(info.warp_size == 32);
  CHECK(info.multiprocessors > 0);
  CHECK(info.shared_bytes_per_block == 49152);
  CHECK(info.shared_bytes_per_block_optin > info.shared_bytes_per_block);
  CHECK(info.memory_bytes > 0);
  CHECK(info.simulated == test::on_simulator());
  CHECK(list_devices(context->driver()).size() ==
        static_cast<std::size_t>(context->driver().device_count()));
  CHECK(code_of([&] { read_device_info(context->driver(), 1000); }) == ErrorCode::kInvalidArgument);
  CHECK(code_of([&] { read_device_info(context->driver(), -1); }) == ErrorCode::kInvalidArgument);
}

TEST_CASE("bytes survive the way to the device and back") {
  const ContextPointer context = open_context();
  std::vector<std::uint32_t> values(1000);
  std::iota(values.begin(), values.end(), 0u);
  const Buffer first = upload<std::uint32_t>(context, values);
  const Buffer second(context, first.bytes());
  const Stream stream(context);
  copy_peer_async(*context, second.address(), *context, first.address(), first.bytes(),
                  stream.handle());
  fill_words_async(*context, second.address() + 40, 7, 3, stream.handle());
  fill_bytes_async(*context, second.address() + 60, 0xff, 2, stream.handle());
  HostBuffer back(context, first.bytes());
  copy_to_host_async(*context, back.data(), second.address(), back.bytes(), stream.handle());
  stream.synchronize();
  CHECK(stream.done());
  values[10] = values[11] = values[12] = 7;
  values[15] = 15u | 0xffffu;
  CHECK(std::memcmp(back.data(), values.data(), back.bytes()) == 0);
}

// Copies are made in steps of 256 KiB. The parts begin and end, and leave gaps, on both sides of
// the ends of steps.
TEST_CASE("parts of an upload lie where they belong, and zeros between them") {
  constexpr std::size_t kStep = std::size_t{256} << 10;
  const ContextPointer context = open_context();
  for (const std::vector<std::pair<std::size_t, std::size_t>>& places :
       std::vector<std::vector<std::pair<std::size_t, std::size_t>>>{
           {},
           {{0, kStep}},
           {{3, 0}, {5, 7}, {20, 1}},
           {{kStep - 1, 2}},
           {{0, kStep}, {kStep, kStep}},
           {{10, 20}, {2 * kStep + 100, 5}},
           {{0, 100}, {256, 3 * kStep}, {3 * kStep + 512, 3}},
           {{4 * kStep, 1}}}) {
    const std::size_t bytes = 4 * kStep + 9;
    std::vector<unsigned char> expected(bytes, 0);
    std::vector<std::vector<unsigned char>> sources;
    std::vector<UploadPart> parts;
    for (const auto& [offset, size] : places) {
      CAPTURE(offset);
      sources.emplace_back(size);
      for (std::size_t i = 0; i < size; ++i) {
        sources.back()[i] = expected[offset + i] =
            static_cast<unsigned char>(1 + (offset + i) % 251);
      }
    }
    for (std::size_t i = 0; i < places.size(); ++i) {
      parts.push_back({places[i].first, std::as_bytes(std::span(sources[i]))});
    }
    const Buffer made = upload(context, bytes, parts, MemoryUse::kScratch);
    std::vector<unsigned char> back(bytes);
    copy_to_host(*context, back.data(), made.address(), bytes);
    CHECK(back == expected);
  }
}

TEST_CASE("memory that is released is free again, and moving does not release twice") {
  const ContextPointer context = open_context();
  const std::size_t before = context->memory().free_bytes;
  {
    Buffer first(context, 1 << 20);
    Buffer second = std::move(first);
    CHECK(first.address() == 0);
    Buffer third(context, 1 << 20);
    third = std::move(second);
    const Buffer empty(context, 0);
    CHECK(empty.address() == 0);
    CHECK(third.address() % 256 == 0);
    if (test::on_simulator()) CHECK(context->memory().free_bytes < before);
  }
  const ContextScope scope(*context);
  context->arena().trim(0);
  CHECK(context->arena().statistics().held_bytes == 0);
  if (test::on_simulator()) CHECK(context->memory().free_bytes == before);
}

TEST_CASE("too much memory is out of memory, with the numbers") {
  const ContextPointer context = open_context();
  try {
    const Buffer buffer(context, std::size_t{1} << 50);
    FAIL("allocated");
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::kOutOfMemory);
    CHECK(std::strstr(error.what(), "1125899906842624 bytes do not fit") != nullptr);
  }
}

TEST_CASE("a kernel runs on a stream, a caller's own stream and the default one") {
  const ContextPointer context = open_context();
  const ModulePointer module = Module::load(context, test::kKernels);
  const Function add = module->function("add");
  CHECK(add.attributes().max_threads_per_block >= 256);
  CHECK(add.blocks_per_multiprocessor(256, 0) >= 1);
  constexpr std::uint32_t kCount = 1000;
  std::vector<float> a(kCount), b(kCount), sum(kCount);
  for (std::uint32_t i = 0; i < kCount; ++i) {
    a[i] = static_cast<float>(i);
    b[i] = 0.5f * static_cast<float>(i);
  }
  const Buffer da = upload<float>(context, a);
  const Buffer db = upload<float>(context, b);
  const Stream ours(context);
  abi::CUstream theirs = nullptr;
  {
    const ContextScope scope(*context);
    REQUIRE(context->table().stream_create(&theirs, 0) == abi::kCudaSuccess);
  }
  for (const abi::CUstream stream : {ours.handle(), theirs, abi::CUstream{nullptr}}) {
    const Buffer dsum(context, kCount * sizeof(float));
    const abi::CUdeviceptr pointers[3] = {da.address(), db.address(), dsum.address()};
    launch(add, {4}, {256}, 0, stream, {&pointers[0], &pointers[1], &pointers[2], &kCount});
    synchronize(*context, stream);
    copy_to_host(*context, sum.data(), dsum.address(), dsum.bytes());
    for (std::uint32_t i = 0; i < kCount; ++i) REQUIRE(sum[i] == a[i] + b[i]);
  }
  const ContextScope scope(*context);
  CHECK(context->table().stream_destroy(theirs) == abi::kCudaSuccess);
}

TEST_CASE("events order streams and measure time") {
  const ContextPointer context = open_context();
  const Stream first(context);
  const Stream second(context);
  const Event start(context, Event::Timing::kOn);
  const Event end(context, Event::Timing::kOn);
  const Buffer buffer(context, 4096);
  start.record(first.handle());
  fill_bytes_async(*context, buffer.address(), 1, buffer.bytes(), first.handle());
  end.record(first.handle());
  wait(*context, second.handle(), end);
  second.synchronize();
  end.synchronize();
  CHECK(end.done());
  CHECK(elapsed_millis(*context, start, end) >= 0);
}

TEST_CASE("variables of a module are found by name, and what is missing is named") {
  const ContextPointer context = open_context();
  const ModulePointer module = Module::load(context, test::kKernels);
  const Module::Global table = module->global("table");
  REQUIRE(table.bytes == 16);
  std::uint32_t values[4] = {};
  copy_to_host(*context, values, table.address, table.bytes);
  CHECK(values[0] == 10);
  CHECK(values[3] == 40);
  CHECK(code_of([&] { module->function("subtract"); }) == ErrorCode::kDevice);
  CHECK(code_of([&] { module->global("chair"); }) == ErrorCode::kDevice);
}

TEST_CASE("an image that is no code is refused") {
  const ContextPointer context = open_context();
  CHECK(code_of([&] { Module::load(context, "this is no PTX"); }) == ErrorCode::kDevice);
  CHECK(code_of([&] { Module::load(context, ""); }) == ErrorCode::kDevice);
  CHECK(code_of([&] {
          Module::load(context, ".version 7.0\n.target sm_80\n.address_size 64\n.entry {");
        }) == ErrorCode::kDevice);
}

TEST_CASE("launches beyond the device's limits are refused and leave it usable") {
  const ContextPointer context = open_context();
  const ModulePointer module = Module::load(context, test::kKernels);
  const Function scale = module->function("scale");
  const std::vector<float> two = {2};
  const Buffer value = upload<float>(context, two);
  const abi::CUdeviceptr pointer = value.address();
  const float factor = 3;
  const auto run = [&](Extent grid, Extent block, std::size_t shared) {
    launch(scale, grid, block, shared, nullptr, {&pointer, &factor});
  };
  CHECK(code_of([&] { run({0}, {1}, 0); }) == ErrorCode::kDevice);
  CHECK(code_of([&] { run({1, 65536}, {1}, 0); }) == ErrorCode::kDevice);
  CHECK(code_of([&] { run({1}, {1025}, 0); }) == ErrorCode::kDevice);
  CHECK(code_of([&] { run({1}, {1, 1, 65}, 0); }) == ErrorCode::kDevice);
  CHECK(code_of([&] { run({1}, {32}, 60000); }) == ErrorCode::kDevice);
  CHECK(code_of([&] { scale.allow_dynamic_shared(std::size_t{1} << 40); }) ==
        ErrorCode::kInvalidArgument);
  scale.allow_dynamic_shared(60000);
  run({1}, {1}, 60000);
  synchronize(*context, nullptr);
  float result = 0;
  copy_to_host(*context, &result, value.address(), sizeof(result));
  CHECK(result == 6);
}

TEST_CASE("the calling thread's current context is left as it was") {
  const ContextPointer context = open_context();
  abi::CUcontext before = nullptr;
  REQUIRE(context->table().ctx_get_current(&before) == abi::kCudaSuccess);
  { const Buffer buffer(context, 100); }
  abi::CUcontext after = nullptr;
  REQUIRE(context->table().ctx_get_current(&after) == abi::kCudaSuccess);
  CHECK(before == after);
  const ContextScope outer(*context);
  { const ContextScope inner(*context); }
  REQUIRE(context->table().ctx_get_current(&after) == abi::kCudaSuccess);
  CHECK(after == context->handle());
}

TEST_CASE("everything may outlive the variables it was made from") {
  Buffer buffer;
  Function scale;
  {
    const ContextPointer context = open_context();
    buffer = Buffer(context, 64);
    scale = Module::load(context, test::kKernels)->function("scale");
  }
  CHECK(scale.attributes().shared_bytes == 0);
}

TEST_CASE("a fault surfaces at the synchronisation, sticks, and says where") {
  if (!test::on_simulator()) return;  // it would end this process's real context
  const ContextPointer context = open_context();
  const Function stray = Module::load(context, test::kKernels)->function("stray");
  const abi::CUdeviceptr nowhere = 0x10;
  launch(stray, {1}, {32}, 0, nullptr, {&nowhere});
  for (int i = 0; i < 2; ++i) {
    try {
      synchronize(*context, nullptr);
      FAIL("no fault");
    } catch (const Error& error) {
      CHECK(error.code() == ErrorCode::kFault);
      CHECK(std::strstr(error.what(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)") != nullptr);
      CHECK(std::strstr(error.what(), "stray") != nullptr);
    }
  }
  CHECK(code_of([&] { Buffer(context, 16); }) == ErrorCode::kFault);
  CHECK(simulator_fault(*context).find("\"kernel\":\"stray\"") != std::string::npos);
  CHECK(clear_simulator_fault(*context));
  CHECK(simulator_fault(*context).empty());
  CHECK_NOTHROW(Buffer(context, 16));
}

TEST_CASE("a simulated device counts its work and takes options") {
  if (!test::on_simulator()) return;
  const ContextPointer context = open_context();
  simulator_counters(*context, true);
  const Function scale = Module::load(context, test::kKernels)->function("scale");
  const std::vector<float> one = {1};
  const Buffer value = upload<float>(context, one);
  const abi::CUdeviceptr pointer = value.address();
  const float factor = 1;
  launch(scale, {1}, {1}, 0, nullptr, {&pointer, &factor});
  synchronize(*context, nullptr);
  const auto counters = simulator_counters(*context, true);
  REQUIRE(counters.has_value());
  CHECK(counters->launches == 1);
  CHECK(counters->warp_instructions > 0);
  CHECK(counters->faults == 0);
  CHECK(simulator_counters(*context)->launches == 0);

  const abi::SimulatorOptions before = simulator_options(*context).value();
  abi::SimulatorOptions options = before;
  if (std::getenv("ANNULUS_SIMULATOR_OPTIONS") == nullptr) CHECK(options.checked == 1);
  options.seed = 42;
  CHECK(set_simulator_options(*context, options));
  CHECK(simulator_options(*context)->seed == 42);
  options.checked = 17;
  CHECK(code_of([&] { set_simulator_options(*context, options); }) == ErrorCode::kDevice);
  set_simulator_options(*context, before);
}

}  // namespace
}  // namespace annulus::device
