#ifndef ANNULUS_EXCHANGE_MEETING_FILE_H_
#define ANNULUS_EXCHANGE_MEETING_FILE_H_

// The file in which ranks find the address of rank 0 (RendezvousOptions::address "file:PATH").

#include <optional>
#include <string>

#include "annulus/types.h"
#include "base/files.h"
#include "exchange/address.h"

namespace annulus::exchange {

// The reason why an attempt to find rank 0 failed.
struct Problem {
  ErrorCode code = ErrorCode::kCommunication;
  std::string text = "nothing was tried";
};

// Returns the contents that rank 0 has written. Returns nothing if the file cannot be used;
// *problem has the reason.
std::optional<MeetingFile> read_meeting_file(base::FileSystem& files, const std::string& path,
                                             Problem* problem);

// The file that rank 0 writes. It exists as long as the ranks meet.
class PublishedFile {
 public:
  // Throws Error{kFile}.
  PublishedFile(base::FileSystem& files, const std::string& path, const MeetingFile& file);
  PublishedFile(const PublishedFile&) = delete;
  PublishedFile& operator=(const PublishedFile&) = delete;
  ~PublishedFile();  // removes the file, unless another rank 0 has overwritten it

 private:
  base::FileSystem& files_;
  const std::string path_;
  const Nonce nonce_;
};

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_MEETING_FILE_H_
