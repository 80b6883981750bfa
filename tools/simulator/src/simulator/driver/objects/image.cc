#include "simulator/driver/objects/image.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstring>

#include "annulus/types.h"
#include "simulator/driver/objects/fatbin.h"

namespace annulus::simulator::driver {
namespace {

// PTX of a version that is a little newer than the manual the simulator follows (9.0) is accepted.
// A kernel runs until it reaches an instruction that the simulator does not have, and only that
// instruction is refused.
constexpr int kFirstUnknownVersion = 100;

constexpr unsigned char kElf[4] = {0x7f, 'E', 'L', 'F'};

// The next word of PTX outside of comments; empty at the end.
std::string_view next_word(std::string_view text, std::size_t* at) {
  const auto space = [&](std::size_t i) {
    return std::isspace(static_cast<unsigned char>(text[i])) != 0;
  };
  while (*at < text.size()) {
    if (space(*at)) {
      ++*at;
    } else if (text.compare(*at, 2, "//") == 0) {
      *at = std::min(text.find('\n', *at), text.size());
    } else if (text.compare(*at, 2, "/*") == 0) {
      const std::size_t end = text.find("*/", *at + 2);
      *at = end == text.npos ? text.size() : end + 2;
    } else {
      break;
    }
  }
  const std::size_t begin = *at;
  while (*at < text.size() && !space(*at)) ++*at;
  return text.substr(begin, *at - begin);
}

// 83 for "8.3", or 0 if the text is not a version. It is read digit by digit, because strtod
// follows the locale of the program, in which the decimal point may be another character.
int version_of(std::string_view text) {
  const auto number = [&](std::string_view digits) {
    int value = -1;
    const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    return code == std::errc() && end == digits.data() + digits.size() && value < 100 ? value : -1;
  };
  const std::size_t point = text.find('.');
  const int major = number(text.substr(0, point));
  const int minor = point == text.npos ? 0 : number(text.substr(point + 1));
  return major < 0 || minor < 0 || minor > 9 ? 0 : 10 * major + minor;
}

// Whether PTX for the architecture `one` needs more of a device than PTX for `other`: a larger
// number, or the features of a single architecture (sm_90a).
bool newer(std::string_view one, std::string_view other) {
  const auto number = [](std::string_view target) {
    int value = 0;
    for (const char c : target.substr(std::min<std::size_t>(3, target.size()))) {
      if (c >= '0' && c <= '9' && value < 1000) value = 10 * value + (c - '0');
    }
    return 2 * value + (target.ends_with('a') ? 1 : 0);
  };
  return number(one) > number(other);
}

LoadResult refuse(abi::CUresult code, std::string log) {
  return {nullptr, 0, code, std::move(log)};
}

}  // namespace

PtxHeader read_header(std::string_view ptx) {
  PtxHeader header;
  std::size_t at = 0;
  // Both directives are at the top, so the search ends after a few words.
  for (int words = 0; words < 8 && header.target.empty(); ++words) {
    const std::string_view word = next_word(ptx, &at);
    if (word == ".version") {
      header.version = version_of(next_word(ptx, &at));
    } else if (word == ".target") {
      const std::string_view target = next_word(ptx, &at);
      header.target = target.substr(0, target.find(','));
    }
  }
  return header;
}

bool fits(const DeviceModel& model, std::string_view target) {
  if (target == model.architecture) return true;
  if (!target.starts_with("sm_")) return false;
  int number = 0;
  for (const char digit : target.substr(3)) {
    // e.g. sm_90a for a model of another architecture
    if (digit < '0' || digit > '9' || number > 1000) return false;
    number = number * 10 + (digit - '0');
  }
  return number > 0 && number <= 10 * model.major + model.minor;
}

namespace {

LoadResult load_ptx(Device& device, std::string_view ptx) {
  const DeviceModel& model = device.model();
  const PtxHeader header = read_header(ptx);
  if (header.version == 0) {
    return refuse(abi::kCudaInvalidImage,
                  "the image is not PTX, a cubin or a fat binary: it does not begin with .version");
  }
  if (header.version >= kFirstUnknownVersion) {
    return refuse(
        kCudaUnsupportedPtxVersion,
        fmt::format("PTX of version {}.{} is newer than the simulator, which reads versions "
                    "below {}.0",
                    header.version / 10, header.version % 10, kFirstUnknownVersion / 10));
  }
  if (header.target.empty()) {
    return refuse(abi::kCudaInvalidPtx, "the PTX has no .target directive");
  }
  if (!fits(model, header.target)) {
    return refuse(abi::kCudaNoBinaryForGpu,
                  fmt::format("PTX for {} does not run on {}", header.target, model.architecture));
  }
  try {
    return {LoadedModule::load(ptx, device.memory()), header.version, abi::kCudaSuccess, {}};
  } catch (const Error& error) {
    return refuse(
        error.code() == ErrorCode::kOutOfMemory ? abi::kCudaOutOfMemory : abi::kCudaInvalidPtx,
        error.what());
  }
}

LoadResult load_fatbin(Device& device, const Image& image) {
  const DeviceModel& model = device.model();
  const std::string* best = nullptr;
  std::string targets;
  for (const std::string& ptx : image.ptx) {
    const std::string target(read_header(ptx).target);
    targets += (targets.empty() ? "" : ", ") + target;
    if (!fits(model, target)) continue;
    if (best == nullptr || newer(target, read_header(*best).target)) best = &ptx;
  }
  if (best != nullptr) return load_ptx(device, *best);
  return refuse(
      image.wrong.empty() ? abi::kCudaNoBinaryForGpu : abi::kCudaInvalidImage,
      fmt::format("the fat binary has no PTX that {} runs (PTX for: {}; {} compiled binaries){}{}; "
                  "compile with nvcc -gencode arch=compute_{},code=compute_{}",
                  model.architecture, targets.empty() ? "nothing" : targets, image.binaries,
                  image.wrong.empty() ? "" : ": ", image.wrong, model.architecture + 3,
                  model.architecture + 3));
}

}  // namespace

Image read_image(const void* image) {
  Image read;
  if (is_fatbin(image)) {
    FatbinTexts texts = read_fatbin(image);
    read.fat = true;
    read.ptx = std::move(texts.ptx);
    read.binaries = texts.binaries;
    read.wrong = std::move(texts.wrong);
    return read;
  }
  const auto* bytes = static_cast<const char*>(image);
  // strncmp stops at the NUL of a short text; memcmp would read past it.
  if (std::strncmp(bytes, reinterpret_cast<const char*>(kElf), 4) == 0) {
    read.binaries = 1;
  } else {
    read.ptx.emplace_back(bytes);
  }
  return read;
}

bool fits(const DeviceModel& model, const Image& image) {
  return std::ranges::any_of(image.ptx, [&](const std::string& ptx) {
    return fits(model, std::string_view(read_header(ptx).target));
  });
}

LoadResult load_image(Device& device, const Image& image) {
  if (image.fat) return load_fatbin(device, image);
  if (image.ptx.empty()) {
    return refuse(abi::kCudaNoBinaryForGpu,
                  "the image is compiled code for a GPU (a cubin); a simulated device runs PTX");
  }
  return load_ptx(device, image.ptx.front());
}

}  // namespace annulus::simulator::driver
