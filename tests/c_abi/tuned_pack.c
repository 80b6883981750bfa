// Packs of tuned results: exported, imported, merged, compared, verified, explained, removed.

#define _POSIX_C_SOURCE 200809L

#include <annulus/c_tools.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "c_abi/check.h"
#include "c_abi/sample.h"

typedef struct place {
  char folder[512];
  char other[560];
  char pack[560];
  char copy[560];
} place;

static annulus_tuned_report_info info_of(annulus_tuned_report* report) {
  annulus_tuned_report_info info = ANNULUS_TUNED_REPORT_INFO_INIT;
  CHECK_OK(annulus_tuned_report_get(report, &info));
  return info;
}

// Whether a report has exactly one note, with that verdict. Destroys the report.
static int is_one(annulus_tuned_report* report, annulus_tuned_verdict verdict) {
  annulus_tuned_note note = ANNULUS_TUNED_NOTE_INIT;
  annulus_tuned_entry entry = ANNULUS_TUNED_ENTRY_INIT;
  const annulus_tuned_report_info info = info_of(report);
  int one = 0;
  CHECK(strcmp(info.left_out, "") == 0);
  if (info.notes == 1) {
    CHECK_OK(annulus_tuned_report_get_note(report, 0, &note, &entry));
    CHECK_OK(annulus_tuned_report_get_note(report, 0, NULL, NULL));
    CHECK(strlen(entry.name) > 32 && strlen(entry.config) > 0 && strlen(entry.device) > 0);
    CHECK(strcmp(entry.outdated, "") == 0 && strlen(entry.default_config) > 0);
    CHECK(entry.nvrtc_version >= 12000 && strcmp(entry.pattern, "causal") == 0);
    one = note.verdict == (int32_t)verdict;
  }
  CHECK_FAILS(annulus_tuned_report_get_note(report, 1, &note, &entry), ANNULUS_INVALID_ARGUMENT,
              "note 1 of 1");
  CHECK_OK(annulus_tuned_report_destroy(report));
  CHECK_FAILS(annulus_tuned_report_destroy(report), ANNULUS_INVALID_ARGUMENT, "given back");
  return one;
}

static void travelled(annulus_device* device, const annulus_problem* problem, const place* at) {
  annulus_tuned_filter filter = ANNULUS_TUNED_FILTER_INIT;
  annulus_tuned_verify_options options = ANNULUS_TUNED_VERIFY_OPTIONS_INIT;
  annulus_tuned_note note = ANNULUS_TUNED_NOTE_INIT;
  annulus_tuned_report* report = NULL;
  const char* packs[2];
  packs[0] = at->pack;
  packs[1] = at->copy;
  CHECK_OK(annulus_tuned_export(at->pack, NULL, at->folder, &report));
  CHECK(is_one(report, ANNULUS_TUNED_ADDED));
  CHECK_OK(annulus_tuned_merge(packs, 1, at->copy, &report));
  CHECK(is_one(report, ANNULUS_TUNED_ADDED));
  CHECK_OK(annulus_tuned_merge(packs, 2, at->copy, &report));
  CHECK(is_one(report, ANNULUS_TUNED_ADDED));
  CHECK_OK(annulus_tuned_diff(at->pack, at->copy, &report));
  CHECK(info_of(report).notes == 0);
  CHECK_OK(annulus_tuned_report_destroy(report));
  CHECK_OK(annulus_tuned_import(packs, 2, NULL, at->other, &report));
  CHECK(is_one(report, ANNULUS_TUNED_ADDED));
  CHECK_OK(annulus_tuned_import(packs, 1, NULL, at->other, &report));
  CHECK(is_one(report, ANNULUS_TUNED_KEPT));
  // Predictions are left out if measurements are requested.
  filter.measured_only = 1;
  CHECK_FAILS(annulus_tuned_export(at->copy, &filter, at->folder, &report),
              ANNULUS_INVALID_ARGUMENT, "the filter leaves none of the 1 tuned results");
  CHECK_OK(annulus_tuned_diff(at->pack, "/", &report));
  CHECK(info_of(report).notes == 1);
  CHECK_OK(annulus_tuned_report_get_note(report, 0, &note, NULL));
  CHECK(note.verdict == ANNULUS_TUNED_FIRST_ONLY);
  CHECK_OK(annulus_tuned_report_destroy(report));

  CHECK_OK(annulus_tuned_verify(device, NULL, &report));
  CHECK(is_one(report, ANNULUS_TUNED_USED));
  options.packs = packs;
  options.count = 1;
  options.measure = 1;
  CHECK_OK(annulus_tuned_verify(device, &options, &report));
  CHECK(is_one(report, ANNULUS_TUNED_HOLDS));
  CHECK_OK(annulus_tuned_why(device, problem, &report));
  CHECK(strlen(info_of(report).config) > 0 && strstr(info_of(report).shape, "queries ") != NULL);
  CHECK(strstr(info_of(report).reason, "tuned") != NULL);
  CHECK(is_one(report, ANNULUS_TUNED_USED));

  CHECK_OK(annulus_tuned_prune(at->other, NULL, 0, &report));
  CHECK(info_of(report).notes == 0);
  CHECK_OK(annulus_tuned_report_destroy(report));
  CHECK_OK(annulus_tuned_prune(at->other, "another device", 1, &report));
  CHECK(is_one(report, ANNULUS_TUNED_REMOVED));
  CHECK_OK(annulus_tuned_remove("mma", at->other, 0, &report));
  CHECK(is_one(report, ANNULUS_TUNED_REMOVED));
  CHECK_FAILS(annulus_tuned_remove("mma", at->other, 0, &report), ANNULUS_INVALID_ARGUMENT,
              "0 tuned results");
}

