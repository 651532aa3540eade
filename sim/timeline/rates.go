package timeline

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"tutti/model/schedule"
	"tutti/model/splitmix"
	"tutti/model/units"
	"tutti/sim"
)

// flow is an item on links, over which its bytes are spread evenly.
type flow struct {
	connection int
	bytes      units.Bytes
	begin, end units.Time
}

// flows lists what crossed links: items of the network while they did, others
// during the step that moved them.
func (t *Timeline) flows() (list []flow) {
	type mover struct {
		worker int
		sends  bool
	}
	movers := map[int]mover{}
	for at, uses := range t.uses {
		done := t.steps[at]
		for _, u := range uses {
			m, known := movers[u.connection]
			if !known {
				n := t.schedule.Connection(u.connection)
				m = mover{n.From[0], true}
				if n.Kind == schedule.Reduction || n.Storage == schedule.InInput {
					m = mover{n.To[0], false}
				}
				if n.OutNET >= 0 {
					m.worker = -1 // the network
				}
				movers[u.connection] = m
			}
			if m == (mover{int(done.worker), u.sends}) && u.bytes > 0 && done.end > done.begin {
				list = append(list, flow{u.connection, u.bytes, done.begin, done.end})
			}
		}
	}
	number := 0
	for i, m := range t.items {
		if number++; i == 0 || t.items[i-1].connection != m.connection {
			number = 0
		}
		if bytes := t.passages[m.connection].bytes[number]; bytes > 0 && m.end > m.begin {
			list = append(list, flow{int(m.connection), bytes, m.begin, m.end})
		}
	}
	return list
}

// track is the rate of links that carry the same, over time.
type track struct {
	name   string
	points []point
}

type point struct {
	at   units.Time
	rate units.Rate
}

// findTracks returns those of all links, the one with the most flows first, as far as
// they have no more than so many points together, and how many there are.
func (t *Timeline) findTracks(r sim.Result, most int) (list []track, of int) {
	type bundle struct{ count, sum uint64 } // of flows: that of links which carry the same
	flows, bundles := t.flows(), map[int]bundle{}
	for i, f := range flows {
		for _, link := range r.Route(f.connection, f.begin) {
			b := bundles[link]
			bundles[link] = bundle{b.count + 1, b.sum + splitmix.Mix(uint64(i))}
		}
	}
	members := map[bundle][]int{}
	var order []bundle
	for _, link := range slices.Sorted(maps.Keys(bundles)) {
		b := bundles[link]
		if members[b] == nil {
			order = append(order, b)
		}
		members[b] = append(members[b], link)
	}
	slices.SortStableFunc(order, func(a, b bundle) int { return cmp.Compare(b.count, a.count) })
	of = len(order)
	kept, points := map[int]int{}, 0 // the first link of each bundle: its place
	for i, b := range order {
		if points += 2 * int(b.count); points > most && i > 0 {
			order = order[:i]
			break
		}
		kept[members[b][0]] = i
	}
	changes := make([]map[units.Time]float64, len(order))
	for i := range changes {
		changes[i] = map[units.Time]float64{}
	}
	for _, f := range flows {
		rate := float64(f.bytes.Over(f.end - f.begin))
		for _, link := range r.Route(f.connection, f.begin) {
			if i, ok := kept[link]; ok {
				changes[i][f.begin] += rate
				changes[i][f.end] -= rate
			}
		}
	}
	for i, b := range order {
		list = append(list, track{t.named(members[b]), integrate(changes[i])})
	}
	return list, of
}

// named names links that carry the same after the narrowest.
func (t *Timeline) named(links []int) string {
	narrowest := slices.MinFunc(links, func(a, b int) int {
		_, x := t.cluster.Link(a)
		_, y := t.cluster.Link(b)
		return cmp.Compare(x, y)
	})
	if len(links) == 1 {
		return t.cluster.LinkName(narrowest)
	}
	return fmt.Sprintf("%s, and %d in a row with it", t.cluster.LinkName(narrowest), len(links)-1)
}

// integrate returns the rates that changes make, in the order of time.
func integrate(changes map[units.Time]float64) (points []point) {
	rate := 0.
	for _, at := range slices.Sorted(maps.Keys(changes)) {
		if rate += changes[at]; math.Abs(rate) < 1 { // byte a second: what rounding leaves
			rate = 0
		}
		points = append(points, point{at, units.Rate(rate)})
	}
	return points
}
