package search

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"tutti/model/units"
	"tutti/topo"
)

// WriteNCCL writes graphs and their connection in the words of NCCL's log: each
// graph with its channels (ncclTopoPrintGraph in NCCL 2.28.3, search.cc), the
// numbers of channels, and the tree links of rank 0 on the first channel of each
// of the two trees. Of a mixture, the graphs of each machine follow its name. With
// ranks, the rings and trees of every rank follow.
func WriteNCCL(w io.Writer, c *topo.Cluster, g Graphs, ranks bool) error {
	var text strings.Builder
	for kind, m := range c.Machines() {
		if c.Mixed() {
			fmt.Fprintf(&text, "# %s\n", m.Name)
		}
		for _, named := range g.Of(kind).named() {
			writeGraph(&text, c.AllOf(kind), named.name, named.graph)
		}
	}
	k := Connect(c, g)
	fmt.Fprintf(&text, "CHANNELS coll %d nvls %d p2p %d perPeer %d\n", k.Collective, k.NVLS, k.P2P, k.PerPeer)
	fmt.Fprintf(&text, "TREE0 up/down ch0: %s  ch%d: %s\n", upDown(k.Trees.At(0, 0)), k.Search, upDown(k.Trees.At(k.Search, 0)))
	if _, err := io.WriteString(w, text.String()); err != nil || !ranks {
		return err
	}
	for rank := range c.Ranks() {
		text.Reset()
		k.writeRank(&text, rank)
		if _, err := io.WriteString(w, text.String()); err != nil {
			return err
		}
	}
	return nil
}

// namedGraph is a graph under the name that the log gives it.
type namedGraph struct {
	name  string
	graph Graph
}

// named lists the graphs that have channels, in NCCL's order.
func (g Graphs) named() []namedGraph {
	list := []namedGraph{{"RING", g.Ring}, {"TREE", g.Tree}, {"CHAIN", g.CollNetChain}, {"DIRECT", g.CollNetDirect}, {"NVLS", g.NVLS}}
	return slices.DeleteFunc(list, func(n namedGraph) bool { return len(n.graph.Channels) == 0 })
}

func writeGraph(w *strings.Builder, c *topo.Cluster, name string, g Graph) {
	same := 0
	if g.SameChannels {
		same = 1
	}
	fmt.Fprintf(w, "%-5s Pattern %d, crossNic %d, nChannels %d, bw %f/%f, type %v/%v, sameChannels %d\n", name,
		g.Pattern, g.CrossNic, len(g.Channels), float32(g.BwIntra/units.GBps), float32(g.BwInter/units.GBps), g.TypeIntra, g.TypeInter, same)
	for i, ch := range g.Channels {
		fmt.Fprintf(w, "%2d :", i)
		for _, node := range ch.nodes(c) {
			w.WriteString(" " + c.Machine.Label(node))
		}
		w.WriteString("\n")
	}
}

// nodes lists what a channel passes on a machine: ports and GPUs.
func (ch Channel) nodes(c *topo.Cluster) []int {
	var list []int
	if ch.In >= 0 {
		list = append(list, c.Machine.NETs[ch.In])
	}
	for _, gpu := range ch.GPUs {
		list = append(list, c.GPU(gpu))
	}
	if ch.Out >= 0 {
		list = append(list, c.Machine.NETs[ch.Out])
	}
	return list
}

// writeRank writes the rings and trees of a rank.
func (k *Connection) writeRank(w *strings.Builder, rank int) {
	for ch := range k.Collective {
		at := k.Rings.Index(ch, rank)
		fmt.Fprintf(w, "rank %d Ring %02d : %d -> %d -> %d\n", rank, ch, k.Rings.At(ch, at-1), rank, k.Rings.At(ch, at+1))
	}
	fmt.Fprintf(w, "rank %d Trees", rank)
	for ch := range k.Collective {
		p := k.Trees.At(ch, rank)
		fmt.Fprintf(w, " [%d] %s->%d->%d", ch, downs(p), rank, p.Up)
	}
	w.WriteString("\n")
}

// upDown writes the links of a rank in a tree: its parent and up to three
// children, -1 for none.
func upDown(p Position) string { return fmt.Sprintf("%d -> %s", p.Up, downs(p)) }

func downs(p Position) string {
	down := append(slices.Clone(p.Down()), -1, -1, -1)
	return fmt.Sprintf("%d/%d/%d", down[0], down[1], down[2])
}
