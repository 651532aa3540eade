// Package backend is where collectives run on real data: the interface that
// every executor of a schedule meets and the check of its results against a
// reference. Its folders will hold one executor each:
//
//	backend/host   goroutines and memory, on any computer: the default without a GPU
//	backend/cuda   the GPUs of one host, through the CUDA driver and kernels
//	backend/nccl   NCCL on the same GPUs, as the peer to compare with
//
// Executors run the schedules of model/schedule that the simulator runs. None is
// written yet.
package backend
