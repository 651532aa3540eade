package topo

import (
	"fmt"
	"slices"

	"tutti/model/units"
)

// Fabric says how the machines of a cluster are joined: by a fat tree of one
// level of switches or more, in the general form of Öhring, Ibel, Das and Kumar,
// "On generalized fat trees" (1995), with parallel cables. Single switches,
// rail-optimised leaves and spines, classic and oversubscribed fat trees are
// cases of it.
//
// A level consists of groups of equal switches that do not know each other. A
// switch has cables to some switches of the level above, other ones than the
// rest of its group has; so whoever goes up any way finds one way down.
type Fabric struct {
	// Name stands for the fabric in errors and outputs.
	Name string
	// Rails gives for each NET of a machine the rail that it is on, from 0. If nil,
	// NETs are on one rail when they have one name, as those of the trays of an
	// NVLink domain have.
	Rails []int
	// Levels are those of the switches, from the leaves up: at most [MaxLevels].
	Levels  []Level
	Routing Routing
	// Switching says when switches pass packets on.
	Switching Switching
	// Sharing says how the cables are shared, and the links between them and GPUs.
	Sharing Sharing
	// Seed varies what ECMP's hash gives.
	Seed uint64
}

// MaxLevels is how many levels of switches a fabric may have: leaf, spine, core.
const MaxLevels = 3

// LevelName is what the switches of a level are called.
func LevelName(level int) string { return [MaxLevels]string{"leaf", "spine", "core"}[level] }

// Level describes the switches of one level, and the cables below them.
type Level struct {
	// Nodes is how many machines a group of this level joins, a multiple of the
	// level's below; 0 is all.
	Nodes int
	// PerRail says that a group joins ports of one rail only.
	PerRail bool
	// Switches is how many switches a group has: 1 at leaves, and further up a
	// multiple of the number of the groups below.
	Switches int
	// Links is how many cables join two switches; a port of a machine has one.
	Links int
	// Rate is that of a cable. If 0, a leaf's cables run at the NETs' rate, and
	// those further up share what Oversubscription leaves.
	Rate units.Rate
	// Oversubscription is the rate of a lower switch's ports down over that of its
	// cables up, where Rate is 0; 0 counts as 1, non-blocking.
	Oversubscription float64
	// Latency is what it takes to cross a cable and the switch at its end, up or
	// down; 0 leaves that to the constants of the simulation.
	Latency units.Time
	// Reduces says that the switches can add up what their ports send, and
	// multicast (SHARP).
	Reduces bool
}

// Routing says how packets choose among cables that are equally short.
type Routing int

// The routings.
const (
	// Adaptive spreads packets perfectly: the cables of a group are one trunk.
	Adaptive Routing = iota
	// ECMP lets a hash of the flow choose, so that flows collide as they do.
	ECMP
)

func (r Routing) String() string { return [...]string{"adaptive", "ecmp"}[r] }

// RailOptimised is the fabric of an NVIDIA DGX SuperPOD, of any size: scalable
// units of 32 machines, one leaf of 32 ports down and 32 up per rail and unit.
// Source: NVIDIA DGX SuperPOD with DGX H100 Reference Architecture, compute
// fabric.
var RailOptimised = Fabric{
	Name: "rail-optimised",
	Levels: []Level{
		{Nodes: 32, PerRail: true, Switches: 1, Links: 1},
		{Switches: 32, Links: 1},
	},
}

// FabricError says what is wrong with a fabric, by itself or for a machine.
type FabricError struct {
	Fabric string
	// Part is the path of the faulty value, as in "rails" or "spine.switches".
	Part   string
	Reason string
}

func (e *FabricError) Error() string {
	return fmt.Sprintf("fabric %s: %s: %s", e.Fabric, e.Part, e.Reason)
}

