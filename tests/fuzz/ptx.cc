// PTX. An input is the text of a module up to the first zero byte. The bytes after it determine the
// launches of its first kernels. The text is loaded, decoded and run on the simulator, in checked
// mode or not, in small grids with few steps. Any text must be refused with a reason, run, or end
// in a Fault. The simulator itself must read and write only its own memory.

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "fuzz/fuzz.h"
#include "simulator/check/detector.h"
#include "simulator/machine/memory.h"
#include "simulator/machine/tensor_map.h"
#include "simulator/run/launch.h"
#include "simulator/run/load.h"

namespace annulus::fuzz {
namespace {

using namespace simulator;

// The limit of steps of a CTA. A step may be a matrix product of 64 x 256 x 16.
constexpr std::uint64_t kSteps = 400;
constexpr std::uint32_t kShared = 232448;  // shared memory of a CTA of sm_90
constexpr std::size_t kBufferBytes = 16384;

struct Machine {
  GlobalMemory memory{std::uint64_t{64} << 20};
  base::ThreadPool pool{1};
  Detector detector;
  ChainPointer chain = std::make_shared<Chain>();
};

// Buffers whose addresses a kernel gets: one with small numbers, and one that was never written.
struct Buffers {
  GlobalMemory& memory;
  std::uint64_t in, out;

