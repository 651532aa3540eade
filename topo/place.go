package topo

// Place tells where a link of the cluster is, and which of the place's links it
// is. Places are the machines, with the cables of their ports, and then, tier by
// tier, the machines below one group of switches, with the trunks up from there.
// Places of a tier have the same links in the same order.
func (c *Cluster) Place(link int) (place, local int) {
	if link < c.cables() {
		return link / c.links, link % c.links
	}
	firstPlace, firstLocal := 0, c.links
	for i := range c.tiers {
		t := &c.tiers[i]
		places, links := c.placesOf(i)
		if link < t.First+t.Links {
			return firstPlace + (link-t.First)/links, firstLocal + (link-t.First)%links
		}
		if i > 0 {
			firstPlace += places
		} else {
			firstPlace = c.Nodes
		}
		firstLocal += links
	}
	panic("topo: no such link")
}

// placesOf returns how many places hold the links of a tier, and how many each.
func (c *Cluster) placesOf(tier int) (places, links int) {
	places = c.Nodes
	if tier > 0 {
		below := &c.tiers[tier-1]
		places = below.Groups / below.Rails
	}
	return places, c.tiers[tier].Links / places
}

// Places returns the number of places, and how many links are told apart within
// places.
func (c *Cluster) Places() (places, links int) {
	places, links = c.Nodes, c.links
	for i := range c.tiers {
		more, each := c.placesOf(i)
		if i > 0 {
			places += more
		}
		links += each
	}
	return places, links
}

// LinkAt returns the number of a link by its place.
func (c *Cluster) LinkAt(place, local int) int {
	local -= c.links
	if local < 0 {
		return place*c.links + local + c.links
	}
	for i := range c.tiers {
		places, links := c.placesOf(i)
		if local < links {
			return c.tiers[i].First + place*links + local
		}
		if i > 0 {
			place -= places
		} else {
			place -= c.Nodes
		}
		local -= links
	}
	panic("topo: no such link")
}

// Below returns the machines that a link serves: the one that it is in or at, or
// those below the switches that it leads up from.
func (c *Cluster) Below(link int) (first, count int) {
	if link < c.cables() {
		return link / c.links, 1
	}
	t := c.tierOf(link)
	if t.level == 0 {
		return (link - t.First) / 2 / c.ports, 1
	}
	below := &c.tiers[t.level-1]
	first = (link - t.First) / 2 / t.each / below.Rails * below.Nodes
	return first, min(below.Nodes, c.Nodes-first)
}

// BetweenSwitches tells whether a link joins two switches of the fabric.
func (c *Cluster) BetweenSwitches(link int) bool {
	return link >= c.cables() && c.tierOf(link).level > 0
}

// Opposite returns the link that carries data the other way over the same cable of
// the fabric.
func (c *Cluster) Opposite(link int) int {
	if (link-c.tierOf(link).First)%2 == 0 {
		return link + 1
	}
	return link - 1
}

// LinkKind says what a link joins, whichever one it is: "GPU > NVS", "NET > leaf",
// "spine > leaf".
func (c *Cluster) LinkKind(link int) string {
	if link < c.cables() {
		m := c.At(link / c.links)
		l := m.Links[link%c.links]
		return m.Nodes[l.From].Type.String() + " > " + m.Nodes[l.To].Type.String()
	}
	t := c.tierOf(link)
	lower := NET.String()
	if t.level > 0 {
		lower = c.tiers[t.level-1].Name
	}
	return c.directed(link, [2]string{lower, t.Name})
}
