package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"tutti/experiments/sweep"
)

// shard is one part of a study: every count-th case, from the index-th on.
type shard struct{ index, count int }

// of returns the shard's cases. Dealt out in turns, small and large cases are
// spread evenly.
func (s shard) of(jobs []sweep.Job) (part []sweep.Job) {
	for i := s.index; i < len(jobs); i += s.count {
		part = append(part, jobs[i])
	}
	return part
}

// arrays are the variables by which cluster schedulers number the tasks of a
// job: Slurm's job arrays, whose numbers begin at SLURM_ARRAY_TASK_MIN, and
// Kubernetes' indexed jobs, which leave the number of completions to be set.
var arrays = []struct{ index, first, count string }{
	{"SLURM_ARRAY_TASK_ID", "SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_COUNT"},
	{"JOB_COMPLETION_INDEX", "", "COMPLETIONS"},
}

// part reads --shard.
func (f *simFlags) part() (shard, error) {
	if f.shard != "" && f.shard != "auto" {
		index, count, found := strings.Cut(f.shard, "/")
		i, err1 := strconv.Atoi(index)
		n, err2 := strconv.Atoi(count)
		if !found || err1 != nil || err2 != nil || n < 1 || i < 0 || i >= n {
			return shard{}, fmt.Errorf("--shard %s: want I/N with I from 0 to N-1, as in 0/8", f.shard)
		}
		return shard{i, n}, nil
	}
	for _, a := range arrays {
		if os.Getenv(a.index) == "" || os.Getenv(a.count) == "" {
			continue
		}
		index, err1 := strconv.Atoi(os.Getenv(a.index))
		count, err2 := strconv.Atoi(os.Getenv(a.count))
		first := 0
		if a.first != "" {
			first, _ = strconv.Atoi(os.Getenv(a.first))
		}
		if index -= first; err1 != nil || err2 != nil || count < 1 || index < 0 || index >= count {
			return shard{}, fmt.Errorf("%s=%s of %s=%s: want --shard I/N instead", a.index, os.Getenv(a.index), a.count, os.Getenv(a.count))
		}
		return shard{index, count}, nil
	}
	if f.shard == "auto" {
		return shard{}, fmt.Errorf("--shard auto: neither %s nor %s is set with its count", arrays[0].index, arrays[1].index)
	}
	return shard{0, 1}, nil
}