  explicit Buffers(GlobalMemory& from)
      : memory(from), in(from.allocate(kBufferBytes)), out(from.allocate(kBufferBytes)) {
    std::array<std::uint32_t, kBufferBytes / 4> words;
    for (std::size_t i = 0; i < words.size(); ++i) {
      words[i] = static_cast<std::uint32_t>(i * 2654435761u) >> (i % 29);
    }
    memory.write(in, words.data(), kBufferBytes);
  }
  ~Buffers() {
    memory.release(in);
    memory.release(out);
  }
};

TensorMap map_of(Bytes& bytes, std::uint64_t address) {
  const auto rank = static_cast<std::uint32_t>(bytes.between(1, 3));
  std::array<std::uint64_t, 3> dims, strides = {256, 4096, 0};
  std::array<std::uint32_t, 3> box, steps;
  for (std::uint32_t i = 0; i < rank; ++i) {
    dims[i] = static_cast<std::uint64_t>(bytes.between(1, 16));
    box[i] = static_cast<std::uint32_t>(bytes.between(1, 8));
    steps[i] = static_cast<std::uint32_t>(bytes.below(8) == 0 ? 2 : 1);
  }
  TensorMap map;
  bool supported = true;
  encode({.type = static_cast<int>(bytes.below(13)),
          .rank = rank,
          .address = address,
          .dims = {dims.data(), rank},
          .strides = {strides.data(), rank - 1},
          .box = {box.data(), rank},
          .element_strides = {steps.data(), rank},
          .interleave = 0,
          .swizzle = static_cast<int>(bytes.below(4)),
          .promotion = 0,
          .fill = static_cast<int>(bytes.below(2))},
         &map, &supported);
  return map;
}

// As in real kernels, parameters of 8 bytes are addresses, of 4 bytes numbers, and of 128 bytes
// tensor maps.
std::vector<std::byte> parameters_of(const KernelInfo& info, Bytes& bytes, const Buffers& buffers) {
  std::vector<std::byte> block(info.parameter_bytes);
  for (std::size_t i = 0; i < info.parameter_offsets.size(); ++i) {
    const std::span<std::byte> place =
        std::span(block).subspan(info.parameter_offsets[i], info.parameter_sizes[i]);
    if (place.size() == 8) {
      const std::uint64_t address = i % 2 == 0 ? buffers.in : buffers.out;
      std::memcpy(place.data(), &address, 8);
    } else if (place.size() >= sizeof(TensorMap)) {
      const TensorMap map = map_of(bytes, buffers.in);
      std::memcpy(place.data(), &map, sizeof map);
    } else {
      for (std::byte& byte : place) byte = std::byte{0};
      if (place.size() >= 4) place[0] = std::byte{bytes.byte()};
    }
  }
  return block;
}

// The names of the kernels, in the order of the text. A word after .entry may not be a kernel.
std::vector<std::string> entries_of(std::string_view text) {
  std::vector<std::string> names;
  constexpr std::string_view kEntry = ".entry";
  for (std::size_t at = text.find(kEntry); at != text.npos && names.size() < 2;
       at = text.find(kEntry, at + 1)) {
    const std::size_t begin = text.find_first_not_of(" \t\r\n", at + kEntry.size());
    if (begin == text.npos) break;
    names.emplace_back(text.substr(begin, text.find_first_of(" \t\r\n({", begin) - begin));
  }
  return names;
}

// Runs a kernel, unless the device has no room for it.
void launch(Machine& machine, const Program& program, Bytes bytes) {
  const KernelInfo& info = program.info;
  LaunchRequest request;
  abi::SimulatorOptions options;
  options.checked = bytes.below(4) != 0;
  options.seed = bytes.byte();
  options.threads = 1;
  options.quantum = static_cast<std::uint32_t>(bytes.below(4));
  options.landing = static_cast<std::uint32_t>(bytes.below(3));
  options.products = static_cast<std::uint32_t>(bytes.below(3));
  std::uint32_t ctas = 1;
  for (int d = 0; d < 3; ++d) {
    request.cluster[d] = std::max(info.cluster[d], 1u);
    if (request.cluster[d] > 8) return;
    ctas *= request.cluster[d];
    request.grid[d] = request.cluster[d];
  }
  if (ctas > 8) return;
  if (ctas < 4 && bytes.below(2) != 0) request.grid[0] *= 2;
  static constexpr std::uint32_t kThreads[] = {32, 1, 33, 64, 128};
  request.block[0] = kThreads[bytes.below(5)];
  if (bytes.below(8) == 0) request.block[1] = 2;
  if (request.block[0] * request.block[1] > info.max_threads) return;
  request.dynamic_shared_bytes = static_cast<std::uint32_t>(bytes.below(4) * 1024);
  const std::uint64_t shared = std::uint64_t{program.dynamic_shared_offset} +
                               info.static_shared_bytes + request.dynamic_shared_bytes;
  if (shared > kShared) return;
  const Buffers buffers(machine.memory);
  const std::vector<std::byte> parameters = parameters_of(info, bytes, buffers);
  request.program = &program;
  request.parameters = parameters;
  request.shared_limit = kShared;
  request.max_warp_instructions = kSteps;
  Operation operation;
  operation.what = "kernel";
  operation.program = &program;
  std::copy_n(request.grid, 3, operation.grid);
  operation.warp_bits = 3;
  request.operation = machine.detector.order.submit(std::move(operation), machine.chain, {});
  request.detector = &machine.detector;
  abi::SimulatorCounters counters;
  try {
    execute(request, machine.memory, machine.pool, options, &counters);
  } catch (const Fault& caught) {
    if (caught.message().empty() || caught.json().empty()) wrong("a fault without a message");
  }
  machine.detector.order.ended(*request.operation);
  machine.detector.order.observe(*request.operation);
}

void check(std::string_view all) {
  static Machine machine;
  const std::string_view text = all.substr(0, all.find('\0'));
  const Bytes behind(all.substr(std::min(all.size(), text.size() + 1)));
  const std::uint64_t used = machine.memory.used();
  const auto refused = refusal_of([&] {
    const auto module = LoadedModule::load(text, machine.memory);
    for (const std::string& name : entries_of(text)) {
      const Program* program = module->program(name);
      if (program != nullptr) launch(machine, *program, behind);
    }
  });
  if (refused && *refused != ErrorCode::kParse && *refused != ErrorCode::kUnsupported &&
      *refused != ErrorCode::kOutOfMemory) {
    wrong("a module is refused as {}", to_string(*refused));
  }
  if (machine.memory.used() != used) wrong("device memory is lost");
}

}  // namespace
}  // namespace annulus::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  annulus::fuzz::refusal_of([&] {
    annulus::fuzz::check({reinterpret_cast<const char*>(data), size});
  });
  return 0;
}