// Selections and batches are explained too. The one result applies to none of them.
static void explained(annulus_device* device, const annulus_problem* problem) {
  annulus_selection selection = ANNULUS_SELECTION_INIT;
  annulus_batch_problem batch = ANNULUS_BATCH_PROBLEM_INIT;
  annulus_batch_options options = ANNULUS_BATCH_OPTIONS_INIT;
  annulus_tuned_report* report = NULL;
  selection.max_blocks = 2;
  CHECK_OK(annulus_tuned_why_selected(device, problem, &selection, &report));
  CHECK(strstr(info_of(report).shape, "chosen blocks of 128 x 128") != NULL);
  CHECK(is_one(report, ANNULUS_TUNED_UNUSED));
  CHECK_FAILS(annulus_tuned_why_selected(device, problem, NULL, &report), ANNULUS_INVALID_ARGUMENT,
              "annulus_selection is null");
  batch.dim_qk = batch.dim_v = 64;
  batch.pattern = "causal";
  batch.most.requests = batch.most.rows = 2;
  batch.most.keys_of_one = 90;
  CHECK_OK(annulus_tuned_why_batch(device, &batch, NULL, &report));
  CHECK(strstr(info_of(report).shape, "requests of few queries") != NULL);
  CHECK(strstr(info_of(report).config, "decode") != NULL);
  CHECK(is_one(report, ANNULUS_TUNED_UNUSED));
  options.config = "decode m16 n64 w4 s2";
  CHECK_OK(annulus_tuned_why_batch(device, &batch, &options, &report));
  CHECK(strcmp(info_of(report).config, options.config) == 0);
  CHECK(strstr(info_of(report).reason, "names a configuration") != NULL);
  CHECK(is_one(report, ANNULUS_TUNED_UNUSED));
  // Options that no plan accepts cannot be explained.
  options.config = NULL;
  options.part_keys = 100;
  CHECK_FAILS(annulus_tuned_why_batch(device, &batch, &options, &report), ANNULUS_INVALID_ARGUMENT,
              "part_keys is 100");
  options.part_keys = 0;
  options.max_workspace_bytes = -1;
  CHECK_FAILS(annulus_tuned_why_batch(device, &batch, &options, &report), ANNULUS_INVALID_ARGUMENT,
              "max_workspace_bytes is -1");
  options.max_workspace_bytes = 0;
  options.max_multiprocessors = -1;
  CHECK_FAILS(annulus_tuned_why_batch(device, &batch, &options, &report), ANNULUS_INVALID_ARGUMENT,
              "max_multiprocessors is -1");
  batch.pattern = "strided(8,4,16)";
  CHECK_FAILS(annulus_tuned_why_batch(device, &batch, NULL, &report), ANNULUS_UNSUPPORTED,
              "has no kernel for batches");
  batch.pattern = "causal";
  batch.most.requests = 0;
  CHECK_FAILS(annulus_tuned_why_batch(device, &batch, NULL, &report), ANNULUS_INVALID_ARGUMENT,
              "requests");
  CHECK_FAILS(annulus_tuned_why_batch(device, &batch, NULL, NULL), ANNULUS_INVALID_ARGUMENT,
              "report");
}

