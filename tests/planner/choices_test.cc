// The candidates among which planning chooses, without a device.

#include "planner/choices.h"

#include <doctest/doctest.h>

#include <vector>

#include "annulus/selection.h"
#include "planner/tuned_entry.h"
#include "support/faulty_files.h"

namespace annulus::planner {
namespace {

using test::keep_tuned;
using test::planned_problem;
using test::tuned_store;

constexpr attention::DeviceLimits kA100 = {{80, '\0'}, 108, 166912};
constexpr attention::DeviceLimits kH100 = {{90, 'a'}, 132, 232448};
// Legal on every device. The heuristic does not choose it for planned_problem().
constexpr const char* kTuned = "mma m64 n32 w4 s2";

bool has(const std::string& text, const char* part) { return text.find(part) != text.npos; }

template <typename Body>
std::string message_of(ErrorCode code, const Body& body) {
  try {
    body();
  } catch (const Error& error) {
    CHECK(error.code() == code);
    return error.what();
  }
  FAIL("nothing was thrown");
  return {};
}

TEST_CASE("limits are the device's, less what the options leave to others") {
  PlanOptions options;
  CHECK(limits_for(kA100, options).multiprocessors == 108);
  options.max_multiprocessors = 20;
  CHECK(limits_for(kA100, options).multiprocessors == 20);
  CHECK(limits_for(kA100, options).shared_bytes_per_block == kA100.shared_bytes_per_block);
  options.max_multiprocessors = 1000;
  CHECK(limits_for(kA100, options).multiprocessors == 108);
  options.max_multiprocessors = -1;
  CHECK(has(message_of(ErrorCode::kInvalidArgument, [&] { limits_for(kA100, options); }),
            "max_multiprocessors is -1"));
  options.max_multiprocessors = 0;
  options.kv_splits = -2;
  CHECK(has(message_of(ErrorCode::kInvalidArgument, [&] { limits_for(kA100, options); }),
            "kv_splits is -2"));
}

TEST_CASE("a tuned result goes before the heuristic's choice, and says what it replaces") {
  tuned::TunedStore store = tuned_store(kA100);
  const Problem problem = planned_problem();
  CHECK_FALSE(choose({problem}, kA100, {}, store).tuned);
  keep_tuned(store, problem, kTuned);
  const Choices choices = choose({problem}, kA100, {}, store);
  const std::string heuristic = attention::to_string(choices.untuned.config);
  REQUIRE(choices.tuned);
  CHECK(heuristic != kTuned);
  const attention::Choice& tuned = choices.tuned->choice;
  CHECK(attention::to_string(tuned.config) == kTuned);
  CHECK(has(tuned.reason, "tuned, predicted 0.500 of the heuristic's cycles"));
  CHECK(has(tuned.reason, "of this very kind of problem"));
  CHECK(has(tuned.reason, "from memory"));
  REQUIRE_FALSE(tuned.rejected.empty());
  CHECK(attention::to_string(tuned.rejected[0].config) == heuristic);
  for (const attention::Rejected& rejected : tuned.rejected) {
    CHECK(attention::to_string(rejected.config) != kTuned);
  }
}

TEST_CASE("a tuned result may name what the heuristic never takes because it may spill") {
  tuned::TunedStore store = tuned_store(kA100);
  const Problem problem = planned_problem("causal", 300, 128);
  constexpr const char* kWide = "mma m128 n64 w4 s1 x2";
  keep_tuned(store, problem, kWide);
  const Choices choices = choose({problem}, kA100, {}, store);
  CHECK(attention::to_string(choices.untuned.config) != kWide);
  REQUIRE(choices.tuned);
  CHECK(attention::to_string(choices.tuned->choice.config) == kWide);
}

TEST_CASE("where no tuned result can serve, none is looked up") {
  tuned::TunedStore store = tuned_store(kA100);
  const Problem problem = planned_problem();
  keep_tuned(store, problem, kTuned);
  const auto none = [&](const Subject& subject, const PlanOptions& options) {
    CHECK_FALSE(choose(subject, kA100, options, store).tuned);
  };
  PlanOptions asked;
  asked.config = "mma m64 n64 w4 s2";
  none({problem}, asked);
  CHECK(choose({problem}, kA100, asked, store).untuned.reason == "requested by the caller");
  none({planned_problem("sum(causal, window(63,0))")}, {});  // another kind of problem
  Problem nothing = problem;
  nothing.batch = 0;
  none({nothing}, {});
  nothing = problem;
  nothing.seq_q = 0;
  none({nothing}, {});
  Selection selection;
  selection.max_blocks = 2;
  none({problem, &selection}, {});
}

TEST_CASE("a tuned result that the operands' strides rule out is passed over") {
  const Problem problem = planned_problem("causal", 1024, 128);
  tuned::TunedStore store = tuned_store(kH100);
  keep_tuned(store, problem, "wgmma m64 n64 w4 s2");
  PlanOptions options;
  CHECK(choose({problem}, kH100, options, store).tuned);
  OperandStrides strides;
  strides.q = strides.o = Strides::bshd(1024, 4, 128);
  strides.k = strides.v = Strides::bshd(1024, 2, 128);
  options.strides = strides;
  CHECK(choose({problem}, kH100, options, store).tuned);
  options.strides->k.head = 0;
  CHECK_FALSE(choose({problem}, kH100, options, store).tuned);
}

TEST_CASE("a relative's result is taken where the model does not call it much slower") {
  const auto key_of = [](const char* name, std::int64_t gigabytes) {
    device::DeviceInfo info;
    info.name = name;
    info.multiprocessors = 132;
    info.memory_bytes = gigabytes << 30;
    return tuned::device_key(info, "sm_90a");
  };
  const Problem problem = planned_problem("causal", 8192, 128);
  const attention::KernelConfig heuristic = attention::choose_config(problem, kH100).config;
  for (const auto& [config, taken] : {std::pair{std::string(kTuned), false},
                                      {attention::to_string(heuristic), true},
                                      {std::string("wgmma m128 n128 w8 s2"), true}}) {
    CAPTURE(config);
    const test::ScratchFolder scratch;
    tuned::StoreOptions options;
    options.folders = {scratch / "t"};
    options.limits = kH100;
    options.device = key_of("NVIDIA H100 80GB HBM3", 80);
    tuned::Entry entry = test::entry_for(problem, config);
    entry.predicted = false;
    tuned::TunedStore(options).store(entry, false);
    options.device = key_of("NVIDIA H200", 140);
    tuned::TunedStore store(options);
    const Choices choices = choose({problem}, kH100, {}, store);
    REQUIRE(choices.tuned.has_value() == taken);
    if (taken) {
      CHECK(has(choices.tuned->choice.reason, "measured on NVIDIA H100 80GB HBM3, a relative"));
      CHECK(attention::to_string(choices.tuned->choice.config) == config);
    } else {
      CHECK(has(choices.untuned.reason, "not what NVIDIA H100 80GB HBM3 was tuned to"));
      CHECK(has(choices.untuned.reason, "more than 1.05 of it"));
    }
  }
}

TEST_CASE("a tuned configuration that does not work gives way, once, with a note") {
  tuned::TunedStore store = tuned_store(kA100);
  const Problem problem = planned_problem();
  keep_tuned(store, problem, kTuned);
  std::vector<std::string> notes;
  const base::Log log([&](base::LogLevel, std::string_view text) { notes.emplace_back(text); });
  const auto run = [&](ErrorCode code) {
    return with_first_that_works(choose({problem}, kA100, {}, store), store, log,
                                 [&](const attention::Choice& choice, const std::string& tuned) {
                                   if (!tuned.empty()) throw Error(code, "first line\nsecond line");
                                   return attention::to_string(choice.config);
                                 });
  };
  // An error that any configuration would cause is not a reason to try another one.
  message_of(ErrorCode::kOutOfMemory, [&] { run(ErrorCode::kOutOfMemory); });
  CHECK(notes.empty());
  CHECK(run(ErrorCode::kCompile) ==
        attention::to_string(attention::choose_config(problem, kA100).config));
  REQUIRE(notes.size() == 1);
  CHECK(has(notes[0], kTuned));
  CHECK(has(notes[0], "does not work here: first line"));
  CHECK_FALSE(has(notes[0], "second"));
  run(ErrorCode::kCompile);
  CHECK(notes.size() == 1);
}

}  // namespace
}  // namespace annulus::planner
