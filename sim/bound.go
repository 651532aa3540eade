package sim

import (
	"tutti/model"
	"tutti/model/schedule"
	"tutti/model/units"
	"tutti/topo"
)

// Bound returns a time that no algorithm beats on a cluster: that of the bytes
// which must leave each GPU, and each machine, at the full rate of all its links
// and ports. What leaves is least where every part of the data is reduced before
// it leaves and copied after it arrives; switches that reduce halve it. Source:
// Patarasuk and Yuan, 2009, for AllReduce; the others follow from each output
// having to arrive once.
func Bound(t schedule.Task, c *topo.Cluster) units.Time {
	bound := cut(t, c.Ranks(), 1, slowest(t, c, gpuRate), reducesInSwitch(t.Algorithm))
	ofNode := func(c *topo.Cluster, node int) units.Rate { return portRate(c.At(node)) }
	switch inNetwork := t.Algorithm == model.CollNet || t.Algorithm == model.CollNetChain || t.Algorithm == model.NVLS; {
	case c.Nodes == 1:
	case c.Even() || t.Collective == model.AllReduce || t.Collective == model.SendRecv || t.Collective.Rooted():
		bound = max(bound, cut(t, c.Nodes, c.RanksPerNode(), slowest(t, c, ofNode), inNetwork))
	case t.Collective == model.Exchange: // who is where decides
	default:
		for node := range c.Nodes {
			bound = max(bound, uneven(t, c.RanksOn(node), ofNode(c, node)))
		}
	}
	return bound
}

// uneven returns the time for what a machine with so many of the ranks must send
// or be sent, in collectives in which each rank has a block of its own.
func uneven(t schedule.Task, ranks int, rate units.Rate) units.Time {
	bytes := float64(t.Bytes()) * (float64(t.Ranks-ranks) / float64(t.Ranks))
	if t.Collective == model.AllToAll {
		bytes *= float64(ranks)
	}
	return units.FromMicroseconds(bytes / float64(rate) * 1e6)
}

func reducesInSwitch(a model.Algorithm) bool { return a == model.NVLS || a == model.NVLSTree }

// cut returns the time for what must leave one of n parts of so many ranks each.
func cut(t schedule.Task, n, ranks int, rate units.Rate, reduces bool) units.Time {
	if n < 2 || rate == 0 {
		return 0
	}
	share := float64(n-1) / float64(n)
	bytes := float64(t.Bytes())
	switch t.Collective {
	case model.AllReduce:
		if bytes *= 2 * share; reduces {
			bytes = float64(t.Bytes())
		}
	case model.AllGather, model.ReduceScatter:
		bytes *= share
		if t.Collective == model.AllGather && reduces {
			bytes = float64(t.Bytes()) / float64(n)
		}
	case model.AllToAll:
		bytes *= share * float64(ranks)
	case model.SendRecv:
	case model.Exchange:
		if t.Peer(0)/ranks == 0 && ranks > 1 {
			return 0
		}
		if t.Ranks%2 == 0 && n%2 == 0 {
			bytes *= float64(ranks)
		}
	}
	return units.FromMicroseconds(bytes / float64(rate) * 1e6)
}

// slowest returns the least rate of the machines that must send.
func slowest(t schedule.Task, c *topo.Cluster, rate func(c *topo.Cluster, node int) units.Rate) (least units.Rate) {
	nodes := c.Nodes
	if t.Collective == model.Exchange && t.Ranks%2 == 1 && nodes > 1 {
		nodes-- // the last rank has nobody to swap with
	}
	var last *topo.System
	for node := range nodes {
		if m := c.At(node); m != last {
			if r := rate(c, node); last == nil || r < least {
				least = r
			}
			last = m
		}
	}
	return least
}

// gpuRate is what all links of a GPU carry out of it, of the machine's GPU with
// the least NVLinks or else PCI lanes.
func gpuRate(c *topo.Cluster, node int) (least units.Rate) {
	m := c.At(node)
	for rank := c.FirstRank(node); rank < c.FirstRank(node+1); rank++ {
		rate := units.Rate(0)
		for _, l := range m.Nodes[c.GPU(rank)].Out {
			rate += m.Links[l].Rate
		}
		if least == 0 || rate < least {
			least = rate
		}
	}
	return least
}

// portRate is what all ports of a machine carry together.
func portRate(m *topo.System) (sum units.Rate) {
	for _, net := range m.NETs {
		if out := m.Nodes[net].Out; len(out) > 0 {
			sum += m.Links[out[0]].Rate
		}
	}
	return sum
}
