// The program as a user sees it: exit codes, one line for an error, JSON, files.

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "annulus/layout.h"
#include "base/json.h"
#include "base/safetensors.h"
#include "program/run_program.h"
#include "support/device.h"
#include "support/faulty_files.h"

namespace {

using namespace annulus;
using test::annulus_with;
using test::json_of;
using test::on_device;
using test::Outcome;
using test::read;
using test::refused;

TEST_CASE("run prints one object with everything in it, and the second run hits the cache") {
  const test::ScratchFolder cache;
  const std::string command =
      "run --json -B 2 -H 4 --kv-heads 2 -S 130 -D 64 -p 'causal & "
      "(window(63,0) | sink(8))' --block 32x32 --repeat 2 --cache-dir " +
      cache.path() + on_device();
  const base::Json first = json_of(command);
  for (const char* key :
       {"device", "simulated", "kernel", "config", "tuned", "source", "compile_ms", "density",
        "block_density", "time_ms", "launches", "error_row_max", "error_o", "error_lse",
        "checked_rows", "counters", "faults"}) {
    CAPTURE(key);
    CHECK(first.contains(key));
  }
  CHECK(first["device"] == test::device_name());
  CHECK(first["source"] == "compiled");
  CHECK(first["launches"] == 1);
  CHECK(first["checked_rows"] == 2 * 4 * 130);
  CHECK(first["within_law"] == true);
  CHECK(first["error_row_max"] < 1e-2);
  CHECK(first["density"] < first["block_density"]);
  CHECK(first["faults"] == 0);
  if (test::on_simulator()) {
    CHECK(first["simulated"] == true);
    CHECK(first["counters"]["launches"] == 2);
    CHECK(first["counters"]["matrix"] > 0);
  }
  const base::Json second = json_of(command);
  CHECK(second["source"] == "disk");
  CHECK(second["error_row_max"] == first["error_row_max"]);
  CHECK(second["error_lse"] == first["error_lse"]);
}

TEST_CASE("scales near the ends of fp32 give the oracle's answer") {
  for (const char* scale : {"1e-30", "5000", "1e10", "-1e10", "1e19"}) {
    CHECK(json_of("run --json -H 1 -S 70 -D 32 -p causal --scale " + std::string(scale) +
                  on_device())["within_law"] == true);
  }
}

TEST_CASE("the text of run never calls a simulated time speed") {
  const Outcome outcome = annulus_with("run -S 40 -H 1 -D 32 -p causal" + on_device());
  CHECK(outcome.code == 0);
  CHECK(outcome.err.empty());
  CHECK(outcome.out.find("within tolerance") != std::string::npos);
  if (test::on_simulator()) {
    CHECK(outcome.out.find("simulated") != std::string::npos);
    CHECK(outcome.out.find("not the speed of a GPU") != std::string::npos);
  }
  const Outcome unchecked = annulus_with("run --no-check -S 40 -H 1 -D 32" + on_device());
  CHECK(unchecked.out.find("not checked") != std::string::npos);
}

TEST_CASE("--max-work bounds what a pattern may take") {
  const std::string strided = " -S 4194304 -H 4 -D 64 -p 'causal & strided(512, 4, 64)'";
  const Outcome refused = annulus_with("explain" + strided + " --max-work 1000000" + on_device());
  CHECK(refused.code == 2);
  CHECK(refused.err.find("the limit of the call") + refused.err.find("of the call's") !=
        2 * std::string::npos);
  CHECK(refused.err.find("--max-work") != std::string::npos);
  // If a plan is cheap but counting its pairs is not, everything except the density is printed.
  const base::Json told = json_of(
      "explain --json -S 65536 -H 1 -D 64 -p 'strided(7, 2, 1)' --max-work 3000000" + on_device());
  CHECK(told["density"].is_null());
  CHECK(told["work_steps"] > 0);
  const Outcome layout = annulus_with(
      "pattern stats -S 1048576 --block 1x1 -H 1 -p 'random(65536, 1, 1)' --max-work 1000000");
  CHECK(layout.code == 2);
  CHECK(layout.err.find("the rows of the layout would take") != std::string::npos);
  CHECK(annulus_with("pattern stats -S 4096 -p causal --max-work 0").code == 0);
}

TEST_CASE("explain shows the choice, the reasons and the source") {
  const base::Json json =
      json_of("explain --json -S 1000 -D 128 -p 'causal | global([3, 700])'" + on_device());
  CHECK(json["decisions"].size() > 5);
  CHECK(json["rejected"].size() >= 1);
  CHECK(json["shared_bytes"] > 0);
  CHECK(json["shared_bytes"] <= json["shared_bytes_limit"]);
  CHECK(json["threads"] >= 128);
  CHECK(json["ctas_per_multiprocessor"] >= 1);
  const Outcome source = annulus_with("explain --source -S 1000 -D 128 -p causal" + on_device());
  CHECK(source.code == 0);
  CHECK(source.out.find("#include \"kernels/mma/mma_forward.cu\"") != std::string::npos);
  CHECK(source.out.find("m.causal(q, k)") != std::string::npos);
  const Outcome brief = annulus_with("explain --brief -S 1000 -D 128 -p causal" + on_device());
  CHECK(brief.out.find("predicted") != std::string::npos);
  CHECK(brief.out.find("not taken") == std::string::npos);
  refused("explain --brief --json -S 1000 -D 128" + on_device(), 2, "--brief");
  refused("run --sq 64", 2, "--sq is not an option; did you mean --seq?");
  refused("run --headz=2 -S 64", 2, "--headz is not an option; did you mean --heads?");
  const std::string config = json["config"].get<std::string>();
  CHECK(json_of("explain --json -S 1000 -D 128 --config '" + config + "'" +
                on_device())["config"] == config);
}

TEST_CASE("explain knows what GPUs that are not here would be given") {
  const base::Json json = json_of("explain --json -S 4096 -D 128 -p causal --device h100");
  CHECK(json["device"] == "h100");
  CHECK(json["architecture"] == "sm_90a");
  CHECK_FALSE(json["here"].get<bool>());
  CHECK(json["kernel"].get<std::string>().starts_with("wgmma"));
  CHECK(json["registers"].is_null());
  CHECK(json["predicted_micros"] > 0);  // null if it is infinite
  // All GPUs of an architecture have the same kernel, and each has its own predicted time.
  const base::Json plans =
      json_of("explain --json -S 4096 -D 128 -p causal --device sm_89")["plans"];
  REQUIRE(plans.size() == 3);
  CHECK(plans[0]["device"] == "l4");
  CHECK(plans[0]["predicted_micros"] > plans[1]["predicted_micros"]);
  const Outcome text = annulus_with("explain --brief -S 4096 -D 128 -p causal --device sm_89");
  CHECK(text.code == 0);
  CHECK(text.out.find("l40s, sm_89, not here: NVIDIA L40S") != std::string::npos);
  refused("explain -S 64 --device h101", 2, "'h101' is not the name of a known GPU");
  refused("explain --requests 1/64 --device h100", 2, "sim:sm_90a");
}

TEST_CASE("doctor says what would be used") {
  const test::ScratchFolder cache;
  const base::Json json = json_of("doctor --json --cache-dir " + cache.path() + on_device());
  CHECK(json["device"]["name"] == test::device_name());
  CHECK(json["device"]["problem"] == "");
  CHECK(json["libraries"]["nvrtc"]["usable"] == true);
  CHECK(json["cache"]["usable"] == true);
  CHECK(json["environment"].size() == 9);
  CHECK(json["compiled_ahead"].is_array());
  CHECK(json["device"]["compile_problem"] == "");
  const Outcome words = annulus_with("doctor" + on_device());
  CHECK(words.code == 0);
  const bool nccl = json["libraries"]["nccl"]["usable"] == true;
  CHECK((words.out.find("needed only by communicators") == std::string::npos) == nccl);
  const Outcome broken = annulus_with("doctor --device sim:sm_80:77");
  CHECK(broken.code == 4);
  CHECK(broken.out.find("does not open") != std::string::npos);
}

// Writes q with `rows` rows in q_batch batches, and k and v with `k_rows` rows in one batch. There
// are 2 heads of 32, in the order BSHD.
void write_tensors(const std::string& path, base::TensorType type, std::int64_t rows,
                   std::int64_t k_rows, const char* q_name = "q", std::int64_t q_batch = 1) {
  const std::size_t size = base::size_in_bytes(type);
  std::vector<std::byte> ones(static_cast<std::size_t>(std::max(q_batch * rows, k_rows)) * 64 *
                              size);
  for (std::size_t i = 0; i < ones.size(); i += size) {  // 1.0 in each type
    if (type == base::TensorType::kF32) ones[i + 2] = std::byte{0x80};
    if (type == base::TensorType::kBF16) ones[i] = std::byte{0x80};
    ones[i + size - 1] = type == base::TensorType::kF16 ? std::byte{0x3c} : std::byte{0x3f};
  }
  std::vector<base::NamedTensor> tensors;
  struct Named {
    const char* name;
    std::int64_t batch, rows;
  };
  for (const auto& [name, batch, count] :
       {Named{q_name, q_batch, rows}, Named{"k", 1, k_rows}, Named{"v", 1, k_rows}}) {
    base::NamedTensor tensor;
    tensor.name = name;
    tensor.tensor.type = type;
    tensor.tensor.shape = {batch, count, 2, 32};
    tensor.tensor.bytes =
        std::span(ones).first(static_cast<std::size_t>(batch * count) * 64 * size);
    tensors.push_back(tensor);
  }
  base::FileSystem files;
  base::write_safetensors(files, path, tensors, {});
}

TEST_CASE("tensors come from a file in any of three types, and O goes to one") {
  const test::ScratchFolder folder;
  const std::string input = folder / "in.safetensors";
  const std::string output = folder / "out.safetensors";
  for (const base::TensorType type :
       {base::TensorType::kF16, base::TensorType::kBF16, base::TensorType::kF32}) {
    write_tensors(input, type, 20, 30);
    const base::Json json =
        json_of("run --json -i " + input + " -o " + output + " -p causal" + on_device());
    CHECK(json["problem"]["seq_q"] == 20);
    CHECK(json["problem"]["seq_k"] == 30);
    CHECK(json["problem"]["heads"] == 2);
    CHECK(json["problem"]["dtype"] == (type == base::TensorType::kF16 ? "fp16" : "bf16"));
    base::FileSystem files;
    const base::Safetensors file = base::read_safetensors(files, output);
    const base::TensorView& o = file.tensors.at("o");
    CHECK(o.shape == std::vector<std::int64_t>{1, 20, 2, 32});
    // An average of ones is one.
    CHECK(o.bytes[1] == (type == base::TensorType::kF16 ? std::byte{0x3c} : std::byte{0x3f}));
    CHECK(file.tensors.at("lse").shape == std::vector<std::int64_t>{1, 2, 20});
  }
  const base::Json forced = json_of("run --json --dtype fp16 -i " + input + on_device());
  CHECK(forced["problem"]["dtype"] == "fp16");
  // Read as [B, H, S, D], Q has 20 heads of 2 rows, and K has 30.
  refused("run --layout bhsd -i " + input + on_device(), 2, "20 query heads");
}

TEST_CASE("a NaN in the input is said, and the rows it cannot reach are still checked") {
  const test::ScratchFolder folder;
  const std::string input = folder / "in.safetensors";
  write_tensors(input, base::TensorType::kF16, 300, 300);
  // The file has the header's length, the header, and k. The changed byte is in k's last value.
  std::string bytes = read(input);
  const std::size_t data = bytes.size() - 3 * 300 * 64 * 2;
  bytes[data + 300 * 64 * 2 - 1] = '\x7e';
  std::ofstream(input, std::ios::binary) << bytes;
  const base::Json json = json_of("run --json -p causal -i " + input + on_device());
  CHECK(json["tainted_rows"] > 0);
  CHECK(json["checked_rows"] > 300);
  CHECK(json["within_law"] == true);
}

TEST_CASE("where nothing could be compared, that is said, and is no success") {
  const test::ScratchFolder folder;
  const std::string command = "run -S 64 -H 1 -D 32 --score 'score_mod(score / 0)'" + on_device();
  const Outcome text = annulus_with(command);
  CHECK(text.code == 3);
  CHECK(text.out.find("nothing was compared: all 64 rows") != std::string::npos);
  CHECK(text.out.find("within tolerance") == std::string::npos);
  const Outcome outcome = annulus_with(command + " --json");
  CHECK(outcome.code == 3);
  const base::Json json = base::parse_json(outcome.out, "run");
  CHECK(json["compared_nothing"] == true);
  CHECK(json["within_tolerance"].is_null());
  CHECK(json["checked_rows"] == 0);
  // Without rows there is nothing to compare, and that is not an error.
  CHECK(json_of("run --json -S 0 -H 1 -D 32" + on_device())["compared_nothing"] == false);

  // 100000 is finite in F32 and in BF16, and not in fp16.
  const std::string input = folder / "in.safetensors";
  write_tensors(input, base::TensorType::kF32, 20, 30);
  std::string bytes = read(input);
  const std::size_t data = bytes.size() - (20 + 30 + 30) * 64 * 4;
  const float large = 100000;
  std::memcpy(bytes.data() + data, &large, 4);
  std::ofstream(input, std::ios::binary) << bytes;
  const base::Json overflowed = base::parse_json(
      annulus_with("run --json --dtype fp16 -i " + input + on_device()).out, "run");
  CHECK(overflowed["overflowed_values"] == 1);
  CHECK(overflowed["input"].get<std::string>().find("1 finite values became infinite in fp16") !=
        std::string::npos);
  CHECK(json_of("run --json -i " + input + on_device())["overflowed_values"] == 0);
}

TEST_CASE("what the options say is followed or refused, never passed over") {
  const test::ScratchFolder folder;
  const std::string input = folder / "in.safetensors";
  write_tensors(input, base::TensorType::kF16, 20, 30);
  for (const char* option : {"--seq 64", "--heads 9", "--dim 96", "--batch 7", "--kv-heads 1",
                             "--seq-k 9", "--seed 3"}) {
    const std::string name = std::string(option).substr(0, std::string(option).find(' '));
    refused("run -i " + input + " " + option, 2, name + " excludes --input");
    refused("explain -i " + input + " " + option, 2, name + " excludes --input");
  }
  refused("run -S 64 -H 1 -D 64 --scale-block 64" + on_device(), 2, "--scale-block is 64");
  refused("explain -S 64 --source --json", 2, "excludes");
  for (const char* option : {"--heads 3", "--pattern causal", "--carry in", "--scale-block 32"}) {
    refused("tune --dry-run --shapes small " + std::string(option) + on_device(), 2,
            "excludes --shapes");
  }
}

TEST_CASE("an input is never written over, and pictures are called what they are") {
  const test::ScratchFolder folder;
  const std::string input = folder / "in.safetensors";
  write_tensors(input, base::TensorType::kF16, 20, 30);
  const std::string whole = read(input);
  const std::string other = folder / "other";
  std::filesystem::create_hard_link(input, other);
  for (const std::string& output : {input, other}) {
    refused("run -i " + input + " -o " + output + on_device(), 2, "would be lost");
    refused("run --ranks 2 -i " + input + " --picture " + output + on_device(), 2, "would be lost");
  }
  refused("run --ranks 2 -S 64 --picture x.png" + on_device(), 2, "name it .svg");
  CHECK(read(input) == whole);
}

TEST_CASE("folders named from where one stands are those folders") {
  const test::ScratchFolder folder;
  const std::string there = "env -C " + folder.path() + " ";
  const Outcome outcome =
      test::run_command(there + ANNULUS_PROGRAM +
                        " run --json -S 40 -H 1 -D 32 --cache-dir kernels --tuned t" + on_device());
  CHECK(outcome.code == 0);
  // There is no message of the library. If kernels take seconds to compile, there are lines of
  // progress.
  CHECK(outcome.err.find("annulus:") == std::string::npos);
  CHECK(std::filesystem::is_directory(folder / "kernels"));
  // An environment variable accepts the same word as the option.
  const Outcome none = test::run_command(std::string("env ANNULUS_TUNED=none ") + ANNULUS_PROGRAM +
                                         " run -S 40 -H 1 -D 32" + on_device());
  CHECK(none.code == 0);
  CHECK(none.err.find("annulus:") == std::string::npos);
}

TEST_CASE("a simulated device that nobody asked for is said, and refused where a GPU is required") {
  if (!test::on_simulator()) return;
  const std::string run = std::string(ANNULUS_PROGRAM) + " run -S 40 -H 1 -D 32 --no-check";
  const std::string unset = "env -u ANNULUS_DEVICE -u ANNULUS_REQUIRE_GPU ";
  const Outcome fallen = test::run_command(unset + run);
  CHECK(fallen.code == 0);
  CHECK(fallen.err.find("a simulated device") != std::string::npos);
  const std::string require = "env -u ANNULUS_DEVICE ANNULUS_REQUIRE_GPU=1 ";
  for (const std::string& command : {run, run + " --device sim:sm_80", run + " --device cuda"}) {
    CAPTURE(command);
    const Outcome outcome = test::run_command(require + command);
    CHECK((outcome.code == 4));
    CHECK(outcome.out.empty());
  }
  CHECK(test::run_command(require + run).err.find("ANNULUS_REQUIRE_GPU is '1'") !=
        std::string::npos);
}

TEST_CASE("arrays of NumPy are called so, and orders and dtypes that are odd are told") {
  const test::ScratchFolder folder;
  const std::string npy = folder / "x.npy";
  std::ofstream(npy, std::ios::binary) << "\x93NUMPY\x01 and more of it than eight bytes";
  refused("run -i " + npy, 5, "a NumPy array (.npy)");
  std::ofstream(npy, std::ios::binary) << "PK\x03\x04 and more of it than eight bytes";
  refused("run -i " + npy, 5, "NumPy's .npz");
  const std::string input = folder / "in.safetensors";
  // Two heads of one key are more likely two keys of one head.
  write_tensors(input, base::TensorType::kF16, 4, 1);
  const auto told = [&](const std::string& more) {
    return json_of("run --json -i " + input + more + on_device())["input"].get<std::string>();
  };
  CHECK(told("").find("K has 2 heads of 1 rows") != std::string::npos);
  CHECK(told(" --layout bshd").find("--layout") == std::string::npos);
  // The tensors have different types.
  const std::vector<std::byte> zeros(4 * 64 * 4);
  std::vector<base::NamedTensor> mixed(3);
  for (std::size_t i = 0; i < 3; ++i) {
    using enum base::TensorType;
    mixed[i].name = std::string(1, "qkv"[i]);
    mixed[i].tensor.type = std::array{kF16, kBF16, kF32}[i];
    mixed[i].tensor.shape = {1, 4, 2, 32};
    mixed[i].tensor.bytes =
        std::span(zeros).first(4 * 64 * base::size_in_bytes(mixed[i].tensor.type));
  }
  base::FileSystem files;
  base::write_safetensors(files, input, mixed, {});
  CHECK(told("").find("(F16, BF16 and F32 as fp16)") != std::string::npos);
}

TEST_CASE("Ctrl-C ends a run by that signal, also while NVRTC compiles") {
  const test::ScratchFolder folder;
  for (const char* when : {"0.3", "0.8"}) {
    const std::string command = std::string("timeout --preserve-status -s INT ") + when + " " +
                                ANNULUS_PROGRAM +
                                " run --cache-dir none -H 8 -S 4096 -D 128 -p 'causal & "
                                "window(700, 0)'" +
                                on_device() + " >/dev/null 2>" + (folder / "err");
    const int status = std::system(command.c_str());
    CAPTURE(when);
    CAPTURE(status);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 128 + SIGINT);
  }
}

