// Package kernels will hold the CUDA C++ sources of the CUDA backend and the PTX
// built from them, embedded in the binary, so that users need the NVIDIA driver
// and nothing else. A header records the sources' digest, and a test fails when
// the two differ. None is written yet.
package kernels
