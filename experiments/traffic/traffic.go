// Package traffic says what a simulated call put on the links of a cluster: link
// by link, and as a map of them all.
package traffic

import (
	"cmp"
	"math"
	"slices"

	"tutti/model/units"
	"tutti/sim"
	"tutti/topo"
)

// Link is what crossed a link.
type Link struct {
	// Name says what it joins ([topo.Cluster.LinkName]), and Kind whichever one it
	// is ([topo.Cluster.LinkKind]).
	Name, Kind string
	// Alike counts the links that it stands for, itself included.
	Alike int
	// Bytes are those on the wire, flags included.
	Bytes units.Bytes
	// Busy is the share of the call's time that they take at the rate which the
	// link reaches.
	Busy float64
	// Rate is bytes over the call's time, Capacity what the link is built for.
	Rate, Capacity units.Rate
}

// Links lists what crossed the links, the busiest first: the first one is the
// bottleneck, unless it is threads or latency that hold the call up. One stands
// for all of its kind that carried as much.
func Links(r sim.Result, c *topo.Cluster) (links []Link) {
	type load struct {
		seat  // as links of one place in machines that are alike are of one kind
		bytes units.Bytes
		busy  units.Time
	}
	type group struct {
		kind     string
		capacity units.Rate
		bytes    units.Bytes
		busy     units.Time
	}
	loads, groups := map[load]int{}, map[group]int{}
	for l := range r.EachLoad {
		if l.Bytes == 0 {
			continue
		}
		at := seatOf(c, l.Link)
		i, known := loads[load{at, l.Bytes, l.Busy}]
		if !known {
			_, capacity := c.Link(l.Link)
			key := group{c.LinkKind(l.Link), capacity, l.Bytes, l.Busy}
			if i, known = groups[key]; !known {
				i = len(links)
				groups[key] = i
				links = append(links, link(r, c, l))
				links[i].Alike = 0
			}
			loads[load{at, l.Bytes, l.Busy}] = i
		}
		links[i].Alike++
	}
	slices.SortStableFunc(links, busiest)
	return links
}

// seat is a place of links in machines of one kind, or above those below a group
// of switches.
type seat struct{ machine, local int }

func seatOf(c *topo.Cluster, link int) seat {
	_, local := c.Place(link)
	if c.BetweenSwitches(link) {
		return seat{0, local}
	}
	node, _ := c.Below(link)
	return seat{c.Kind(node), local}
}

// busiest orders links by how busy they are.
func busiest(a, b Link) int { return cmp.Compare(b.Busy, a.Busy) }

// Each is [Links] with every link for itself.
func Each(r sim.Result, c *topo.Cluster) (links []Link) {
	for l := range r.EachLoad {
		if l.Bytes > 0 {
			links = append(links, link(r, c, l))
		}
	}
	slices.SortStableFunc(links, busiest)
	return links
}

func link(r sim.Result, c *topo.Cluster, l sim.Load) Link {
	_, capacity := c.Link(l.Link)
	return Link{
		Name: c.LinkName(l.Link), Kind: c.LinkKind(l.Link), Alike: l.Like, Bytes: l.Bytes,
		Busy: share(r, l), Rate: l.Bytes.Over(r.Time), Capacity: capacity,
	}
}

func share(r sim.Result, l sim.Load) float64 { return float64(l.Busy) / float64(r.Time) }

// Map shows how busy all links of a cluster were.
type Map struct {
	Nodes int
	Bands []Band
}

// Band has the links of one kind.
type Band struct {
	Kind string
	// Span is how many machines a column stands for: one or, where switches join
	// several or there are more than [MaxColumns], more. The last may have fewer.
	Span int
	// Busy is how busy the links were, in rows by their place in a machine, or above
	// a group of switches; NaN where there is none in use. Where several links are
	// one cell, it is that of the busiest.
	Busy [][]float64
	// Busiest is the link that was busy longest, and Mean how busy those in use were
	// on average.
	Busiest Link
	Mean    float64
}

// A map has at most so many columns, and rows in a band; what is more shares one.
const (
	MaxColumns = 128
	maxRows    = 32
)

// NewMap returns the map of a simulated call.
func NewMap(r sim.Result, c *topo.Cluster) Map {
	m := Map{Nodes: c.Nodes}
	type cell struct{ band, row int }
	type column struct{ band, machine int }
	cells, rows := map[seat]cell{}, map[column]int{} // and how many rows each kind of machine has
	bands := map[string]int{}
	var used []int // links of each band
	for l := range r.EachLoad {
		own := seatOf(c, l.Link)
		at, known := cells[own]
		first, count := c.Below(l.Link)
		if !known {
			kind := c.LinkKind(l.Link)
			i, known := bands[kind]
			if !known {
				i = len(m.Bands)
				bands[kind] = i
				span := count * ((c.Nodes + count*MaxColumns - 1) / (count * MaxColumns))
				m.Bands, used = append(m.Bands, Band{Kind: kind, Span: span}), append(used, 0)
			}
			b := &m.Bands[i]
			at = cell{i, rows[column{i, own.machine}]}
			if rows[column{i, own.machine}]++; at.row == len(b.Busy) {
				b.Busy = append(b.Busy, slices.Repeat([]float64{math.NaN()}, (c.Nodes+b.Span-1)/b.Span))
			}
			cells[own] = at
		}
		if l.Bytes == 0 {
			continue
		}
		b, busy := &m.Bands[at.band], share(r, l)
		raise(&b.Busy[at.row][first/b.Span], busy)
		if busy > b.Busiest.Busy {
			b.Busiest = link(r, c, l)
		}
		b.Mean += busy
		used[at.band]++
	}
	for i := range m.Bands {
		m.Bands[i].Mean /= float64(max(1, used[i]))
		m.Bands[i].fold()
	}
	m.Bands = slices.DeleteFunc(m.Bands, func(b Band) bool { return b.Busiest.Bytes == 0 })
	slices.SortStableFunc(m.Bands, func(a, b Band) int { return cmp.Compare(onTheWay(a.Kind), onTheWay(b.Kind)) })
	return m
}

// raise makes a value at least as large as another.
func raise(value *float64, to float64) {
	if !(*value >= to) { // not a number counts as less
		*value = to
	}
}

// fold makes rows share one where there are too many.
func (b *Band) fold() {
	share := (len(b.Busy) + maxRows - 1) / maxRows
	if share < 2 {
		return
	}
	var folded [][]float64
	for rows := range slices.Chunk(b.Busy, share) {
		for _, row := range rows[1:] {
			for i, busy := range row {
				if !math.IsNaN(busy) {
					raise(&rows[0][i], busy)
				}
			}
		}
		folded = append(folded, rows[0])
	}
	b.Busy = folded
}

// way lists the kinds of links as data meets them: within a machine, then out to
// the network and back.
var way = []string{
	"GPU > NVS", "NVS > GPU", "GPU > GPU", "GPU > PCI", "GPU > CPU", "PCI > PCI", "PCI > CPU", "CPU > CPU", "CPU > PCI", "CPU > NIC",
	"PCI > NIC", "NIC > NET", "NET > leaf", "leaf > spine", "spine > core", "core > spine", "spine > leaf", "leaf > NET", "NET > NIC",
	"NIC > PCI", "NIC > CPU", "PCI > GPU", "CPU > GPU",
}

// onTheWay returns a kind's place there; others come last.
func onTheWay(kind string) int {
	if i := slices.Index(way, kind); i >= 0 {
		return i
	}
	return len(way)
}