TEST_CASE("the counters of a run are told to those who ask") {
  if (!test::on_simulator()) return;
  const std::string command = "run --no-check -S 40 -H 1 -D 32" + on_device();
  CHECK(annulus_with(command).out.find("counted") == std::string::npos);
  CHECK(annulus_with(command + " -v").out.find("counted") != std::string::npos);
}

TEST_CASE("one batch of K and V serves every batch of Q, made up or from a file") {
  const std::string shape = "run --json -B 3 -H 2 --kv-heads 1 -S 70 -D 32 -p causal ";
  for (const char* rest : {"--kv-batch 1", "--kv-batch 1 --layout bhsd"}) {
    const base::Json json = json_of(shape + rest + on_device());
    CHECK(json["within_law"] == true);
    CHECK(json["checked_rows"] == 3 * 2 * 70);
    CHECK(json["input"] == "random, seed 0, one batch of K and V");
  }
  // With as many batches of K and V as of Q, the input is the usual one.
  CHECK(json_of(shape + "--kv-batch 3" + on_device())["input"] == "random, seed 0");
  refused(shape + "--kv-batch 2" + on_device(), 2, "--kv-batch is 2, but Q has 3 batches");
  CHECK(json_of(shape + "--kv-batch 1 --ranks 2 --device sim:sm_80")["within_law"] == true);
  // Tensor maps do not support a stride of 0, and all kernels of e4m3 use tensor maps.
  refused("run -B 2 -S 64 -D 64 --dtype e4m3 --kv-batch 1 --device sim:sm_90a", 2,
          "the batch stride of K is 0");

  const test::ScratchFolder folder;
  const std::string input = folder / "in.safetensors";
  write_tensors(input, base::TensorType::kF16, 20, 30, "q", 2);
  const base::Json json = json_of("run --json -p causal -i " + input + on_device());
  CHECK(json["problem"]["batch"] == 2);
  CHECK(json["checked_rows"] == 2 * 2 * 20);
  CHECK(json["within_law"] == true);
  refused("run --kv-batch 2 -i " + input + on_device(), 2, "--kv-batch is 2");
}

