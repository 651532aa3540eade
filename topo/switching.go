package topo

import "tutti/model/units"

// Switching says when a switch passes a packet on.
type Switching int

// The kinds of switching.
const (
	// CutThrough passes a packet on as soon as its head is there.
	CutThrough Switching = iota
	// StoreAndForward waits for the whole packet.
	StoreAndForward
)

func (s Switching) String() string { return [...]string{"cut-through", "store-and-forward"}[s] }

// Packet is the most that a packet carries: InfiniBand's largest MTU.
const Packet = 4 * units.KiB

// Stored returns how long the switch at the end of a link waits for the last
// packet of an item of the given size, once its head is there. It is 0 under
// cut-through, and for links that do not end at a switch of the fabric.
func (c *Cluster) Stored(link int, size units.Bytes) units.Time {
	if c.Fabric.Switching == CutThrough || link < c.cables() {
		return 0
	}
	t := c.tierOf(link)
	if t.level == 0 && (link-t.First)%2 != 0 { // down to a port
		return 0
	}
	_, cable := c.Link(link)
	if t.pooled {
		cable /= units.Rate(c.tiers[t.level-1].Planes * t.Parents * t.Parallel)
	}
	return cable.Pace().Of(min(size, Packet))
}
