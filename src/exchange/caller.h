#ifndef ANNULUS_EXCHANGE_CALLER_H_
#define ANNULUS_EXCHANGE_CALLER_H_

// The part of a meeting that every rank except rank 0 takes: it looks for rank 0.

#include "base/files.h"
#include "exchange/address.h"
#include "exchange/attendee.h"

namespace annulus::exchange {

// Finds rank 0, sends it a hello and connects to all other ranks. Throws Error{kCommunication,
// kFile} if rank 0 is not reached or ranks are missing at the deadline. Throws the error that rank
// 0 sends if the options of the ranks differ.
World join_meeting(const Self& self, const Address& address, base::FileSystem& files);

}  // namespace annulus::exchange

#endif  // ANNULUS_EXCHANGE_CALLER_H_
