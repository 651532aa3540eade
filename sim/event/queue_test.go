package event_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"tutti/model/units"
	"tutti/sim/event"
)

// The queue gives what a list that is kept sorted gives, ties included.
func TestOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q event.Queue
		var list []event.Event
		q.Soon = func(soon []event.Event) { require.Subset(t, list, soon) }
		now := units.Time(0)
		delay := rapid.OneOf(rapid.Int64Range(0, 3), rapid.Int64Range(0, 1<<50))
		for id := range int32(rapid.IntRange(0, 200).Draw(t, "operations")) {
			if by := units.Time(rapid.SampledFrom([]int64{0, 0, 0, 1 << 20}).Draw(t, "all later")); by > 0 {
				q.Delay(by)
				now += by
				for i := range list {
					list[i].At += by
				}
			}
			if require.Equal(t, list, q.Events(list[:0:0])); len(list) > 0 && rapid.Bool().Draw(t, "pop") {
				require.Equal(t, list[0].At, q.Next())
				_, ok := q.PopUntil(list[0].At - 1)
				require.False(t, ok)
				e := q.Pop()
				require.Equal(t, list[0], e)
				now, list = e.At, list[1:]
			} else {
				e := event.Event{At: now + units.Time(delay.Draw(t, "delay")), ID: id}
				q.Push(e.At, e.ID)
				i := len(list)
				for i > 0 && list[i-1].At > e.At {
					i--
				}
				list = append(list[:i], append([]event.Event{e}, list[i:]...)...)
			}
			require.Equal(t, len(list), q.Len())
		}
	})
}

func TestMisusePanics(t *testing.T) {
	var q event.Queue
	assert.Panics(t, func() { q.Pop() })
	q.Push(5, 1)
	q.Pop()
	assert.Panics(t, func() { q.Push(4, 1) })
	assert.Panics(t, func() { q.Pop() })
}

// The hold model: with n events in the queue, one is popped and one pushed, by
// four delays as links have them, so that many coincide.
func BenchmarkHold(b *testing.B) {
	delays := []units.Time{600 * units.Nanosecond, 2700 * units.Nanosecond, 3400 * units.Nanosecond, 14 * units.Microsecond}
	for _, n := range []int{100, 10_000, 1_000_000} {
		b.Run(fmt.Sprintf("events=%d", n), func(b *testing.B) {
			var q event.Queue
			random := rand.New(rand.NewPCG(1, 2))
			for i := range n {
				q.Push(units.Time(random.Int64N(int64(units.Microsecond))), int32(i))
			}
			b.ReportAllocs()
			for i := range b.N {
				e := q.Pop()
				q.Push(e.At+delays[i&3], e.ID)
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mevents/s")
		})
	}
}