TEST_CASE("positions are given by --q0 and --k0") {
  // Queries 0 to 29 and keys 10 to 49: causal sees (29 - 10 + 1) (29 - 10 + 2) / 2 pairs.
  const base::Json json =
      json_of("run --json -H 1 -S 30 --seq-k 40 --q0 0 --k0 10 -D 32 -p causal" + on_device());
  CHECK(json["density"].get<double>() == doctest::Approx(210.0 / 1200));
  CHECK(json["within_law"] == true);
  CHECK(json["problem"]["q0"] == 0);
  CHECK(json["problem"]["k0"] == 10);
  CHECK(json_of("run --json -H 1 -S 30 --seq-k 40 --q0 -30 -D 32 -p causal" +
                on_device())["density"] == 0);
  refused("run -S 10 --q0 2000000000" + on_device(), 2, "q0");
  refused("run -S 10 --q0 1.5" + on_device(), 2, "--q0");
}

TEST_CASE("patterns and scores come from files") {
  const test::ScratchFolder folder;
  const std::string pattern = folder / "pattern";
  const std::string score = folder / "score";
  std::ofstream(pattern) << "causal &\n  (window(9, 0) | every(4, 1))\n";
  std::ofstream(score) << "softcap(30),\nscore_mod(where(q - k < 5, score, score - 1.0))\n";
  const base::Json json = json_of("run --json -H 2 -S 60 -D 32 --pattern @" + pattern +
                                  " --score @" + score + on_device());
  CHECK(json["problem"]["pattern"] == "causal & (window(9, 0) | every(4, 1))");
  CHECK(json["problem"]["softcap"] == 30);
  CHECK(json["within_law"] == true);
  CHECK(annulus_with("pattern stats --seq 64 -p @" + pattern).code == 0);
  refused("run -S 10 -p @" + (folder / "none"), 5, "cannot open");
  refused("run -S 10 -p @", 5, "");
  refused("run -S 10 --score @" + folder.path(), 5, folder.path());
  std::ofstream(pattern) << "cuasal";
  refused("run -S 10 -p @" + pattern, 2, "did you mean 'causal'");
}

