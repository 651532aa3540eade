package sim

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"tutti/model/units"
)

// What leaves a link that serves items in turn has its own service left, and those
// behind it move up.
func TestTakeInTurn(t *testing.T) {
	l, flows := link{pace: units.GBps.Pace(), inTurn: true, room: 3}, make([]flow, 3)
	for owner, size := range []units.Bytes{1000, 2000, 3000} {
		l.announce(flows, flow{0, size, int32(owner), 1})
	}
	l.advance(flows, units.Microsecond/2)
	left, ok := l.take(flows, 1)
	assert.True(t, ok)
	assert.Equal(t, 2*units.Microsecond, left)
	left, _ = l.take(flows, 0)
	assert.Equal(t, units.Microsecond/2, left)
	assert.Equal(t, units.Microsecond/2+3*units.Microsecond, l.next(flows))
	l.advance(flows, units.Microsecond)
	l.take(flows, 2)
	assert.Zero(t, l.load)
}
