// The functions that CUDA provides to kernels without a body in PTX: vprintf, __assertfail, malloc
// and free. Sources: CUDA C++ Programming Guide, "Formatted output", "Assertion" and "Dynamic
// Global Memory Allocation"; PTX interoperability guide, "System calls".

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "simulator/machine/device_heap.h"
#include "simulator/machine/print_buffer.h"
#include "simulator/ops/handlers.h"
#include "simulator/program/address_spaces.h"

namespace annulus::simulator {
namespace {

constexpr std::size_t kMaxText = 65536;

// The Inst: aux the offsets of the arguments and then of the results in the frame of the caller,
// imm the number of arguments (Decoder::decode_call).

template <typename T>
T argument(const Warp& warp, const Inst& inst, int lane, std::uint32_t index) {
  const Program& program = *warp.cta->program;
  T value;
  std::memcpy(&value,
              &warp.local[static_cast<std::uint32_t>(lane) * program.info.local_bytes +
                          program.slots[inst.aux + index]],
              sizeof(T));
  return value;
}

// How many bytes can be read at a generic address, at most `wanted`. *at becomes their host
// address.
std::size_t reach(const Warp& warp, int lane, std::uint64_t address, std::size_t wanted,
                  const std::byte** at) {
  const Cta& cta = *warp.cta;
  const std::uint64_t window = address / kWindowBytes;
  const std::uint64_t low = address & 0xffffffffu;
  std::uint64_t left = 0;
  if (window == kLocalWindow / kWindowBytes) {
    const std::uint32_t size = cta.program->info.local_bytes;
    left = low < size ? size - low : 0;
    *at = warp.local.data() + static_cast<std::uint32_t>(lane) * size + low;
  } else if (window == kSharedWindow / kWindowBytes) {
    const std::uint64_t offset = low - kSharedBase;
    left = offset < cta.shared.size() ? cta.shared.size() - offset : 0;
    *at = cta.shared.data() + offset;
  } else {
    const Allocation found = cta.global.memory->find(address, 1);
    left = found.end == 0 ? 0 : found.end - address;
    *at = reinterpret_cast<const std::byte*>(address);
  }
  return static_cast<std::size_t>(std::min<std::uint64_t>(left, wanted));
}

// The text up to its NUL.
std::string text_at(const Warp& warp, int lane, std::uint64_t address) {
  const std::byte* at = nullptr;
  const std::size_t most = reach(warp, lane, address, kMaxText, &at);
  if (most == 0) {
    raise_at(FaultKind::kOutOfBounds, lane,
             "a text at address {:#x}, which is outside of all allocations", address);
  }
  const auto* text = reinterpret_cast<const char*>(at);
  return {text, ::strnlen(text, most)};
}

// One call of vprintf by a lane: a format, and its arguments one after another, each at a multiple
// of its size.
class Formatter {
 public:
  Formatter(const Warp& warp, int lane, std::uint64_t arguments)
      : warp_(warp), lane_(lane), next_(arguments) {}

  std::string format(const std::string& format) {
    std::string result;
    for (std::size_t i = 0; i < format.size();) {
      if (format[i] != '%') {
        result += format[i++];
      } else if (i + 1 < format.size() && format[i + 1] == '%') {
        result += '%';
        i += 2;
      } else {
        result += conversion(format, &i);
      }
    }
    return result;
  }
  int conversions() const { return conversions_; }

