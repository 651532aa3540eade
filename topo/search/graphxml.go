package search

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"

	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/xmltree"
)

// filed is a graph under the number that NCCL's graph files give it.
type filed struct {
	id      int
	pattern Pattern // where there is no graph
	graph   *Graph
}

// filed lists the graphs in the order in which NCCL writes them.
func (g *Graphs) filed() []filed {
	return []filed{
		{0, RingPattern, &g.Ring}, {1, BalancedTree, &g.Tree}, {4, CollNetDirect, &g.CollNetDirect},
		{2, TreePattern, &g.CollNetChain}, {3, NVLSPattern, &g.NVLS},
	}
}

// pathTypes are the types of paths that graph files can name.
var pathTypes = []topo.PathType{
	topo.PathLOC, topo.PathNVL, topo.PathNVB, topo.PathPIX, topo.PathPXB, topo.PathP2C, topo.PathPXN, topo.PathPHB, topo.PathSYS,
}

// WriteXML writes graphs as NCCL_GRAPH_DUMP_FILE does, for NCCL_GRAPH_FILE to
// read (NCCL 2.28.3, search.cc, ncclTopoGetXmlFromGraphs); of a mixture, those of
// the first machine, which rank 0 is on. It fails for a graph whose paths have a
// type that such a file cannot name.
func WriteXML(w io.Writer, c *topo.Cluster, g Graphs) error {
	c, g = c.AllOf(0), g.Of(0)
	root := xmltree.New("graphs", "version", "1")
	for _, f := range g.filed() {
		e, err := graphElement(c, f)
		if err != nil {
			return err
		}
		root.Add(e)
	}
	return root.Write(w)
}

func graphElement(c *topo.Cluster, f filed) (*xmltree.Element, error) {
	g, flag := f.graph, map[bool]string{false: "0", true: "1"}
	pattern := g.Pattern
	if len(g.Channels) == 0 {
		g, pattern = &Graph{}, f.pattern
	}
	for _, t := range []topo.PathType{g.TypeIntra, g.TypeInter} {
		if !slices.Contains(pathTypes, t) {
			return nil, fmt.Errorf("graph %d has paths of type %v, which NCCL's graph files have no word for: want one of %v", f.id, t, pathTypes)
		}
	}
	number := func(v float64) string { return strconv.FormatFloat(v, 'g', -1, 32) }
	e := xmltree.New("graph", "id", strconv.Itoa(f.id), "pattern", strconv.Itoa(int(pattern)), "crossnic", strconv.Itoa(g.CrossNic),
		"nchannels", strconv.Itoa(len(g.Channels)), "speedintra", number(float64(g.BwIntra/units.GBps)), "speedinter", number(float64(g.BwInter/units.GBps)),
		"latencyinter", number(g.LatencyInter.Microseconds()), "typeintra", g.TypeIntra.String(), "typeinter", g.TypeInter.String(),
		"samechannels", flag[g.SameChannels])
	for _, ch := range g.Channels {
		channel := e.Add(xmltree.New("channel"))
		for _, node := range ch.nodes(c) {
			name := "gpu"
			if c.Machine.Nodes[node].Type == topo.NET {
				name = "net"
			}
			channel.Add(xmltree.New(name, "dev", device(c.Machine.Nodes[node]).String()))
		}
	}
	return e, nil
}

// deviceID is the number of a GPU or NET in graph files.
type deviceID uint64

func device(n topo.Node) deviceID { return deviceID(n.Host)<<56 | deviceID(n.Dev) }

// String writes the number as C's %#lx does: in hexadecimal with 0x, but for 0.
func (d deviceID) String() string {
	if d == 0 {
		return "0"
	}
	return fmt.Sprintf("%#x", uint64(d))
}

