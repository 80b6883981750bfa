// The main function of every test program. It adds some options to doctest's (support/options.h).
//   test_x --device cuda:0    device tests use this device; see support/device.h
//   test_x --tenth today      runs a tenth of the test cases, drawn by the date; see draw_tenth()

#define DOCTEST_CONFIG_IMPLEMENT
#include "support/options.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

namespace {

annulus::test::Options parsed;

// A filter that selects no test case is a mistake, because the run then tests nothing.
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

// Removes "--name value" from the arguments, and returns the value.
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

// The date in UTC as a number: 20270131 is the last day of January 2027.
std::uint64_t today() {
  const std::time_t now = std::time(nullptr);
  std::tm date{};
  gmtime_r(&now, &date);
  return static_cast<std::uint64_t>((date.tm_year + 1900) * 10000 + (date.tm_mon + 1) * 100 +
                                    date.tm_mday);
}

// This is the FNV-1a hash. A test case has the same number in every build, so the draw of a day can
// be repeated.
std::uint64_t number_of(const std::string& text, std::uint64_t seed) {
  std::uint64_t hash = 14695981039346656037U ^ (seed * 0x9E3779B97F4A7C15U);
  for (const char character : text) {
    hash = (hash ^ static_cast<unsigned char>(character)) * 1099511628211U;
  }
  return hash ^ (hash >> 29);
}

// Leaves out the test cases that `seed` does not draw. Each is drawn with a probability of 1/10, so
// that ten days run most of them. At least one is drawn.
void draw_tenth(std::uint64_t seed, doctest::Context* context) {
  constexpr std::uint64_t kOneOf = 10;
  std::string others, least;
  std::size_t drawn = 0, all = 0;
  for (const auto& test : doctest::detail::getRegisteredTests()) {
    const std::string name = test.m_name;
    ++all;
    if (least.empty() || number_of(name, seed) < number_of(least, seed)) least = name;
  }
  for (const auto& test : doctest::detail::getRegisteredTests()) {
    const std::string name = test.m_name;
    if (name == least || number_of(name, seed) % kOneOf == 0) {
      ++drawn;
      continue;
    }
    if (!others.empty()) others += ',';
    for (const char character : name) {  // doctest separates names in a filter by commas
      if (character == ',' || character == '\\') others += '\\';
      others += character;
    }
  }
  context->setOption("test-case-exclude", others.c_str());
  std::printf("%zu of %zu test cases are drawn; --tenth %llu draws them again\n", drawn, all,
              static_cast<unsigned long long>(seed));
}

}  // namespace

const annulus::test::Options& annulus::test::options() { return parsed; }

int main(int argc, char** argv) {
  std::vector<char*> arguments(argv, argv + argc);
  // The library reads this variable too, so Device::open({}) opens the same device.
  if (const char* device = value_of(&arguments, "--device")) setenv("ANNULUS_DEVICE", device, 1);
  if (const char* count = value_of(&arguments, "--problems")) parsed.problems = std::atoi(count);
  if (const char* count = value_of(&arguments, "--orders")) parsed.orders = std::atoi(count);
  if (const char* count = value_of(&arguments, "--kills")) parsed.kills = std::atoi(count);
  if (const char* length = value_of(&arguments, "--length")) parsed.length = std::atoi(length);
  if (value_of(&arguments, "--record") != nullptr) parsed.record = true;
  if (const char* seed = value_of(&arguments, "--seed")) {
    parsed.seed = std::strtoull(seed, nullptr, 10);
  }
  const char* tenth = value_of(&arguments, "--tenth");
  doctest::Context context(static_cast<int>(arguments.size()), arguments.data());
  if (tenth != nullptr) {
    draw_tenth(std::strcmp(tenth, "today") == 0 ? today() : std::strtoull(tenth, nullptr, 10),
               &context);
  }
  const int code = context.run();
  if (!ran_nothing) return code;
  std::fprintf(stderr, "%s: no test case has these names and files\n", argv[0]);
  return 1;
}
