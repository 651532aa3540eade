package main

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"tutti/experiments/sweep"
)

// Where cluster schedulers tell a task which one it is: Slurm's job arrays
// (sbatch(1), "Job Array Support") and Kubernetes' indexed jobs, which do not say
// how many there are.
const (
	slurmIndex = "SLURM_ARRAY_TASK_ID"
	slurmFirst = "SLURM_ARRAY_TASK_MIN"
	slurmStep  = "SLURM_ARRAY_TASK_STEP"
	slurmCount = "SLURM_ARRAY_TASK_COUNT"
	kubernetes = "JOB_COMPLETION_INDEX" // from 0
)

// readShard reads --shard: I/N from 1/N to N/N, auto/N, auto, or nothing. It also
// returns where the part comes from; empty where it is all cases.
func readShard(text string) (part sweep.Shard, from string, err error) {
	index, count, counted := strings.Cut(text, "/")
	if counted {
		if part.Count, err = strconv.Atoi(count); err != nil || part.Count < 1 {
			return part, "", fmt.Errorf("--shard %s: %q is no number of parts: want I/N, as in 3/8, or auto/N", text, count)
		}
	}
	switch {
	case counted && index != "auto":
		if part.Index, err = strconv.Atoi(index); err != nil || part.Index < 1 || part.Index > part.Count {
			return part, "", fmt.Errorf("--shard %s: want 1/%d to %d/%[2]d, or auto/%[2]d", text, part.Count, part.Count)
		}
		if part.Count == 1 {
			return part, "", nil
		}
		return part, "--shard", nil
	case text != "" && index != "auto":
		return part, "", fmt.Errorf("--shard %s: want I/N, as in 3/8, auto/N or auto", text)
	case os.Getenv(slurmIndex) != "":
		return slurmShard(part.Count)
	case os.Getenv(kubernetes) != "":
		if !counted {
			return part, "", fmt.Errorf("%s is set: want --shard auto/N with the job's completions for one part of the cases, or --shard 1/1 for all", kubernetes)
		}
		i, err := environ(kubernetes, 0)
		if err != nil || i >= part.Count {
			return part, "", fmt.Errorf("%s=%s: want 0 to %d for --shard %s", kubernetes, os.Getenv(kubernetes), part.Count-1, text)
		}
		return sweep.Shard{Index: i + 1, Count: part.Count}, kubernetes, nil
	case text != "":
		return part, "", fmt.Errorf("--shard %s: neither %s nor %s is set", text, slurmIndex, kubernetes)
	default:
		return sweep.Shard{Index: 1, Count: 1}, "", nil
	}
}

// slurmShard reads Slurm's variables. Where a count is given, tasks have numbers
// from 0 to count-1, so that a later array can make up for single parts.
func slurmShard(given int) (part sweep.Shard, from string, err error) {
	id, err1 := environ(slurmIndex, 0)
	first, err2 := environ(slurmFirst, 0)
	step, err3 := environ(slurmStep, 1)
	count, err4 := environ(slurmCount, 0)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return part, "", err
	}
	part = sweep.Shard{Index: (id-first)/max(1, step) + 1, Count: count}
	if given > 0 {
		part = sweep.Shard{Index: id + 1, Count: given}
	}
	if id < first || part.Index > part.Count {
		return part, "", fmt.Errorf("%s=%d is part %d of %d: want an array without gaps, or --shard I/N", slurmIndex, id, part.Index, part.Count)
	}
	return part, slurmIndex, nil
}

// environ reads a variable of the environment.
func environ(name string, missing int) (int, error) {
	text := os.Getenv(name)
	if text == "" {
		return missing, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%s=%s: want a whole number (--shard I/N does without)", name, text)
	}
	return n, nil
}
