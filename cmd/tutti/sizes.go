package main

import (
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"tutti/model"
	"tutti/model/units"
)

// sizeFlags are the flags that say which sizes to go through: nccl-tests', or a
// list.
type sizeFlags struct {
	begin, end, increment string
	factor                int
	list                  []string
}

// Bounds that keep a slip of the keyboard from running for ever.
const (
	maxSizes = 10000
	maxSize  = units.TiB // more than any GPU's memory
)

func (f *sizeFlags) register(c *cobra.Command) { f.registerWith(c, "1K", "8G") }

// registerWith is register with sizes to go through where none are given.
func (f *sizeFlags) registerWith(c *cobra.Command, begin, end string) {
	flags := c.Flags()
	flags.StringVarP(&f.begin, "minbytes", "b", begin, "smallest size: bytes, or K, M, G (powers of 1024)")
	flags.StringVarP(&f.end, "maxbytes", "e", end, "largest size")
	flags.IntVarP(&f.factor, "stepfactor", "f", 2, "factor from one size to the next")
	flags.StringVarP(&f.increment, "stepbytes", "i", "", "increment from one size to the next, in the place of a factor")
	flags.StringSliceVar(&f.list, "sizes", nil, "the sizes themselves, as in 8,64K,1G")
}

// exclusive fails if a flag was given together with one of the others.
func exclusive(c *cobra.Command, flag string, others ...string) error {
	for _, other := range others {
		if c.Flags().Changed(flag) && c.Flags().Changed(other) {
			return fmt.Errorf("--%s and --%s exclude each other: want one of them", flag, other)
		}
	}
	return nil
}

// sizes returns the sizes, each rounded down to whole elements.
func (f *sizeFlags) sizes(c *cobra.Command, d model.Datatype) ([]units.Bytes, error) {
	if err := exclusive(c, "sizes", "minbytes", "maxbytes", "stepfactor", "stepbytes"); err != nil {
		return nil, err
	}
	if err := exclusive(c, "stepfactor", "stepbytes"); err != nil {
		return nil, err
	}
	var sizes []units.Bytes
	add := func(size units.Bytes) error {
		whole := size / d.Size() * d.Size()
		if whole == 0 {
			return fmt.Errorf("size of %d bytes: want at least one element of %v, %d bytes", size, d, d.Size())
		}
		if whole > maxSize {
			return fmt.Errorf("size of %v: want at most %v", whole, maxSize)
		}
		if !slices.Contains(sizes, whole) {
			sizes = append(sizes, whole)
		}
		return nil
	}
	for _, s := range f.list {
		size, err := units.ParseBytes(s)
		if err == nil {
			err = add(size)
		}
		if err != nil {
			return nil, fmt.Errorf("--sizes: %w", err)
		}
	}
	if len(f.list) > 0 {
		return sizes, nil
	}
	begin, err := units.ParseBytes(f.begin)
	if err != nil {
		return nil, fmt.Errorf("-b: %w", err)
	}
	end, err := units.ParseBytes(f.end)
	if err != nil {
		return nil, fmt.Errorf("-e: %w", err)
	}
	if begin > end {
		return nil, fmt.Errorf("-b %s is above -e %s: want at most that", f.begin, f.end)
	}
	next, err := f.stepper(d)
	if err != nil {
		return nil, err
	}
	for size, more := begin, true; more; size, more = next(size, end) {
		if err := add(size); err != nil {
			return nil, fmt.Errorf("-b: %w", err)
		}
		if len(sizes) > maxSizes {
			return nil, fmt.Errorf("more than %d sizes from -b %s to -e %s: want a larger step", maxSizes, f.begin, f.end)
		}
	}
	return sizes, nil
}

// stepper returns how to get from one size to the next; more is false when that
// lies above the end.
func (f *sizeFlags) stepper(d model.Datatype) (next func(size, end units.Bytes) (n units.Bytes, more bool), err error) {
	if f.increment == "" {
		factor := units.Bytes(f.factor)
		if factor < 2 {
			return nil, fmt.Errorf("-f %d: want a factor of at least 2", f.factor)
		}
		return func(size, end units.Bytes) (units.Bytes, bool) { return size * factor, size <= end/factor }, nil
	}
	step, err := units.ParseBytes(f.increment)
	if err != nil {
		return nil, fmt.Errorf("-i: %w", err)
	}
	if step < d.Size() {
		return nil, fmt.Errorf("-i %s: want at least one element of %v, %d bytes", f.increment, d, d.Size())
	}
	return func(size, end units.Bytes) (units.Bytes, bool) { return size + step, size <= end-step }, nil
}