TEST_CASE("files that are none, damaged or of other tensors") {
  const test::ScratchFolder folder;
  const std::string path = folder / "x.safetensors";
  refused("run -i " + path, 5, "cannot open");
  std::ofstream(path) << "not a tensor file at all, but long enough";
  refused("run -i " + path, 5, "safetensors");
  write_tensors(path, base::TensorType::kF16, 20, 30, "queries");
  refused("run -i " + path, 5, "has no tensor 'q'; it holds k, queries, v");
  write_tensors(path, base::TensorType::kI32, 20, 30);
  refused("run -i " + path, 5, "is I32; store it as F16, BF16 or F32");
  write_tensors(path, base::TensorType::kF16, 20, 30);
  const std::string whole = read(path);
  for (const std::size_t keep :
       {std::size_t{0}, std::size_t{7}, std::size_t{100}, whole.size() - 1}) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, keep);
    refused("run -i " + path, 5, path);
  }
  refused("run -i " + folder.path(), 5, folder.path());
  refused("run -p 'blocks(\"" + path + "\")' -S 10", 5, path);
  const std::string layout = folder / "short.layout";
  save_layout(make_layout(causal(), {8, 8, 16, 16}), layout);
  refused("run --device sim:sm_80 -p 'blocks(\"" + layout + "\")' -S 17", 2,
          "layout of Sq 16 x Sk 16");
  refused("run --device sim:sm_80 -p 'blocks(\"" + layout + "\")' --requests 1/16", 2,
          "has no kernel for batches");
  refused("pattern stats -p 'blocks(\"" + layout + "\")' -S 17 --block 8x8", 2, "Sq 17 x Sk 17");
}

