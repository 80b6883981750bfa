#include "jit/compiler.h"

#include <fmt/core.h>

#include <algorithm>

#include "abi/check.h"
#include "base/fail.h"
#include "base/join.h"
#include "jit/build_id.h"

namespace annulus::jit {
namespace {

constexpr std::string_view kSourceName = "/annulus/specialised.cu";
constexpr std::size_t kMaxLog = 16 << 10;
// The lines that begin the last two parts of KernelKey::wanted.
constexpr std::string_view kEntryLine = "entry ";
constexpr std::string_view kSourceLine = "\nsource\n";

// A program of NVRTC, which only one thread may use.
class Program {
 public:
  Program(const abi::NvrtcTable& nvrtc, const char* source, const std::vector<const char*>& texts,
          const std::vector<const char*>& names)
      : nvrtc_(nvrtc) {
    check(nvrtc.create_program(&program_, source, kSourceName.data(),
                               static_cast<int>(texts.size()), texts.data(), names.data()),
          "nvrtcCreateProgram");
  }
  ~Program() { nvrtc_.destroy_program(&program_); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  abi::NvrtcProgram get() const { return program_; }
  void check(abi::NvrtcResult code, const char* call) const { abi::check(nvrtc_, code, call); }

  abi::NvrtcResult compile(const std::vector<std::string>& options) const {
    std::vector<const char*> pointers;
    for (const std::string& option : options) pointers.push_back(option.c_str());
    return nvrtc_.compile_program(program_, static_cast<int>(pointers.size()), pointers.data());
  }

  std::string log() const {
    std::size_t bytes = 0;
    if (nvrtc_.get_program_log_size(program_, &bytes) != abi::kNvrtcSuccess || bytes == 0) {
      return "";
    }
    std::string text(bytes, '\0');
    if (nvrtc_.get_program_log(program_, text.data()) != abi::kNvrtcSuccess) return "";
    text.resize(std::min(text.find('\0'), text.size()));
    return text;
  }

  std::vector<std::byte> image(ImageKind kind) const {
    std::size_t bytes = 0;
    const bool ptx = kind == ImageKind::kPtx;
    check((ptx ? nvrtc_.get_ptx_size : nvrtc_.get_cubin_size)(program_, &bytes),
          ptx ? "nvrtcGetPTXSize" : "nvrtcGetCUBINSize");
    std::vector<std::byte> image(bytes);
    check(
        (ptx ? nvrtc_.get_ptx : nvrtc_.get_cubin)(program_, reinterpret_cast<char*>(image.data())),
        ptx ? "nvrtcGetPTX" : "nvrtcGetCUBIN");
    if (ptx && (image.empty() || image.back() != std::byte{0})) image.push_back(std::byte{0});
    return image;
  }

 private:
  const abi::NvrtcTable& nvrtc_;
  abi::NvrtcProgram program_ = nullptr;
};

[[noreturn]] void fail_compile(const KernelRequest& request, std::string log) {
  // NVRTC returns the same code for this error and for an invalid source.
  if (log.find("error: out of memory") != std::string::npos) {
    base::fail(
        ErrorCode::kOutOfMemory,
        "NVRTC ran out of host memory while it compiled the kernel {} for {}; it takes about "
        "200 MB",
        request.spec.family, to_string(request.spec.arch));
  }
  if (log.size() > kMaxLog) log = log.substr(0, kMaxLog) + "\n[...]";
  base::fail(ErrorCode::kCompile, "NVRTC rejects the kernel {} for {}:\n{}\n{} is\n{}",
             request.spec.family, to_string(request.spec.arch), log, kSourceName, request.source);
}

}  // namespace

Compiler::Compiler(std::shared_ptr<const abi::NvrtcLibrary> nvrtc,
                   std::shared_ptr<const TemplateSet> templates, ImageKind kind)
    : nvrtc_(std::move(nvrtc)), templates_(std::move(templates)), kind_(kind) {
  if (!compiles()) return;
  const abi::NvrtcTable& table = nvrtc_->table;
  identity_ = fmt::format("{} ({})", nvrtc_->report.version_text,
                          build_id(reinterpret_cast<const void*>(table.compile_program)));
  int count = 0;
  abi::check(table, table.get_num_supported_archs(&count), "nvrtcGetNumSupportedArchs");
  archs_.resize(static_cast<std::size_t>(count));
  abi::check(table, table.get_supported_archs(archs_.data()), "nvrtcGetSupportedArchs");
  for (const auto& [name, text] : templates_->files()) {
    names_.push_back(kVirtualRoot + name);
    texts_.push_back(with_virtual_includes(text, *templates_));
  }
  for (const std::string& name : names_) name_pointers_.push_back(name.c_str());
  for (const std::string& text : texts_) text_pointers_.push_back(text.c_str());
}

// The newer options. Without the first, names that the compiler generates contain the process id,
// so that no two runs give the same image. Without the second, a missing include file is searched
// for in the working directory.
std::vector<std::string> Compiler::options(Arch arch, bool newer) const {
  const bool ptx = kind_ == ImageKind::kPtx;
  std::vector<std::string> options = {
      "--gpu-architecture=" + (ptx ? virtual_name(arch) : to_string(arch)), "--std=c++17",
      "--device-as-default-execution-space"};
  // The simulator's faults name lines of templates. For a cubin, line information would only
  // increase the size and the compile time.
  if (ptx) options.push_back("--generate-line-info");
  if (!ptx) options.push_back("--ptxas-options=-v");
  if (newer) {
    options.push_back("--frandom-seed=annulus");
    options.push_back("--no-source-include");
  }
  return options;
}

// The beginning of KernelKey::wanted. It names all options, even those that an older NVRTC refuses.
// These follow from NVRTC's version, which is in the compiler's part of the key.
std::string Compiler::key_head(Arch arch) const {
  return fmt::format("annulus kernel\nschema {}\ntemplates {}\nimage {}\noptions {}\n",
                     kKernelSchema, templates_->digest().hex(), to_string(kind_),
                     base::join(options(arch, true), " "));
}

KernelOrigin Compiler::origin(Arch arch) const { return *kernel_origin(key_head(arch), identity_); }

KernelRequest Compiler::prepare(KernelSpec spec) const {
  std::string source = source_text(spec), entry = qualified_entry(spec);
  KernelKey key(wanted_text(spec.arch, entry, source), identity_);
  return {std::move(spec), std::move(source), std::move(entry), std::move(key)};
}

std::string Compiler::wanted_text(Arch arch, std::string_view entry,
                                  std::string_view source) const {
  return fmt::format("{}{}{}{}{}", key_head(arch), kEntryLine, entry, kSourceLine, source);
}

std::optional<KernelRequest> Compiler::adopt(std::string_view wanted) const {
  const std::optional<KernelOrigin> from = kernel_origin(wanted, identity_);
  const std::size_t entry_at = wanted.find(std::string("\n") + std::string(kEntryLine)) + 1;
  const std::size_t source_at = wanted.find(kSourceLine);
  if (!from || entry_at == 0 || source_at == wanted.npos || entry_at > source_at) {
    return std::nullopt;
  }
  if (from->templates != templates_->digest().hex() ||
      from->schema != fmt::format("{}", kKernelSchema)) {
    return std::nullopt;
  }
  KernelRequest request{
      .spec = {},
      .source = std::string(wanted.substr(source_at + kSourceLine.size())),
      .entry = std::string(
          wanted.substr(entry_at + kEntryLine.size(), source_at - entry_at - kEntryLine.size())),
      .key = {"", ""}};
  // "compute_90a" and "sm_90a" are one architecture.
  request.spec.arch =
      parse_arch("sm_" + from->architecture.substr(from->architecture.find('_') + 1));
  const std::string name = request.entry.substr(0, request.entry.find('<'));
  request.spec.family = name.substr(name.rfind(':') + 1);
  request.key = {wanted_text(request.spec.arch, request.entry, request.source), identity_};
  return request;
}

CompiledKernel Compiler::compile(const KernelRequest& request) const {
  if (!compiles()) base::fail(ErrorCode::kLibrary, "{}", problem());
  const Arch arch = request.spec.arch;
  if (!std::ranges::count(archs_, arch.number)) {
    base::fail(ErrorCode::kUnsupported, "NVRTC {} cannot compile for {}; it supports sm_{}",
               nvrtc_->report.version_text, to_string(arch), base::join(archs_, ", sm_"));
  }
  const std::string source = with_virtual_includes(request.source, *templates_);
  const std::string& entry = request.entry;
  for (bool newer = !older_;; newer = false) {
    const Program program(nvrtc_->table, source.c_str(), text_pointers_, name_pointers_);
    program.check(nvrtc_->table.add_name_expression(program.get(), entry.c_str()),
                  "nvrtcAddNameExpression");
    std::vector<std::string> given = options(arch, newer);
    // Leaves out textures, surfaces and types of the runtime, which the templates do not use. The
    // image is the same, and is compiled about 8 ms faster. So the option is not part of the key.
    constexpr int kFirstMinimal = 12040;
    if (newer && version() >= kFirstMinimal) given.push_back("--minimal");
    const abi::NvrtcResult code = program.compile(given);
    if (code == abi::kNvrtcInvalidOption && newer) continue;
    // The refused option may have been the architecture. Only if NVRTC accepts the options without
    // the newer ones, it has refused one of the newer ones before.
    if (code != abi::kNvrtcInvalidOption && !newer) older_ = true;
    const std::string log = program.log();
    if (code == abi::kNvrtcCompilation || code == abi::kNvrtcInvalidOption ||
        code == abi::kNvrtcNameExpressionNotValid) {
      fail_compile(request, log);
    }
    program.check(code, "nvrtcCompileProgram");
    const char* symbol = nullptr;
    program.check(nvrtc_->table.get_lowered_name(program.get(), entry.c_str(), &symbol),
                  "nvrtcGetLoweredName");
    CompiledKernel kernel{
        .kind = kind_, .symbol = symbol, .image = program.image(kind_), .usage = {}};
    kernel.usage = kind_ == ImageKind::kCubin ? resource_usage(kernel.image, kernel.symbol, log)
                                              : parse_compile_log(log);
    return kernel;
  }
}

}  // namespace annulus::jit