// ReadXML reads a graph file for a cluster of equal machines; name stands for it in
// errors. Only the graphs that the file has channels for are set. It fails, with
// file, line and element, for a file of another kind, missing or absurd attributes, a
// GPU or NET that is not on the machine, a GPU twice in a channel or none at all, and
// a graph for several machines without NETs.
func ReadXML(r io.Reader, name string, c *topo.Cluster) (Graphs, error) {
	var g Graphs
	root, err := xmltree.Parse(r, name, "graph file", "graphs")
	if err != nil {
		return g, err
	}
	x := &graphReader{Reader: xmltree.Reader{File: name}, cluster: c, gpus: map[deviceID]int{}, nets: map[deviceID]int{}}
	for rank := range c.RanksPerNode() {
		x.gpus[device(c.Machine.Nodes[c.GPU(rank)])] = rank
	}
	for i, net := range c.Machine.NETs {
		x.nets[device(c.Machine.Nodes[net])] = i
	}
	if v := x.Text(root, "version"); v != "1" {
		x.Fail(root.Line, "<graphs> has version %q: want 1", v)
	}
	for _, e := range root.Children {
		if e.Name != "graph" {
			continue
		}
		id := x.Int(e, "id", 0, math.MaxInt32)
		for _, f := range g.filed() {
			if f.id == id {
				*f.graph = x.graph(e)
			}
		}
	}
	return g, x.Err
}

type graphReader struct {
	xmltree.Reader
	cluster    *topo.Cluster
	gpus, nets map[deviceID]int
}

func (x *graphReader) graph(e *xmltree.Element) Graph {
	g := Graph{
		Pattern: Pattern(x.Int(e, "pattern", int(BalancedTree), int(CollNetDirect))), CrossNic: x.Int(e, "crossnic", 0, 2),
		BwIntra: x.rate(e, "speedintra"), BwInter: x.rate(e, "speedinter"), LatencyInter: units.FromMicroseconds(x.FloatOr(e, "latencyinter", 0, 1e6, 0)),
		TypeIntra: x.pathType(e, "typeintra"), TypeInter: x.pathType(e, "typeinter"), SameChannels: x.Int(e, "samechannels", 0, 1) == 1,
	}
	n := x.Int(e, "nchannels", 0, MaxChannels)
	if n == 0 {
		return Graph{}
	}
	for _, child := range e.Children {
		if child.Name == "channel" {
			g.Channels = append(g.Channels, x.channel(child, g.Pattern))
		}
	}
	if len(g.Channels) < n {
		x.Fail(e.Line, "<graph> has nchannels=%d, and %d <channel> elements", n, len(g.Channels))
		return Graph{}
	}
	g.Channels = g.Channels[:n]
	return g
}

func (x *graphReader) rate(e *xmltree.Element, attr string) units.Rate {
	x.Text(e, attr)
	return rate(float32(x.FloatOr(e, attr, 0, 1e6, 0)))
}

func (x *graphReader) pathType(e *xmltree.Element, attr string) topo.PathType {
	v := x.Text(e, attr)
	for _, t := range pathTypes {
		if t.String() == v {
			return t
		}
	}
	x.Fail(e.Line, "<%s> has %s=%q: want one of %v", e.Name, attr, v, pathTypes)
	return 0
}

func (x *graphReader) channel(e *xmltree.Element, p Pattern) Channel {
	ch := Channel{In: -1, Out: -1}
	var nets []int
	for _, child := range e.Children {
		switch child.Name {
		case "gpu":
			rank, known := x.gpus[deviceID(x.Hex(child, "dev"))]
			if dev := x.Text(child, "dev"); !known {
				x.Fail(child.Line, "<gpu> has dev=%q: no such GPU takes part", dev)
			} else if slices.Contains(ch.GPUs, rank) {
				x.Fail(child.Line, "<gpu> has dev=%q: it stands in the channel already", dev)
			}
			ch.GPUs = append(ch.GPUs, rank)
		case "net":
			net, known := x.nets[deviceID(x.Hex(child, "dev"))]
			if dev := x.Text(child, "dev"); !known {
				x.Fail(child.Line, "<net> has dev=%q: no such NET on %s", dev, x.cluster.Machine.Name)
			}
			nets = append(nets, net)
		}
	}
	want := x.cluster.RanksPerNode()
	if p == NVLSPattern {
		want = 1
	}
	if len(ch.GPUs) != want {
		x.Fail(e.Line, "<channel> has %d GPUs: want %d", len(ch.GPUs), want)
	}
	switch between := x.cluster.Nodes > 1; {
	case between && len(nets) != 2:
		x.Fail(e.Line, "<channel> has %d NETs: want one to enter by and one to leave by", len(nets))
	case between:
		ch.In, ch.Out = nets[0], nets[1]
	}
	return ch
}
