package main

import (
	"tutti/model/units"
	"tutti/topo"
	"tutti/topo/search"
)

// searchSchema is the version of the JSON form, written with it.
const searchSchema = "tutti.search/1"

type jsonSearch struct {
	Schema   string       `json:"schema"`
	Machine  string       `json:"machine"`
	Nodes    int          `json:"nodes"`
	Ranks    int          `json:"ranks"`
	Channels jsonChannels `json:"channels"`
	NVLS     string       `json:"nvls,omitempty"` // why there is none
	Graphs   []jsonGraph  `json:"graphs"`
	Links    []jsonRank   `json:"links,omitempty"` // by rank
}

type jsonChannels struct {
	Collective int `json:"collective"`
	NVLS       int `json:"nvls"`
	P2P        int `json:"p2p"`
	PerPeer    int `json:"p2p_per_peer"`
}

type jsonGraph struct {
	Graph        string         `json:"graph"`
	Machine      string         `json:"machine,omitempty"` // of a mixture, whose channels these are
	Pattern      search.Pattern `json:"pattern"`
	CrossNic     int            `json:"cross_nic"`
	BwIntra      float64        `json:"bw_intra_GBps"`
	BwInter      float64        `json:"bw_inter_GBps"`
	LatencyInter float64        `json:"latency_inter_us"`
	TypeIntra    string         `json:"type_intra"`
	TypeInter    string         `json:"type_inter"`
	SameChannels bool           `json:"same_channels"`
	Channels     []jsonChannel  `json:"channels"`
}

type jsonChannel struct {
	GPUs []int  `json:"gpus"`
	In   string `json:"net_in,omitempty"`
	Out  string `json:"net_out,omitempty"`
}

type jsonRank struct {
	Rank int `json:"rank"`
	// By channel: the ranks before and after in the ring; parent and children.
	Prev []int   `json:"ring_prev"`
	Next []int   `json:"ring_next"`
	Up   []int   `json:"tree_up"`
	Down [][]int `json:"tree_down"`
}

// newJSONSearch tells graphs and the numbers of channels as one value and, with
// ranks, the neighbours of every rank in rings and trees.
func newJSONSearch(c *topo.Cluster, g search.Graphs, ranks bool) jsonSearch {
	k := search.Connect(c, g)
	s := jsonSearch{
		Schema: searchSchema, Machine: c.Machine.Name, Nodes: c.Nodes, Ranks: c.Ranks(),
		Channels: jsonChannels{k.Collective, k.NVLS, k.P2P, k.PerPeer},
	}
	if g.NVLSError != nil {
		s.NVLS = g.NVLSError.Error()
	}
	for _, named := range searchGraphs(c, g) {
		for kind, m := range c.Machines() {
			j := newJSONGraph(named.name, m, named.graph.On(kind))
			if c.Mixed() {
				j.Machine = m.Name
			}
			s.Graphs = append(s.Graphs, j)
		}
	}
	if ranks {
		for rank := range c.Ranks() {
			s.Links = append(s.Links, newJSONRank(k, rank))
		}
	}
	return s
}

// newJSONGraph tells the graph of a machine.
func newJSONGraph(name string, m *topo.System, graph *search.Graph) jsonGraph {
	net := func(i int) string {
		if i < 0 {
			return ""
		}
		return m.Nodes[m.NETs[i]].Name
	}
	j := jsonGraph{
		Graph: name, Pattern: graph.Pattern, CrossNic: graph.CrossNic,
		BwIntra: float64(graph.BwIntra / units.GBps), BwInter: float64(graph.BwInter / units.GBps), LatencyInter: graph.LatencyInter.Microseconds(),
		TypeIntra: graph.TypeIntra.String(), TypeInter: graph.TypeInter.String(), SameChannels: graph.SameChannels,
	}
	for _, ch := range graph.Channels {
		j.Channels = append(j.Channels, jsonChannel{ch.GPUs, net(ch.In), net(ch.Out)})
	}
	return j
}

func newJSONRank(k *search.Connection, rank int) jsonRank {
	j := jsonRank{Rank: rank}
	for ch := range k.Collective {
		at := k.Rings.Index(ch, rank)
		p := k.Trees.At(ch, rank)
		j.Prev, j.Next = append(j.Prev, k.Rings.At(ch, at-1)), append(j.Next, k.Rings.At(ch, at+1))
		j.Up, j.Down = append(j.Up, p.Up), append(j.Down, append([]int{}, p.Down()...))
	}
	return j
}
