package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"tutti/experiments/sweep"
	"tutti/model/units"
)

// workFlags say how much of the computer to use.
type workFlags struct {
	memory string
}

func (f *workFlags) register(c *cobra.Command) {
	c.Flags().StringVar(&f.memory, "memory", "", "how much memory the simulation may take, as in 64G; or any (default what is free)")
}

// simulate runs the jobs, with progress on stderr. When the user or the scheduler
// ends it, it returns what is done.
func (f *workFlags) simulate(c *cobra.Command, jobs []sweep.Job, stderr io.Writer) ([]sweep.Done, error) {
	limit, err := f.limit()
	if err != nil {
		return nil, err
	}
	ctx, stop := untilInterrupted(c)
	defer stop()
	bar := newProgress(stderr, sweep.Seeds(jobs))
	done, err := sweep.Run(ctx, jobs, limit, func(j sweep.Job) { bar.step(j.String()) })
	bar.end()
	switch tooLarge := (*sweep.MemoryError)(nil); {
	case errors.As(err, &tooLarge):
		return nil, advised(tooLarge, c)
	case ctx.Err() != nil:
		return done, fmt.Errorf("%w: %s", errInterrupted, howFar(done, jobs))
	}
	return done, onNoLink(err)
}

// howFar says how much is finished.
func howFar(done []sweep.Done, jobs []sweep.Job) string {
	cases, begun := 0, 0
	for _, d := range done {
		if spread := d.Row.Why.Spread; spread != nil && spread.Seeds < jobs[d.Job].Seeds() {
			begun++
		} else {
			cases++
		}
	}
	text := fmt.Sprintf("%d of %d cases are finished", cases, len(jobs))
	if begun > 0 {
		text += fmt.Sprintf(", and %d with some of their seeds", begun)
	}
	return text
}

// limit returns how much memory may be used, 0 for any. Its errors are of usage.
func (f *workFlags) limit() (limit units.Bytes, err error) {
	switch f.memory {
	case "":
		return freeMemory(), nil
	case "any":
		return 0, nil
	}
	if limit, err = units.ParseBytes(f.memory); err == nil && limit == 0 {
		err = errors.New("0 bytes: want some, or any")
	}
	if err != nil {
		return 0, usage(fmt.Errorf("--memory: %w", err))
	}
	return limit, nil
}

// advised adds what to do to an error that tells of too little memory.
func advised(err *sweep.MemoryError, c *cobra.Command) error {
	advice := fmt.Sprintf("want fewer --nodes or --channels, a larger computer, or --memory %d if there is more", err.Need)
	if flag := c.Flags().Lookup("no-symmetry"); flag != nil && flag.Changed {
		advice += "; and no --no-symmetry"
	}
	return fmt.Errorf("%w: %s", err, advice)
}
