// Linking (cuLinkCreate). The result is PTX again: the texts of the inputs one after another. A
// name that one input declares and another defines is found in the result, as in a single module.

#include <algorithm>
#include <cstring>
#include <sstream>

#include "simulator/driver/entries/entries.h"
#include "simulator/driver/objects/modules.h"

namespace annulus::simulator::driver {

struct LinkState {
  std::vector<int> names;  // the options, whose values are the program's buffers
  std::vector<void*> values;
  std::mutex mutex;  // guards the members below
  std::vector<std::string> texts;
  std::string result;

  JitOptions options() {
    return {static_cast<unsigned>(names.size()), names.data(), values.data()};
  }
};

namespace {

std::shared_ptr<LinkState> find_link(CUlinkState link) {
  auto found = state().links.find(link);
  if (found == nullptr) throw Refusal{abi::kCudaInvalidHandle};
  return found;
}

[[noreturn]] void refuse(LinkState& link, abi::CUresult code, const std::string& log) {
  link.options().give_logs(log);
  live_context()->device->report(base::LogLevel::kWarning, "link", log);
  throw Refusal{code};
}

void add_input(LinkState& link, int type, std::string data) {
  if (type < kLinkCubin || type > kLinkLibrary) throw Refusal{abi::kCudaInvalidValue};
  if (type == kLinkPtx) data.resize(::strnlen(data.data(), data.size()));
  Image image;
  if (type == kLinkPtx) {
    image.ptx.push_back(std::move(data));
  } else if (type == kLinkFatBinary) {
    image = read_image(data.c_str());
  }
  const DeviceModel& model = live_context()->device->model();
  std::lock_guard lock(link.mutex);
  for (std::string& ptx : image.ptx) {
    if (type == kLinkFatBinary && !fits(model, std::string_view(read_header(ptx).target))) continue;
    link.texts.push_back(std::move(ptx));
    return;
  }
  refuse(
      link, abi::kCudaNoBinaryForGpu,
      "compiled code cannot be linked for a simulated device, which runs PTX: give the linker PTX");
}

// Appends a text without the directives that a module has only once.
void append(std::string* module, const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t first = line.find_first_not_of(" \t");
    const std::string_view word =
        first == line.npos ? std::string_view() : std::string_view(line).substr(first);
    const bool header = word.starts_with(".version") || word.starts_with(".target") ||
                        word.starts_with(".address_size");
    if (!header || module->empty()) *module += line + "\n";
  }
}

// The text with the latest version comes first, because its header becomes the header of the
// module.
std::string joined(std::vector<std::string> texts) {
  std::ranges::stable_sort(texts, [](const std::string& one, const std::string& other) {
    return read_header(one).version > read_header(other).version;
  });
  std::string module = texts.front();
  if (module.back() != '\n') module += '\n';
  for (std::size_t i = 1; i < texts.size(); ++i) append(&module, texts[i]);
  return module;
}

}  // namespace

namespace entry {

CUresult link_create(unsigned count, int* options, void** values, CUlinkState* link) {
  return guarded([&]() -> CUresult {
    live_context();
    const JitOptions jit{count, options, values};
    if (link == nullptr || !jit.valid()) return kCudaInvalidValue;
    auto made = std::make_shared<LinkState>();
    made->names.assign(options, options + count);
    made->values.assign(values, values + count);
    *link = state().links.add(std::move(made));
    return kCudaSuccess;
  });
}

CUresult link_add_data(CUlinkState link, int type, void* data, std::size_t bytes, const char*,
                       unsigned, int*, void**) {
  return guarded([&]() -> CUresult {
    const auto found = find_link(link);
    if (data == nullptr || bytes == 0) return kCudaInvalidValue;
    add_input(*found, type, std::string(static_cast<const char*>(data), bytes));
    return kCudaSuccess;
  });
}

CUresult link_add_file(CUlinkState link, int type, const char* path, unsigned, int*, void**) {
  return guarded([&]() -> CUresult {
    const auto found = find_link(link);
    if (path == nullptr) return kCudaInvalidValue;
    add_input(*found, type, read_image_file(path));
    return kCudaSuccess;
  });
}

// The result is loaded once, so that this call reports its errors. The result belongs to the link.
CUresult link_complete(CUlinkState link, void** image, std::size_t* bytes) {
  return guarded([&]() -> CUresult {
    const auto found = find_link(link);
    const auto context = live_context();
    if (image == nullptr) return kCudaInvalidValue;
    std::lock_guard lock(found->mutex);
    if (found->texts.empty()) return kCudaInvalidValue;
    found->result = joined(found->texts);
    const LoadResult result = load_image(*context->device, read_image(found->result.c_str()));
    if (result.loaded == nullptr) refuse(*found, result.code, result.log);
    found->options().give_logs({});
    *image = found->result.data();
    if (bytes != nullptr) *bytes = found->result.size() + 1;  // includes the NUL at its end
    return kCudaSuccess;
  });
}

CUresult link_destroy(CUlinkState link) {
  return guarded([&]() -> CUresult {
    return state().links.remove(link) == nullptr ? kCudaInvalidHandle : kCudaSuccess;
  });
}

}  // namespace entry
}  // namespace annulus::simulator::driver
