package topo

// Place tells where a link of the cluster is: on which machine, or at which
// group of leaf switches, numbered on from the machines; and which of the
// place's links it is. Machines have the same links in the same order, and so
// have groups of leaves, which are numbered on from those.
func (c *Cluster) Place(link int) (place, local int) {
	m, cables := c.Machine, 2*len(c.Machine.NETs)
	switch {
	case link < c.cables():
		return link / len(m.Links), link % len(m.Links)
	case link < c.trunks():
		link -= c.cables()
		return link / cables, len(m.Links) + link%cables
	default:
		link -= c.trunks()
		return c.Nodes + link/cables, len(m.Links) + cables + link%cables
	}
}

// Places returns the number of places, and how many links a place may have.
func (c *Cluster) Places() (places, links int) {
	leaves := (c.Nodes + c.Fabric.NodesPerLeaf - 1) / c.Fabric.NodesPerLeaf
	return c.Nodes + leaves, len(c.Machine.Links) + 4*len(c.Machine.NETs)
}

// LinkAt returns the number of a link by its place.
func (c *Cluster) LinkAt(place, local int) int {
	m, cables := len(c.Machine.Links), 2*len(c.Machine.NETs)
	switch {
	case local < m:
		return place*m + local
	case local < m+cables:
		return c.cables() + place*cables + local - m
	default:
		return c.trunks() + (place-c.Nodes)*cables + local - m - cables
	}
}
