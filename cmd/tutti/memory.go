package main

import (
	"bufio"
	"fmt"
	"os"

	"tutti/model/units"
)

// freeMemory returns how much memory can be had, or 0 where that is not known.
func freeMemory() units.Bytes {
	file, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var kib int64
		if n, _ := fmt.Sscanf(lines.Text(), "MemAvailable: %d kB", &kib); n == 1 {
			return units.Bytes(kib) * units.KiB
		}
	}
	return 0
}
