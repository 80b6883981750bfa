// annulus run and explain for batches of requests.

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "base/safetensors.h"
#include "program/run_program.h"

namespace {

using namespace annulus;
using test::annulus_with;
using test::json_of;
using test::on_device;
using test::Outcome;
using test::read;
using test::refused;

const std::string kSmall = " -H 4 --kv-heads 2 -D 64 -p causal ";

TEST_CASE("a batch is run in every kind of pages, and held against the oracle") {
  const std::string requests = "run --json --requests '1/300 x 2, 1/17, 40/90' " + kSmall;
  for (const char* places : {"--page 16 --table csr", "--layout bhsd", "--page 7 --table dense",
                             "--page 0 --table csr", "--page 0 --table dense"}) {
    CAPTURE(places);
    const base::Json json = json_of(requests + places + on_device());
    CHECK(json["within_tolerance"] == true);
    CHECK(json["checked_rows"] == 4 * (1 + 1 + 1 + 40));
    CHECK(json["faults"] == 0);
  }
  const base::Json json =
      json_of(requests +
              "--part-keys 128 --score 'softcap(20)' --k0 5 --seed 3 --dtype fp16 "
              "--config 'chunk m64 n32 w4 s2, decode m16 n64 w4 s2' --lse-base two --repeat 2" +
              on_device());
  CHECK(json["within_tolerance"] == true);
  CHECK(json["part_keys"] == 128);
  CHECK(json["config"] == "decode m16 n64 w4 s2, chunk m64 n32 w4 s2");
  CHECK(json["problem"]["requests"] == 4);
  CHECK(json["problem"]["queries"] == 43);
  CHECK(json["problem"]["keys"] == 2 * 300 + 17 + 90);
  CHECK(json["problem"]["dtype"] == "fp16");
  CHECK(json["problem"]["lse_base"] == "two");
  CHECK(json["problem"]["softcap"] == 20);
  if (test::on_simulator()) CHECK(json["counters"]["launches"] == 2 * (1 + 3));
}

TEST_CASE("the text of a batch says what was run, and O and LSE of all requests go to a file") {
  const test::ScratchFolder folder;
  const std::string output = folder / "out.safetensors";
  const Outcome outcome =
      annulus_with("run --requests '2/30,1/4 x3' -v -o " + output + kSmall + on_device());
  CHECK(outcome.code == 0);
  for (const char* part :
       {"4 requests of 5 queries and 42 keys together", "pages of 16 rows by a table",
        "configuration decode m16", "over 20 rows: within tolerance"}) {
    CHECK_MESSAGE(outcome.out.find(part) != std::string::npos, outcome.out);
  }
  base::FileSystem files;
  const base::Safetensors file = base::read_safetensors(files, output);
  CHECK(file.tensors.at("o").shape == std::vector<std::int64_t>{1, 5, 4, 64});
  CHECK(file.tensors.at("lse").shape == std::vector<std::int64_t>{1, 4, 5});
  const Outcome unchecked = annulus_with("run --no-check --requests 1/30" + kSmall + on_device());
  CHECK(unchecked.out.find("not checked") != std::string::npos);
}

TEST_CASE("requests without keys, without queries, and with more queries than keys are requests") {
  const base::Json json =
      json_of("run --json --requests '1/0, 0/20, 5/3, 0/0, 70/2, 1/1'" + kSmall + on_device());
  CHECK(json["within_tolerance"] == true);
  CHECK(json["checked_rows"] == 4 * (1 + 5 + 70 + 1));
  CHECK(json_of("run --json --requests 0/0" + kSmall + on_device())["checked_rows"] == 0);
}

TEST_CASE("b of a score expression is the number of the request") {
  const base::Json json =
      json_of("run --json --requests '1/30, 2/20' --score 'score_mod(score + b * k)'" + kSmall +
              on_device());
  CHECK(json["within_tolerance"] == true);
}

TEST_CASE("a batch that is wrong ends with the request and the exit code of wrong results") {
  const test::ScratchFolder folder;
  std::filesystem::copy(ANNULUS_TEMPLATES, folder / "t", std::filesystem::copy_options::recursive);
  const std::string path = folder / "t/tile/batch_row.cuh";
  std::string text = read(path);
  const std::string right = "query = row / params.tile_heads;";
  REQUIRE(text.find(right) != std::string::npos);
  text.replace(text.find(right), right.size(), "query = row / params.tile_heads * 0;");
  std::ofstream(path) << text;
  const Outcome outcome =
      annulus_with("run --requests '1/9, 5/40'" + kSmall + "--cache-dir none --templates " +
                   (folder / "t") + on_device());
  CHECK(outcome.code == 6);
  CHECK(outcome.out.find("WRONG") != std::string::npos);
  CHECK_MESSAGE(outcome.err.find("wrong result: request 1: ") != std::string::npos, outcome.err);
}

TEST_CASE("explain tells what a batch was given and why") {
  const std::string batch = " --requests '1/4096 x 8, 1/77, 512/2048'" + kSmall + on_device();
  const base::Json json = json_of("explain --json" + batch);
  CHECK(json["config"].get<std::string>().starts_with("decode m16"));
  CHECK(json["decisions"].size() >= 2);
  CHECK(json["launches"] == 3);
  CHECK(json["ctas"] > 0);
  CHECK(json["part_keys"] >= 128);
  CHECK(json["shared_bytes"] <= json["shared_bytes_limit"]);
  CHECK(json["workspace_bytes"] > 0);
  CHECK(json["bytes_under_way"] > 0);
  const Outcome text = annulus_with("explain" + batch);
  CHECK(text.code == 0);
  for (const char* part : {"bytes of workspace", "under way", "\nwhy\n", "#include"}) {
    CHECK_MESSAGE(text.out.find(part) != std::string::npos, text.out);
  }
  CHECK(annulus_with("explain --brief" + batch).out.find("\nwhy\n") == std::string::npos);
  CHECK(annulus_with("explain --source" + batch)
            .out.find("#include \"kernels/batch/decode_forward.cu\"") != std::string::npos);
  // Nothing is allocated, so bounds of any size can be explained.
  CHECK(json_of("explain --json --requests '1/131072 x 256' -H 64 --kv-heads 8" +
                on_device())["problem"]["keys"] == 256 * 131072);
}

TEST_CASE("a list of requests that is none names the column") {
  refused("run --requests ''", 2, "column 1 of --requests: expected a number of queries");
  refused("run --requests 'decode'", 2, "column 1 of --requests: expected a number of queries");
  refused("run --requests 1", 2, "column 2 of --requests: expected '/'");
  refused("run --requests '1/'", 2, "column 3 of --requests: expected a number of keys");
  refused("run --requests '1/2 x'", 2, "column 6 of --requests: expected a number of requests");
  refused("run --requests '1/2,,3/4'", 2, "column 5 of --requests: expected a number of queries");
  refused("run --requests '1/2,'", 2, "column 5 of --requests: expected a number of queries");
  refused("run --requests '1/2; 3/4'", 2, "column 4 of --requests: expected ','");
  refused("run --requests '1/2 x 3 4'", 2, "column 9 of --requests: expected ','");
  refused("run --requests '1/2.5'", 2, "column 4 of --requests: expected ','");
  refused("run --requests '-1/2'", 2, "-1 is not a number of queries");
  refused("run --requests '1/1073741825'", 2, "1073741825 is not a number of keys");
  refused("run --requests '1/99999999999999999999'", 2,
          "99999999999999999999 is not a number of keys; give one from 0 to 1073741824");
  refused("run --requests '1/2 x 0'", 2, "0 is not a number of requests; give one from 1 to 65535");
  refused("run --requests '1/2 x 99999999999999999999'", 2, "is not a number of requests");
  refused("run --requests '1/2 x 40000, 1/3 x 40000'", 2, "--requests has 80000 requests");
  refused("run --requests '1/1 x 60000, 100000/1000000 x 5535'", 2, "GB of host memory");
  refused("run --requests '4/3' --k0 1073741823", 2, "positions");
}

TEST_CASE("options that batches do not have are refused with a reason") {
  for (const char* option : {"--batch 2", "--seq 4", "--seq-k 4", "--q0 3", "--kv-batch 1",
                             "--kv-splits 2", "--scale-block 64", "--layer 1", "--block 16x16"}) {
    const std::string given = option;
    const std::string name = given.substr(0, given.find(' ')) + " does not go with --requests: ";
    refused("run --requests 1/2 " + given, 2, name);
    refused("explain --requests 1/2 " + given, 2, name);
  }
  refused("run --requests 1/2 --input x", 2, "--input does not go with --requests: ");
  refused("run --requests 1/2 --ranks 2", 2, "--ranks does not go with --requests: ");
  for (const char* option : {"--page 16", "--table csr", "--part-keys 128", "--kv-dtype bf16"}) {
    refused("run -S 10 " + std::string(option), 2, "requires --requests");
  }
  refused("run --requests 1/2 --table coo", 2, "coo not in {dense,csr}");
  refused("run --requests 1/2 --page -1", 2, "page_rows is -1");
  refused("run --requests 1/2 --page ''", 2, "--page");
  refused("run --requests 1/2 --page 0 --layout bhsd", 2, "--page is 0");
  refused("run --requests 1/2 --part-keys 100" + on_device(), 2, "part_keys is 100");
  refused("run --requests 1/2 --config 'mma m64 n64 w4 s2'" + on_device(), 2,
          "no kernel 'mma' for batches, but decode, chunk_wgmma and chunk");
  refused("explain --requests 1/2 --config 'decode m16 n96 w4 s2'" + on_device(), 2,
          "is not possible here: 96 columns");
  // Options for which the library has no kernel.
  refused("run --requests 1/2 --dtype e4m3", 2,
          "(e4m3) of Q, K, V and O has no kernel for batches");
  refused("run --requests 1/2 --kv-dtype e4m3", 2, "--kv-dtype is e4m3");
  refused("explain --requests 1/2 --kv-dtype fp16", 2, "dtype of Q, which is bf16");
  refused("run --requests 1/2 -p 'strided(7, 2, 1)'" + on_device(), 2, "no kernel for batches");
}

}  // namespace
