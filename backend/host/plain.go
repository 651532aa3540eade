package host

import (
	"runtime"
	"sync"
	"time"

	"tutti/model/units"
)

// CopyAndAdd returns the rate at which all cores together write the sums of two
// arrays of float32 to a third, each of the given size: two reads and a write
// for every element, the best of three runs. It is what the memory of this
// computer gives to a plain loop, to lay beside what a schedule gets of it.
func CopyAndAdd(size units.Bytes) units.Rate {
	n := int(size / 4)
	a, b, to := make([]float32, n), make([]float32, n), make([]float32, n)
	var best units.Rate
	for range 4 { // the first touches the memory
		start := time.Now()
		var group sync.WaitGroup
		cores := runtime.GOMAXPROCS(0)
		for core := range cores {
			from, until := n*core/cores, n*(core+1)/cores
			group.Go(func() { add(to[from:until], a[from:until], b[from:until]) })
		}
		group.Wait()
		best = max(best, (3 * size).Over(since(start)))
	}
	return best
}

func since(start time.Time) units.Time { return units.Time(time.Since(start)) * units.Nanosecond }
