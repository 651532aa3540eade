package topo

// toNIC appends the links from a rank to a NET of its machine.
func (c *Cluster) toNIC(route []int, rank, net int) []int {
	node, gpu := c.NodeOf(rank), c.GPU(rank)
	m := c.At(node)
	if cpu := m.hostOf(gpu); c.ThroughHost && cpu >= 0 {
		route = c.appendPath(route, node, m.Path(gpu, cpu))
		return c.appendPath(route, node, m.Path(cpu, m.NETs[net]))
	}
	return c.appendPath(route, node, m.Path(gpu, m.NETs[net]))
}

// fromNIC appends the links from a NET of its machine to a rank.
func (c *Cluster) fromNIC(route []int, rank, net int) []int {
	node, gpu := c.NodeOf(rank), c.GPU(rank)
	m := c.At(node)
	if cpu := m.hostOf(gpu); c.ThroughHost && cpu >= 0 {
		route = c.appendPath(route, node, m.Path(m.NETs[net], cpu))
		return c.appendPath(route, node, m.Path(cpu, gpu))
	}
	return c.appendPath(route, node, m.Path(m.NETs[net], gpu))
}

// hostOf returns the CPU next to a GPU, or -1 if the machine has none.
func (s *System) hostOf(gpu int) int {
	host := -1
	for _, cpu := range s.CPUs {
		if host < 0 || len(s.Path(gpu, cpu).Links) < len(s.Path(gpu, host).Links) {
			host = cpu
		}
	}
	return host
}
