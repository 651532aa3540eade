package main

import (
	"time"

	"tutti/backend"
	"tutti/backend/cuda"
	"tutti/backend/cuda/driver"
)

// cudaBackend opens GPUs, all unless they are named, a rank each.
func cudaBackend(devices []int) (backend.Backend, error) {
	if len(devices) == 0 {
		n, err := driver.Count()
		if err != nil {
			return nil, err
		}
		for i := range n {
			devices = append(devices, i)
		}
	}
	opened := map[int]*driver.GPU{}
	var gpus []*driver.GPU
	for _, i := range devices {
		if opened[i] == nil {
			g, err := driver.Open(i)
			if err != nil {
				return nil, err
			}
			opened[i] = g
		}
		gpus = append(gpus, opened[i])
	}
	return cuda.NewBackend(gpus, cuda.Options{Scratch: 1 << 20, Timeout: 5 * time.Second}), nil
}