TEST_CASE("every option that is wrong is one line and the exit code of its kind") {
  refused("", 2, "no verb");
  refused("fly", 2, "'fly' is not a verb");
  refused("run --no-such", 2, "--no-such");
  refused("run --seq abc", 2, "abc");
  refused("run --seq -5", 2, "seq_q (Sq) is -5");
  refused("run --seq-k -5", 2, "seq_k (Sk) is -5");
  refused("run --heads 3 --kv-heads 2", 2, "3 query heads");
  refused("run --dim 80", 2, "supported are 32, 64, 96, 128, 192, 192/128, 256");
  refused("run --dim 128/64", 2, "128/64");
  refused("run --dim 12x", 2, "'12x' in --dim");
  refused("run --dtype fp8", 2, "fp8");
  refused("run --pattern 'causal('", 2, "column 7");
  refused("run --pattern 'fancy'", 2, "column 1");
  refused("run --pattern ''", 2, "column");
  refused("run --block 0x3", 2, "--block is 0x3");
  refused("run --scale nan", 2, "scale is nan");
  refused("run --scale 1e999", 2, "--scale");
  refused("run --scale ''", 2, "'' is not a number");
  refused("run --softcap -3", 2, "softcap is -3");
  refused("run --lse-base e", 2, "--lse-base");
  refused("run --repeat 0", 2, "--repeat");
  refused("run --config zzz -S 10" + on_device(), 2, "'zzz' is not a kernel configuration");
  refused("run --device gpu", 2, "'gpu' names no device");
  refused("run --device sim:sm_80:99 -S 10", 4, "there is no device");
  refused("run --seq 1000000000 --heads 64", 2, "GB of host memory");
  refused("run --batch 99999999999999999999", 2, "batch");
  for (const char* option : {"--batch", "--heads", "--kv-heads", "--seq", "--seq-k", "--softcap",
                             "--seed", "--sim-seed", "--sim-threads", "--repeat"}) {
    for (const char* value : {"''", "' '", "1x", "0x10", "1e999"}) {
      refused("run " + std::string(option) + " " + value, 2, option);
    }
  }
  refused("run --seed -1", 2, "--seed");
  refused("run --seed 18446744073709551616", 2, "--seed");
  refused("run --sim-threads 1025", 2, "--sim-threads");
  refused("run --templates /nonexistent -S 10", 5, "/nonexistent");
  refused("run -S 10 -H 1 -D 32 -o /dev/null/o --no-check" + on_device(), 5, "/dev/null/o");
}