 private:
  template <typename T>
  T take() {
    next_ = (next_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    const std::byte* at = nullptr;
    if (reach(warp_, lane_, next_, sizeof(T), &at) < sizeof(T)) {
      raise(FaultKind::kOutOfBounds, "printf has fewer arguments than its format needs", lane_);
    }
    T value;
    std::memcpy(&value, at, sizeof(T));
    next_ += sizeof(T);
    return value;
  }

  // Converts flags, width and precision to a format for a single value. Stars are replaced by their
  // arguments.
  std::string conversion(const std::string& format, std::size_t* at) {
    const std::size_t begin = *at;
    std::string one = "%";
    std::size_t i = begin + 1;
    bool wide = false;
    for (; i < format.size(); ++i) {
      const char c = format[i];
      if (c == '*') {
        one += std::to_string(take<std::int32_t>());
      } else if (std::strchr("-+ #0123456789.", c) != nullptr) {
        one += c;
      } else if (std::strchr("lLjzt", c) != nullptr) {
        wide = true;
      } else if (c != 'h') {
        break;
      }
    }
    if (i == format.size()) {
      *at = i;
      return format.substr(begin);
    }
    *at = i + 1;
    return value(one, format[i], wide, format.substr(begin, *at - begin));
  }

  std::string value(const std::string& one, char kind, bool wide, const std::string& whole) {
    ++conversions_;
    switch (kind) {
      case 'd':
      case 'i':
        return print(one + "lld", wide ? static_cast<long long>(take<std::int64_t>())
                                       : static_cast<long long>(take<std::int32_t>()));
      case 'u':
      case 'o':
      case 'x':
      case 'X':
        return print(one + "ll" + kind,
                     wide ? static_cast<unsigned long long>(take<std::uint64_t>())
                          : static_cast<unsigned long long>(take<std::uint32_t>()));
      case 'c':
        return print(one + "c", take<std::int32_t>());
      case 'e':
      case 'E':
      case 'f':
      case 'F':
      case 'g':
      case 'G':
      case 'a':
      case 'A':
        return print(one + kind, take<double>());
      case 's': {
        const auto address = take<std::uint64_t>();
        return print(one + "s", address == 0 ? "(null)" : text_at(warp_, lane_, address).c_str());
      }
      case 'p':
        return print(one + "p", reinterpret_cast<const void*>(take<std::uint64_t>()));
      default:  // printed unchanged, as in CUDA
        --conversions_;
        return whole;
    }
  }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  template <typename T>
  static std::string print(const std::string& one, T value) {
    const int length = std::snprintf(nullptr, 0, one.c_str(), value);
    if (length < 0 || static_cast<std::size_t>(length) > kMaxText) return {};
    std::string text(static_cast<std::size_t>(length) + 1, '\0');
    std::snprintf(text.data(), text.size(), one.c_str(), value);
    text.pop_back();
    return text;
  }
#pragma GCC diagnostic pop

  const Warp& warp_;
  const int lane_;
  std::uint64_t next_;
  int conversions_ = 0;
};

std::uint64_t number_of(const Cta& cta) {
  return cta.index[0] +
         std::uint64_t{cta.grid[0]} * (cta.index[1] + std::uint64_t{cta.grid[1]} * cta.index[2]);
}

void put_result(Warp& warp, const Inst& inst, int lane, std::uint32_t index, const void* value,
                std::size_t bytes) {
  const Program& program = *warp.cta->program;
  const std::size_t at =
      static_cast<std::uint32_t>(lane) * program.info.local_bytes + program.slots[inst.aux + index];
  std::memcpy(&warp.local[at], value, bytes);
  std::fill_n(&warp.local_written[at], bytes, std::uint8_t{1});
}

void print(Warp& warp, const Inst& inst, Mask mask) {
  const Cta& cta = *warp.cta;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    Formatter formatter(warp, lane, argument<std::uint64_t>(warp, inst, lane, 1));
    const std::string text =
        formatter.format(text_at(warp, lane, argument<std::uint64_t>(warp, inst, lane, 0)));
    if (cta.prints != nullptr) cta.prints->add(number_of(cta), text);
    const int conversions = formatter.conversions();
    put_result(warp, inst, lane, 2, &conversions, sizeof(conversions));
  }
}

void allocate(Warp& warp, const Inst& inst, Mask mask) {
  DeviceHeap* const heap = warp.cta->heap;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const auto bytes = argument<std::uint64_t>(warp, inst, lane, 0);
    const std::uint64_t address = heap == nullptr ? 0 : heap->allocate(bytes);
    put_result(warp, inst, lane, 1, &address, sizeof(address));
  }
}

void release(Warp& warp, const Inst& inst, Mask mask) {
  DeviceHeap* const heap = warp.cta->heap;
  for (Mask rest = mask; rest != 0; rest &= rest - 1) {
    const int lane = lowest_lane(rest);
    const auto address = argument<std::uint64_t>(warp, inst, lane, 0);
    if (address == 0 || (heap != nullptr && heap->release(address))) continue;
    raise_at(FaultKind::kInvalidOperand, lane,
             "free of address {:#x}, which malloc did not return or which was freed already",
             address);
  }
}

// The message has CUDA's words.
void fail_assertion(Warp& warp, const Inst& inst, Mask mask) {
  const Cta& cta = *warp.cta;
  const int lane = lowest_lane(mask);
  const auto text = [&](std::uint32_t index) {
    return text_at(warp, lane, argument<std::uint64_t>(warp, inst, lane, index));
  };
  const auto thread = static_cast<std::uint32_t>(warp.index * kLanes + lane);
  raise_at(FaultKind::kAssert, lane,
           "{}:{}: {}: block: [{},{},{}], thread: [{},{},{}] Assertion `{}` failed.", text(1),
           argument<std::uint32_t>(warp, inst, lane, 2), text(3), cta.index[0], cta.index[1],
           cta.index[2], thread % cta.block[0], thread / cta.block[0] % cta.block[1],
           thread / cta.block[0] / cta.block[1], text(0));
}

}  // namespace

void decode_vprintf(Decoder& decoder) {
  const std::vector<std::uint32_t> bytes = decoder.call_bytes();
  if (bytes != std::vector<std::uint32_t>{8, 8, 4}) {
    decoder.malformed("vprintf takes a format and its arguments and returns 32 bits");
  }
  decoder.handler(print);
}

void decode_malloc(Decoder& decoder) {
  if (decoder.call_bytes() != std::vector<std::uint32_t>{8, 8}) {
    decoder.malformed("malloc takes a size and returns an address");
  }
  decoder.handler(allocate);
}

void decode_free(Decoder& decoder) {
  if (decoder.call_bytes() != std::vector<std::uint32_t>{8}) {
    decoder.malformed("free takes an address");
  }
  decoder.handler(release);
}

void decode_assertfail(Decoder& decoder) {
  const std::vector<std::uint32_t> bytes = decoder.call_bytes();
  if (bytes.size() < 4 || bytes[0] != 8 || bytes[1] != 8 || bytes[2] != 4 || bytes[3] != 8) {
    decoder.malformed("__assertfail takes a message, a file, a line, a function and a size");
  }
  decoder.handler(fail_assertion);
}

}  // namespace annulus::simulator