static void refused(annulus_device* device, const place* at) {
  annulus_tuned_verify_options options = ANNULUS_TUNED_VERIFY_OPTIONS_INIT;
  annulus_tuned_filter filter = ANNULUS_TUNED_FILTER_INIT;
  annulus_tuned_report* report = NULL;
  const char* none[1] = {NULL};
  const char* missing[1] = {"/no/such.pack"};
  FILE* file = NULL;
  CHECK_FAILS(annulus_tuned_export(NULL, NULL, NULL, &report), ANNULUS_INVALID_ARGUMENT, "pack");
  CHECK_FAILS(annulus_tuned_export(at->pack, NULL, NULL, NULL), ANNULUS_INVALID_ARGUMENT, "report");
  filter.complete_only = 3;
  CHECK_FAILS(annulus_tuned_export(at->pack, &filter, NULL, &report), ANNULUS_INVALID_ARGUMENT,
              "complete_only is 3");
  CHECK_FAILS(annulus_tuned_merge(none, 1, at->copy, &report), ANNULUS_INVALID_ARGUMENT, "null");
  CHECK_FAILS(annulus_tuned_merge(NULL, 0, at->copy, &report), ANNULUS_INVALID_ARGUMENT, "no pack");
  CHECK_FAILS(annulus_tuned_import(missing, 1, NULL, at->folder, &report), ANNULUS_FILE,
              "/no/such.pack");
  CHECK_FAILS(annulus_tuned_verify(NULL, NULL, &report), ANNULUS_INVALID_ARGUMENT,
              "device is null");
  options.measure = -1;
  CHECK_FAILS(annulus_tuned_verify(device, &options, &report), ANNULUS_INVALID_ARGUMENT,
              "measure is -1");
  CHECK_FAILS(annulus_tuned_prune(at->other, NULL, 2, &report), ANNULUS_INVALID_ARGUMENT,
              "dry_run is 2");
  CHECK_FAILS(annulus_tuned_why(device, NULL, &report), ANNULUS_INVALID_ARGUMENT, "null");
  CHECK_FAILS(annulus_tuned_diff(at->pack, NULL, &report), ANNULUS_INVALID_ARGUMENT, "second");
  file = fopen(at->copy, "w");
  CHECK(file != NULL && fputs("annulus-tuned-pack 99 later\n", file) >= 0 && fclose(file) == 0);
  CHECK_FAILS(annulus_tuned_diff(at->pack, at->copy, &report), ANNULUS_UNSUPPORTED,
              "newer library");
  CHECK(report == NULL || strcmp(annulus_tuned_verdict_text(ANNULUS_TUNED_HOLDS), "holds") == 0);
  CHECK(strcmp(annulus_tuned_verdict_text(99), "unknown verdict") == 0);
}

void test_tuned_pack(void) {
  const char* parent = getenv("TMPDIR");
  annulus_device_options options = sample_options();
  annulus_device* device = NULL;
  annulus_tuning* tuning = NULL;
  annulus_problem problem = ANNULUS_PROBLEM_INIT;
  place at;
  char command[1200];
  snprintf(at.folder, sizeof at.folder, "%s/annulus_c_XXXXXX", parent == NULL ? "/tmp" : parent);
  CHECK(mkdtemp(at.folder) != NULL);
  snprintf(at.other, sizeof at.other, "%s/other", at.folder);
  snprintf(at.pack, sizeof at.pack, "%s.pack", at.folder);
  snprintf(at.copy, sizeof at.copy, "%s_copy.pack", at.folder);
  options.tuned_path = at.folder;
  CHECK_OK(annulus_device_open(&options, &device));
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.seq_q = problem.seq_k = 96;
  problem.dim_qk = problem.dim_v = 32;
  problem.pattern = "causal";
  CHECK_OK(annulus_tuning_create(device, &problem, NULL, &tuning));
  CHECK_OK(annulus_tuning_destroy(tuning));
  explained(device, &problem);
  travelled(device, &problem, &at);
  refused(device, &at);
  CHECK_OK(annulus_device_close(device));
  snprintf(command, sizeof command, "rm -r '%s' '%s'", at.folder, at.pack);
  CHECK(system(command) == 0);
  CHECK(remove(at.copy) == 0);
}
