package host

import (
	"fmt"
	"testing"

	"tutti/backend/number"
	"tutti/model"
	"tutti/model/schedule"
)

// BenchmarkFold shows how fast two sources are combined in a cache.
func BenchmarkFold(b *testing.B) {
	const size = 256 << 10
	to, sources := number.Memory(size), [][]byte{number.Memory(size), number.Memory(size)}
	for _, source := range sources {
		for i := range source {
			source[i] = 0x3a // a usual number of every type
		}
	}
	for _, d := range model.Datatypes() {
		for _, op := range []model.Redop{model.Sum, model.Max} {
			b.Run(fmt.Sprintf("%v/%v", d, op), func(b *testing.B) {
				fold := newFold(schedule.Task{Datatype: d, Redop: op, Ranks: 2})
				b.SetBytes(size)
				for b.Loop() {
					fold(to, sources, false)
				}
			})
		}
	}
}
