// Stands for TVM's header, of which kernels for sm_90 use nothing.
#pragma once
