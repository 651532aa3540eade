// Package backend is where collectives run on real data: the interface that
// every executor of a schedule meets, the data that it is given, and the check
// of its results against a reference. Each executor has a folder:
//
//	backend/host   goroutines and memory, on any computer: the default without a GPU
//	backend/cuda   the GPUs of one host, through the CUDA driver and kernels
//	backend/nccl   NCCL on the same GPUs, as the peer to compare with
//
// Executors run the schedules of model/schedule that the simulator runs.
package backend
