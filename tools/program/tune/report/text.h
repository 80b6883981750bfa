#ifndef ANNULUS_PROGRAM_TUNE_REPORT_TEXT_H_
#define ANNULUS_PROGRAM_TUNE_REPORT_TEXT_H_

// Texts for tables and captions.

#include <string>

#include "program/tune/report/document.h"

namespace annulus::program::report {

std::string time_text(double time, bool predicted);  // "12.3 us", "1234 predicted cycles"
std::string ratio_text(const Interval& ratio);       // "0.812 (0.805 to 0.819)"
// The ratio of the winner, or why there is none.
std::string ratio_text(const Search& search);
std::string ending_text(const Search& search);  // "ended by itself", "cut short"

}  // namespace annulus::program::report

#endif  // ANNULUS_PROGRAM_TUNE_REPORT_TEXT_H_
