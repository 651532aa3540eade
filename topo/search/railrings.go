package search

import (
	"errors"
	"fmt"

	"tutti/model/units"
	"tutti/topo"
)

// RailRings finds the alternating rings of Penny, a communications library on
// NVSHMEM: as many rings as there are rails, of which every machine enters one of
// a pair of rails and leaves by the other, and the next machine the other way
// round, so that traffic between machines never changes its rail. The second ring
// of each pair passes GPUs and machines backwards, so that it uses what the first
// leaves free of every port. Source: "Writing my own communications library - a
// worklog of creating Penny, part 1", section "Multi node reduction".
//
// It fails unless the GPUs are an even number, each with a NET of its own, on all
// machines alike. With an odd number of machines, the way from the last to the
// first changes rails.
func RailRings(c *topo.Cluster) (Graph, error) {
	if what := c.Differs(); what != "" {
		return Graph{}, fmt.Errorf("rail rings pass every machine by the same rails, and %s: want ring", what)
	}
	var all Graph
	for kind := range c.Machines() {
		g, err := railRings(c.AllOf(kind))
		if err != nil {
			return Graph{}, err
		}
		if kind == 0 {
			all = g
		} else {
			all.Others = append(all.Others, g)
		}
	}
	return all, nil
}

// railRings is [RailRings] of equal machines.
func railRings(c *topo.Cluster) (Graph, error) {
	k := c.RanksPerNode()
	if k%2 == 1 {
		return Graph{}, fmt.Errorf("rail rings pair the GPUs of a machine, and %d take part: want an even number", k)
	}
	g := Graph{Pattern: RingPattern, CrossNic: 2, Opposed: true, TypeIntra: topo.PathLOC, TypeInter: topo.PathPIX}
	rails := NewRails(c)
	for r := range k {
		rail, pair := r/2*2, r/2*2+1
		ch := Channel{In: rails.NET(0, pair), Out: rails.NET(0, rail)}
		for i := range k {
			ch.GPUs = append(ch.GPUs, (pair+i)%k) // upwards from the pair's second rail to its first
		}
		if r%2 == 1 { // backwards through the machine
			ch.In, ch.Out = rails.NET(0, rail), rails.NET(0, pair)
			for i := range k {
				ch.GPUs[i] = (rail + k - i) % k
			}
		}
		g.Channels = append(g.Channels, ch)
	}
	if c.Nodes > 1 {
		used := map[int]bool{}
		for gpu := range k {
			used[rails.NET(0, gpu)] = true
		}
		if used[-1] || len(used) < k {
			return Graph{}, errors.New("rail rings need a NET for every GPU, and some share theirs")
		}
	}
	g.measure(c)
	return g, nil
}

// measure notes the worst paths of the channels, and the rate that each of as many
// gets of them.
func (g *Graph) measure(c *topo.Cluster) {
	m := c.Machine.Restrict(c.RanksPerNode(), c.Nodes > 1)
	note := func(kind *topo.PathType, bw *units.Rate, p topo.Path, sharing int) {
		*kind = max(*kind, p.Type)
		if r := p.Rate / units.Rate(sharing); *bw == 0 || r < *bw {
			*bw = r
		}
	}
	for _, ch := range g.Channels {
		last := len(ch.GPUs) - 1
		for i := range last {
			note(&g.TypeIntra, &g.BwIntra, m.Path(c.GPU(ch.GPUs[i]), c.GPU(ch.GPUs[i+1])), len(g.Channels))
		}
		if ch.In >= 0 {
			note(&g.TypeInter, &g.BwInter, m.Path(m.NETs[ch.In], c.GPU(ch.GPUs[0])), 1)
			note(&g.TypeInter, &g.BwInter, m.Path(c.GPU(ch.GPUs[last]), m.NETs[ch.Out]), 1)
		}
	}
	if c.Nodes == 1 {
		g.BwInter = g.BwIntra
	}
}
