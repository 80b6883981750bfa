// The main function of every test program: doctest's, and a few options more (support/options.h).
//   test_x --device cuda:0    device tests use this device; see support/device.h

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/options.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

annulus::test::Options parsed;

// Filters that no test case passes are a mistake, since such a run shows nothing.
bool ran_nothing = false;
struct RunWatcher : doctest::IReporter {
  explicit RunWatcher(const doctest::ContextOptions&) {}
  void report_query(const doctest::QueryData&) override {}
  void test_run_start() override {}
  void test_run_end(const doctest::TestRunStats& run) override {
    ran_nothing = run.numTestCasesPassingFilters == 0;
  }
  void test_case_start(const doctest::TestCaseData&) override {}
  void test_case_reenter(const doctest::TestCaseData&) override {}
  void test_case_end(const doctest::CurrentTestCaseStats&) override {}
  void test_case_exception(const doctest::TestCaseException&) override {}
  void subcase_start(const doctest::SubcaseSignature&) override {}
  void subcase_end() override {}
  void log_assert(const doctest::AssertData&) override {}
  void log_message(const doctest::MessageData&) override {}
  void test_case_skipped(const doctest::TestCaseData&) override {}
};
REGISTER_LISTENER("nothing", 1, RunWatcher);

// Takes "--name value" off the arguments.
const char* value_of(std::vector<char*>* arguments, const char* name) {
  for (std::size_t i = 1; i + 1 < arguments->size(); ++i) {
    if (std::strcmp((*arguments)[i], name) != 0) continue;
    const char* value = (*arguments)[i + 1];
    arguments->erase(arguments->begin() + static_cast<std::ptrdiff_t>(i),
                     arguments->begin() + static_cast<std::ptrdiff_t>(i) + 2);
    return value;
  }
  return nullptr;
}

}  // namespace

const annulus::test::Options& annulus::test::options() { return parsed; }

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  // The library reads this variable too, so that Device::open({}) opens the same device.
  if (const char* device = value_of(&arguments, "--device")) setenv("ANNULUS_DEVICE", device, 1);
  if (const char* count = value_of(&arguments, "--problems")) parsed.problems = std::atoi(count);
  if (const char* count = value_of(&arguments, "--orders")) parsed.orders = std::atoi(count);
  if (const char* count = value_of(&arguments, "--kills")) parsed.kills = std::atoi(count);
  if (const char* length = value_of(&arguments, "--length")) parsed.length = std::atoi(length);
  if (value_of(&arguments, "--record") != nullptr) parsed.record = true;
  if (const char* seed = value_of(&arguments, "--seed")) {
    parsed.seed = std::strtoull(seed, nullptr, 10);
  }
  doctest::Context context(static_cast<int>(arguments.size()), arguments.data());
  const int code = context.run();
  if (!ran_nothing) return code;
  std::fprintf(stderr, "%s: no test case has these names and files\n", argv[0]);
  return 1;
}
