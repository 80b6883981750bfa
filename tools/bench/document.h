#ifndef ANNULUS_TOOLS_BENCH_DOCUMENT_H_
#define ANNULUS_TOOLS_BENCH_DOCUMENT_H_

// Reads and replaces a table that a program makes, between two marks of a document that people
// write:
//
//   <!-- made by tools/bench/PROGRAM -->
//   ...
//   <!-- end of PROGRAM -->

#include <functional>
#include <string>
#include <vector>

namespace annulus::bench {

// A document in three parts: up to the first mark, the table, and from the second mark on.
struct Document {
  std::string before, table, after;
};

// Throws Error{kInvalidFile} where the file has no such marks or cannot be read.
Document read_document(const std::string& path, const std::string& program);

// Writes the document with another table. Throws Error{kInvalidFile} where the file cannot be
// written.
void write_document(const std::string& path, const Document& document, const std::string& table);

// What a program made: its tables, and what they break of what is promised, a line each.
struct MadeTable {
  std::string text;
  std::vector<std::string> broken = {};
};

// The main() of a program that only makes tables: prints them, puts them into a document (--write
// FILE), or compares them with those of one (--check FILE). Returns the exit status: 0; 1 where
// something is broken or fails, or the document has other tables; 2 for other arguments.
int make_table(int argc, char** argv, const std::string& program,
               const std::function<MadeTable()>& make);

}  // namespace annulus::bench

#endif  // ANNULUS_TOOLS_BENCH_DOCUMENT_H_
