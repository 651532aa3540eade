package backend

import (
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// parallel calls do for every i below n, on all cores, and returns the first
// error. The hand is a number below that of the cores, and no two calls have
// the same at once.
func parallel(n int, do func(hand, i int) error) error {
	var group errgroup.Group
	var next atomic.Int64
	for hand := range min(n, runtime.GOMAXPROCS(0)) {
		group.Go(func() error {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if err := do(hand, i); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