// Check finds what is wrong with a fabric, whatever the machine: levels that do
// not fit on each other, figures out of range, rails that never meet. The error
// is a [*FabricError].
func (f *Fabric) Check() error {
	fail := func(level int, field, format string, args ...any) error {
		return &FabricError{f.Name, LevelName(level) + "." + field, fmt.Sprintf(format, args...)}
	}
	if len(f.Levels) < 1 || len(f.Levels) > MaxLevels {
		return &FabricError{f.Name, "levels", fmt.Sprintf("%d levels of switches: want 1 to %d", len(f.Levels), MaxLevels)}
	}
	for i, l := range f.Levels {
		var below Level
		if i > 0 {
			below = f.Levels[i-1]
		}
		switch top := i == len(f.Levels)-1; {
		case l.Nodes < 0 || l.Nodes > MaxNodes:
			return fail(i, "nodes", "%d machines in a group: want 1 to %d, or none for all", l.Nodes, MaxNodes)
		case i > 0 && below.Nodes == 0:
			return fail(i-1, "nodes", "missing: the level above needs to know how many machines a %s joins", LevelName(i-1))
		case i > 0 && l.Nodes%below.Nodes != 0:
			return fail(i, "nodes", "%d machines: want a multiple of the %s's %d", l.Nodes, LevelName(i-1), below.Nodes)
		case i > 0 && l.PerRail && !below.PerRail:
			return fail(i, "per-rail", "apart again after they met at the %s", LevelName(i-1))
		case top && l.PerRail:
			return fail(i, "per-rail", "apart at the top: want a level at which they meet")
		case l.Switches < 1 || l.Switches > MaxNodes:
			return fail(i, "switches", "%d: want 1 to %d", l.Switches, MaxNodes)
		case i == 0 && l.Switches != 1:
			return fail(i, "switches", "%d: a port has one cable, want 1", l.Switches)
		case i > 0 && l.Switches%below.Switches != 0:
			return fail(i, "switches", "%d: want a multiple of the %d in a group of %s switches, so that each has its own", l.Switches, below.Switches, LevelName(i-1))
		case l.Links < 1 || l.Links > maxLinks || (i == 0 && l.Links != 1):
			return fail(i, "links", "%d cables: want 1 to %d, and 1 at a port", l.Links, maxLinks)
		case l.Rate != 0 && !(l.Rate >= units.Mbps && l.Rate <= 1e6*units.Gbps):
			return fail(i, "rate", "%g Gb/s: want 0.001 to 1000000", float64(l.Rate/units.Gbps))
		case l.Oversubscription != 0 && !(l.Oversubscription >= 0.01 && l.Oversubscription <= 1000):
			return fail(i, "oversubscription", "%g: want 0.01 to 1000", l.Oversubscription)
		case i == 0 && l.Oversubscription != 0:
			return fail(i, "oversubscription", "%g: want it at the level whose cables are fewer, above", l.Oversubscription)
		case l.Latency < 0 || l.Latency > units.Second:
			return fail(i, "latency", "%v: want 0 to 1 s", l.Latency)
		}
	}
	return nil
}

// placeOnRails finds the rail of each NET, and the number of rails.
func (c *Cluster) placeOnRails() (count int, err error) {
	var named []*kind // those whose NETs are told by name
	var most *kind    // of these, the one with the most rails
	used := map[int]bool{}
	for i := range c.kinds {
		k := &c.kinds[i]
		if k.rails == nil {
			k.rails = c.Fabric.Rails
		}
		if k.rails == nil {
			k.rails, named = railsByName(k.System), append(named, k)
			if most == nil || slices.Max(k.rails) > slices.Max(most.rails) {
				most = k
			}
		}
		if len(k.rails) != len(k.NETs) {
			return 0, &FabricError{c.Fabric.Name, "rails", fmt.Sprintf("%d NETs stand on rails, but %s has %d", len(k.rails), k.Name, len(k.NETs))}
		}
		for _, r := range k.rails {
			if r < 0 || r >= c.ports {
				return 0, &FabricError{c.Fabric.Name, "rails", fmt.Sprintf("rail %d: want 0 to %d", r, c.ports-1)}
			}
			used[r] = true
			count = max(count, r+1)
		}
	}
	if len(used) != count {
		return 0, &FabricError{c.Fabric.Name, "rails", fmt.Sprintf("%d rails are used of %d: want every one", len(used), count)}
	}
	for _, k := range named {
		k.follow(most)
	}
	return count, nil
}

// follow puts NETs on the rails that their names are on at another machine, if it
// has all of them.
func (k *kind) follow(other *kind) {
	var rails []int
	for _, net := range k.NETs {
		at := slices.IndexFunc(other.NETs, func(n int) bool { return other.Nodes[n].Name == k.Nodes[net].Name })
		if at < 0 {
			return
		}
		rails = append(rails, other.rails[at])
	}
	k.rails = rails
}

func railsByName(machine *System) []int {
	rails, byName, count := make([]int, len(machine.NETs)), map[string]int{}, 0
	for k, net := range machine.NETs {
		name := machine.Nodes[net].Name
		rail, known := byName[name]
		if !known || name == "" {
			rail = count
			byName[name] = rail
			count++
		}
		rails[k] = rail
	}
	return rails
}
