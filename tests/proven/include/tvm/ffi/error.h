// Replaces TVM's header. The kernels for sm_90 use nothing of it.
#pragma once
