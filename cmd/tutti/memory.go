package main

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"

	"tutti/model/units"
)

// freeMemory returns how much memory can be had: what the computer has free, or
// what is left of the limit that a container or a Slurm job has, if that is less.
// It returns 0 where neither is known.
func freeMemory() units.Bytes {
	free := available()
	if left := controlGroup(); left > 0 && (free == 0 || left < free) {
		return left
	}
	return free
}

// available reads what Linux estimates that new programs can have (proc(5),
// /proc/meminfo, MemAvailable).
func available() units.Bytes {
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

// controlGroup returns what is left of the limit of the program's control group,
// or 0 if it has none (Linux, Documentation/admin-guide/cgroup-v2.rst; in a
// container its own group is the root).
func controlGroup() units.Bytes {
	group := ""
	if text, err := os.ReadFile("/proc/self/cgroup"); err == nil {
		_, group, _ = strings.Cut(strings.TrimSpace(string(text)), "0::")
	}
	for _, folder := range []string{"/sys/fs/cgroup" + group, "/sys/fs/cgroup"} {
		limit, err := readBytes(folder + "/memory.max")
		used, err2 := readBytes(folder + "/memory.current")
		if err == nil && err2 == nil {
			return max(1, limit-used)
		}
	}
	return 0
}

func readBytes(file string) (units.Bytes, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return units.Bytes(n), err
}