TEST_CASE("templates of the user's: what is wrong with them is named by file and line") {
  const test::ScratchFolder folder;
  std::filesystem::copy(ANNULUS_TEMPLATES, folder / "t", std::filesystem::copy_options::recursive);
  const std::string kernel = folder / "t/kernels/mma/mma_forward.cu";
  const std::string command =
      "run -S 200 -H 1 -D 64 --cache-dir none --templates " + (folder / "t") + on_device();
  CHECK(annulus_with(command).code == 0);
  const std::string whole = read(kernel);
  std::ofstream(kernel) << whole << "\nnonsense\n";
  refused(command, 1, "/annulus/kernels/mma/mma_forward.cu(");
  if (!test::on_simulator()) return;
  // Without its barriers, the kernel reads data that other warps have not copied yet.
  std::string racy = whole;
  for (std::size_t at = 0; (at = racy.find("__syncthreads();", at)) != std::string::npos;) {
    racy.replace(at, 16, ";");
  }
  REQUIRE(racy != whole);
  std::ofstream(kernel) << racy;
  refused(command, 4, "/annulus/kernels/mma/mma_forward.cu:");
}

TEST_CASE("help and version are no errors") {
  CHECK(annulus_with("--help").code == 0);
  CHECK(annulus_with("run --help").out.find("--pattern") != std::string::npos);
  CHECK(annulus_with("--version").out.find('.') != std::string::npos);
}

