package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// writeSearchTable tells graphs to a person: what each gives, and which way its
// channels go, those that go the same way in one line.
func writeSearchTable(w io.Writer, c *topo.Cluster, g search.Graphs) error {
	k := search.Connect(c, g)
	if c.Mixed() {
		fmt.Fprintf(w, "%s: %d GPUs\n", c.Title(), c.Ranks())
	} else {
		fmt.Fprintf(w, "%s: %d x %d GPUs\n", c.Machine.Name, c.Nodes, c.RanksPerNode())
	}
	fmt.Fprintf(w, "channels: %d for collectives, %d for NVLS, %d for sends (%d to each peer)\n\n", k.Collective, k.NVLS, k.P2P, k.PerPeer)
	lines := searchGraphs(c, g)
	summary := table{header: []string{"graph", "pattern", "channels", "inside(GB/s)", "between(GB/s)", "inside by", "between by", "ports"}}
	ways := table{header: []string{"graph", "channels", "way through a machine"}}
	if c.Mixed() {
		ways.header = append(ways.header, "machine")
	}
	for _, line := range lines {
		graph := line.graph
		between, by := none, none
		if c.Nodes > 1 {
			between, by = gigabytes(graph.BwInter), graph.TypeInter.String()
		}
		summary.add(line.name, patterns(graph), strconv.Itoa(len(graph.Channels)), gigabytes(graph.BwIntra), between, graph.TypeIntra.String(), by, ports(c, graph))
		for kind, m := range c.Machines() {
			for _, way := range waysOf(m, *graph.On(kind)) {
				cells := []string{line.name, way.channels, way.text}
				if c.Mixed() {
					cells = append(cells, m.Name)
				}
				ways.add(cells...)
			}
		}
	}
	if err := summary.write(w, false); err != nil {
		return err
	}
	fmt.Fprintln(w)
	if err := ways.write(w, false); err != nil {
		return err
	}
	if g.NVLSError != nil {
		fmt.Fprintf(w, "\nno nvls: %v\n", g.NVLSError)
	}
	return nil
}

type searchGraph struct {
	name  string
	graph search.Graph
}

// searchGraphs lists the graphs that have channels and, where machines have rails,
// the rail rings, which are not NCCL's.
func searchGraphs(c *topo.Cluster, g search.Graphs) []searchGraph {
	rails, _ := search.RailRings(c)
	all := []searchGraph{{"ring", g.Ring}, {"tree", g.Tree}, {"collnetchain", g.CollNetChain}, {"collnet", g.CollNetDirect}, {"nvls", g.NVLS}, {"railring", rails}}
	return slices.DeleteFunc(all, func(s searchGraph) bool { return len(s.graph.Channels) == 0 })
}

var patternNames = map[search.Pattern]string{
	search.BalancedTree: "balanced tree", search.SplitTree: "split tree", search.TreePattern: "chain",
	search.RingPattern: "ring", search.NVLSPattern: "heads", search.CollNetDirect: "heads",
}

// patterns names that of a graph, of a mixture those of all machines.
func patterns(g search.Graph) string {
	names := []string{patternNames[g.Pattern]}
	for _, other := range g.Others {
		if name := patternNames[other.Pattern]; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return strings.Join(names, " or ")
}

// ports tells how a graph uses the ports of a machine.
func ports(c *topo.Cluster, g search.Graph) string {
	switch {
	case c.Nodes == 1:
		return "none"
	case g.CrossNic == 2:
		return "in pairs"
	case g.CrossNic == 1:
		return "any"
	default:
		return "same in and out"
	}
}

func gigabytes(r units.Rate) string { return strconv.FormatFloat(float64(r/units.GBps), 'g', 4, 64) }

// way is what one or more channels have in common.
type way struct {
	channels, text string
	first          search.Channel
}

// waysOf tells the channels of a graph, those that go one way together.
func waysOf(m *topo.System, g search.Graph) []way {
	var list []way
	members := map[string][]int{}
	for i, ch := range g.Channels {
		text := wayOf(m, ch)
		if members[text] == nil {
			list = append(list, way{text: text, first: ch})
		}
		members[text] = append(members[text], i)
	}
	for i := range list {
		list[i].channels = ranges(members[list[i].text])
	}
	return list
}

func wayOf(m *topo.System, ch search.Channel) string {
	name := func(net int) string { return m.Nodes[m.NETs[net]].Name }
	var words []string
	if ch.In >= 0 {
		words = append(words, name(ch.In)+" >")
	}
	for _, gpu := range ch.GPUs {
		words = append(words, strconv.Itoa(gpu))
	}
	if ch.Out >= 0 {
		words = append(words, "> "+name(ch.Out))
	}
	return strings.Join(words, " ")
}