TEST_CASE("results that cannot be written are no success, and devices are not written over") {
  const test::ScratchFolder folder;
  for (const char* arguments : {"doctor", "--help", "explain -S 10 -H 1 -D 32", "run --help"}) {
    for (const char* to : {">/dev/full", ">&-"}) {
      CAPTURE(arguments);
      CAPTURE(to);
      const std::string command = std::string(ANNULUS_PROGRAM) + " " + arguments + " " + to +
                                  " 2>" + (folder / "err") + " </dev/null";
      const int status = std::system(command.c_str());
      CHECK(WIFEXITED(status));
      CHECK(WEXITSTATUS(status) == 5);
      CHECK(read(folder / "err").find("cannot write to standard output") != std::string::npos);
    }
  }
  // Output files are checked before anything is computed, and so before a device is opened.
  refused("run -S 10 -H 1 -D 32 --device cuda:99 -o " + (folder / "none/o"), 5, "none/o");
  REQUIRE(std::system(("mkfifo " + (folder / "pipe")).c_str()) == 0);
  refused("run -S 10 -H 1 -D 32 --no-check -o " + (folder / "pipe") + on_device(), 5,
          "is not a regular file");
}

TEST_CASE("a limit on the size of files costs the cache and nothing else") {
  const test::ScratchFolder folder;
  REQUIRE(chmod(folder.path().c_str(), 0700) == 0);
  const std::string command = "(ulimit -f 0; " + std::string(ANNULUS_PROGRAM) +
                              " run -S 20 -H 1 -D 32 --json --cache-dir " + folder.path() +
                              on_device() + " 2>/dev/null) | cat";
  std::FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string text;
  char part[4096];
  for (std::size_t n; (n = std::fread(part, 1, sizeof(part), pipe)) > 0;) text.append(part, n);
  pclose(pipe);
  const base::Json json = base::parse_json(text, "run");
  CHECK(json["within_law"] == true);
  CHECK(json["source"] == "compiled");
}

// A plan for one rank uses clusters whose CTAs take neighbouring rows. A ring may place other rows
// next to each other, so it uses another configuration.
TEST_CASE("run names the kernel of the ring beside the ring's configuration") {
  const std::string problem =
      " --json --device sim:sm_90a --seq 768 --heads 2 --kv-heads 2 --dim 256 "
      "--pattern dense";
  CHECK(json_of("explain" + problem)["kernel"] == "wgmma_cluster_forward");
  const base::Json ring = json_of("run --no-check --ranks 2" + problem);
  CHECK(ring["kernel"] == "wgmma_forward");
  const auto config = ring["config"].get<std::string>();
  CHECK(config.starts_with("wgmma "));
  CHECK(config.find(" c2") == config.npos);
}

TEST_CASE("ranks that meet on one simulated device are counted once") {
  const std::string ring = "run --json --no-check --ranks 4 -H 2 -S 128 -D 64 --pattern causal";
  setenv("ANNULUS_DEVICE", "sim:sm_80", 1);
  const base::Json apart = json_of(ring);
  setenv("ANNULUS_DEVICE", "sim:sm_80:2", 1);
  const base::Json together = json_of(ring);
  unsetenv("ANNULUS_DEVICE");
  CHECK(apart["rank_devices"][1] == "sim:sm_80:1");
  CHECK(together["rank_devices"] == std::vector<std::string>(4, "sim:sm_80:2"));
  CHECK(apart["counters"]["launches"] > 0);
  CHECK(together["counters"]["launches"] == apart["counters"]["launches"]);
}

TEST_CASE("run goes around a ring and says what it cost") {
  const test::ScratchFolder folder;
  const std::string common =
      "run --json --heads 2 --seq 300 --dim 64 --pattern 'causal & window(70,0)' --device " +
      test::device_name();
  const base::Json one = json_of(common);
  CHECK(one["ranks"] == 1);
  CHECK(one["predicted_micros"].get<double>() > 0);
  CHECK(one["bytes_sent"] == 0);
  CHECK(one["route"].is_null());
  CHECK(one["max_difference_from_one_rank"].is_null());
  for (const char* shard : {"contiguous", "zigzag"}) {
    CAPTURE(shard);
    const base::Json ring =
        json_of(common + " --ranks 4 --shard " + shard + " --picture " + (folder / "ring.svg"));
    CHECK(ring["ranks"] == 4);
    CHECK(ring["predicted_micros"].get<double>() > 0);
    CHECK(ring["within_law"] == true);
    CHECK(ring["faults"] == 0);
    CHECK(ring["bytes_sent"] > 0);
    CHECK(ring["bytes_plain_ring"] == 3 * 300 * 2 * 2 * 64 * 2);
    CHECK(ring["bytes_sent"] < ring["bytes_plain_ring"]);
    CHECK(ring["bytes_needed"] == ring["bytes_sent"]);
    CHECK(ring["bytes_relayed"] == 0);
    CHECK(ring["route"] == "direct");
    CHECK(ring["rounds"] == (std::string_view(shard) == "contiguous" ? 1 : 3));
    CHECK(ring["messages"] > 2);
    CHECK(ring["peak_bytes_per_rank"] > 0);
    CHECK(ring["max_difference_from_one_rank"] <= 0.05);
    const std::string picture = read(folder / "ring.svg");
    CHECK(picture.starts_with("<svg"));
    CHECK(picture.find("keys of rank 3") != picture.npos);
  }
  const base::Json more = json_of(common + " --ranks 7 --no-check");
  CHECK(more["within_law"].is_null());
  CHECK(more["max_difference_from_one_rank"].is_null());
  const base::Json hops = json_of(common + " --ranks 4 --route ring");
  CHECK(hops["route"] == "ring");
  CHECK(hops["within_law"] == true);
  CHECK(json_of(common + " --ranks 2 --block 32x32")["within_tolerance"] == true);
  refused(common + " --ranks 0", 2, "--ranks");
  refused(common + " --ranks 4097", 2, "--ranks");
  refused(common + " --shard zigzag", 2, "--ranks");
  refused(common + " --ranks 2 --shard striped", 2, "striped");
  refused(common + " --ranks 2 --route around", 2, "around");
  refused(common + " --route ring", 2, "--ranks");
  refused(common + " --ranks 2 --picture /no/such/folder/x.svg", 5, "/no/such/folder");
}

TEST_CASE("ranks in processes of their own give the bits of ranks in one, and say who failed") {
  if (!test::on_simulator()) return;
  const test::ScratchFolder folder;
  const std::string common =
      "run --json --heads 2 --seq 300 --dim 64 --pattern 'causal & window(70,0)' --ranks 3" +
      on_device();
  const base::Json apart = json_of(common + " --processes -o " + (folder / "apart.safetensors"));
  CHECK(apart["processes"] == 3);
  CHECK(apart["transport"] == "nccl");
  CHECK(apart["within_law"] == true);
  const base::Json together =
      json_of(common + " --no-check -o " + (folder / "together.safetensors"));
  CHECK(together["processes"] == 1);
  CHECK(together["transport"] == "local");
  for (const char* key : {"kernel", "config", "launches", "bytes_sent", "rounds", "messages",
                          "peak_bytes_per_rank", "predicted_micros"}) {
    CAPTURE(key);
    CHECK(apart[key] == together[key]);
  }
  CHECK(read(folder / "apart.safetensors") == read(folder / "together.safetensors"));
  refused(common + " --processes --deadline -1", 2, "--deadline");
  refused(common + " --deadline 5", 2, "--processes");
  // The process that started the ranks prints the JSON object of an error.
  const Outcome seated = annulus_with(common + " --seat x");
  CHECK(seated.code == 2);
  CHECK(seated.out.empty());
  CHECK(seated.err.find("--seat") != std::string::npos);
  // There are more ranks than devices.
  const Outcome many = annulus_with("run --no-check -S 64 --ranks 9 --processes" + on_device());
  CHECK(many.code == 4);
  CHECK(many.err.find(":8") != std::string::npos);
  CHECK(many.err.find("rank 8 has failed") != std::string::npos);
}

// The names of the spans in a trace, after "host" or "device".
std::set<std::string> spans_in(const std::string& file) {
  std::set<std::string> names;
  const base::Json trace = base::parse_json(read(file), "a trace");
  for (const base::Json& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    names.insert(event["cat"].get<std::string>() + " " + event["name"].get<std::string>());
  }
  return names;
}

TEST_CASE("--trace writes what was done, also where the verb fails") {
  const test::ScratchFolder folder;
  const std::string file = folder / "trace.json";
  const std::string small = "run -H 2 -S 200 -D 64 -p causal" + on_device() + " --trace ";
  CHECK(annulus_with(small + file + " --ranks 2").code == 0);
  const std::set<std::string> all = spans_in(file);
  for (const char* name :
       {"host open", "host plan", "host run", "device run", "host plan a ring", "host ring run"}) {
    CHECK_MESSAGE(all.contains(name), name);
  }
  CHECK(annulus_with(small + file + " --config none").code == 2);
  CHECK(spans_in(file) == std::set<std::string>{"host open", "host plan"});
  // If both the verb and the trace fail, the verb's error is printed. With a file size limit of 0 a
  // file can be made, but not written.
  const Outcome both =
      test::run_command("{ (trap '' XFSZ; ulimit -f 0; " + std::string(ANNULUS_PROGRAM) + " " +
                        small + file + " --config none) 2>&1 | cat; }");
  CHECK_MESSAGE(both.out.find("'none' is not a kernel configuration") != std::string::npos,
                both.out);
  refused(small + (folder / "trace.safetensors"), 2, "name it .json");
  refused(small + (folder / "none/trace.json"), 5, "No such file");
}

TEST_CASE("a profiler whose library cannot be used costs a warning") {
  const Outcome outcome =
      test::run_command("NVTX_INJECTION64_PATH=/no/such/profiler.so " +
                        std::string(ANNULUS_PROGRAM) + " explain -S 64 -D 64" + on_device());
  CHECK(outcome.code == 0);
  CHECK_MESSAGE(
      outcome.err.find("ranges are not passed on: /no/such/profiler.so") != std::string::npos,
      outcome.err);
}

}  // namespace
