package topo

import (
	"fmt"
	"slices"

	"tutti/model/splitmix"
	"tutti/model/units"
)

// Tier is a level of switches as it stands in a cluster, with the cables below.
type Tier struct {
	// Name is leaf, spine or core.
	Name string
	// Groups and Switches count them in the whole cluster; Cables are those from
	// its switches down.
	Groups, Switches, Cables int
	// Down and Up are how many ports of a switch are in use either way where all
	// machines are there that it has room for.
	Down, Up int
	// CableRate is that of one cable, the fastest where rails or machines differ.
	CableRate units.Rate
	// Capacity is what all cables carry, one way.
	Capacity units.Rate
	// First is the number of the tier's first link, and Links how many it has,
	// both ways ([Cluster.Link]). Under adaptive routing the cables up from a group
	// of switches are one link.
	First, Links int

	// Nodes is how many machines are below a group; Rails how many groups there
	// are side by side for them, 1 where a group joins all rails. Groups are
	// numbered by machines, then by rail.
	Nodes, Rails int
	// Planes is how many switches a group has. One has cables, Parallel of them
	// each, to one switch of a group below; that one has them to Parents switches
	// of this group, which follow each other.
	Planes, Parents, Parallel int

	level  int
	pooled bool
	each   int          // trunks from a group below
	rates  []units.Rate // of those, by rail
}

// port is a NET of a machine.
type port struct{ node, net int }

// build lays out the tiers for the machines.
func (c *Cluster) build(rails int) {
	first := c.cables()
	var down []units.Rate // what comes up into a group, by rail where they are apart
	for i, l := range c.Fabric.Levels {
		t := Tier{
			Name: LevelName(i), First: first, level: i,
			Nodes: l.Nodes, Rails: 1, Planes: l.Switches, Parents: 1, Parallel: l.Links, each: 1,
			pooled: i > 0 && c.Fabric.Routing == Adaptive,
		}
		if t.Nodes == 0 {
			t.Nodes = c.Nodes
		}
		if l.PerRail {
			t.Rails = rails
		}
		t.Groups = (c.Nodes + t.Nodes - 1) / t.Nodes * t.Rails
		t.Switches = t.Groups * t.Planes
		if i == 0 {
			down = c.buildPorts(&t)
		} else {
			down = t.buildTrunks(&c.tiers[i-1], l, down)
		}
		first += t.Links
		c.tiers = append(c.tiers, t)
	}
}

// buildPorts lays out the cables from the machines to the leaves. It returns
// what the ports of a leaf carry together, by rail where they are apart, below
// machines with the fastest.
func (c *Cluster) buildPorts(t *Tier) []units.Rate {
	down := make([]units.Rate, t.Rails)
	for _, k := range c.kinds {
		own, ports := make([]units.Rate, t.Rails), make([]int, t.Rails)
		for net, rail := range k.rails {
			rate := c.portRate(k.System, net)
			t.CableRate = max(t.CableRate, rate)
			t.Capacity += units.Rate(rate * units.Rate(k.nodes))
			own[rail%t.Rails] += units.Rate(rate * units.Rate(t.Nodes))
			ports[rail%t.Rails] += t.Nodes
			t.Down = max(t.Down, ports[rail%t.Rails])
		}
		for rail, rate := range own {
			down[rail] = max(down[rail], rate)
		}
		t.Cables += k.nodes * len(k.NETs)
	}
	t.Links = 2 * c.Nodes * c.ports
	return down
}

// portRate is what the cable of a machine's NET carries.
func (c *Cluster) portRate(m *System, net int) units.Rate {
	rate := m.Links[m.Nodes[m.NETs[net]].Out[0]].Rate
	if cable := c.Fabric.Levels[0].Rate; cable > 0 {
		rate = min(rate, cable)
	}
	return rate
}

// buildTrunks lays out the cables between two tiers. Of the lower one's groups,
// down is what comes up into each; so is the result for the upper one's.
func (t *Tier) buildTrunks(below *Tier, l Level, down []units.Rate) []units.Rate {
	t.Parents = t.Planes / below.Planes
	cables := below.Planes * t.Parents * t.Parallel // from a group below
	t.Cables = below.Groups * cables
	if !t.pooled {
		t.each = cables
	}
	t.Links = 2 * below.Groups * t.each
	below.Up = t.Parents * t.Parallel
	children := (t.Nodes + below.Nodes - 1) / below.Nodes // groups below a group, of one rail
	t.Down = children * below.Rails / t.Rails * t.Parallel
	up := make([]units.Rate, t.Rails)
	for rail, rate := range down {
		cable := l.Rate
		if cable == 0 {
			cable = rate / units.Rate(cables)
			if l.Oversubscription > 0 {
				cable /= units.Rate(l.Oversubscription)
			}
		}
		group := cable * units.Rate(cables)
		t.CableRate = max(t.CableRate, cable)
		t.Capacity += units.Rate(group * units.Rate(below.Groups/below.Rails))
		t.rates = append(t.rates, group/units.Rate(t.each))
		up[rail%t.Rails] += units.Rate(group * units.Rate(children))
	}
	return up
}

// rate returns what a trunk carries.
func (t *Tier) rate(trunk int) units.Rate { return t.rates[trunk/t.each%len(t.rates)] }

// Tiers returns the levels of switches, from the leaves up: none for one
// machine. Links within machines have the numbers below the first tier's.
func (c *Cluster) Tiers() []Tier { return c.tiers }

// Rail returns the rail that a NET of a machine is on, in a cluster of several.
func (c *Cluster) Rail(node, net int) int { return c.kinds[c.Kind(node)].rails[net] }

// Rails returns the rail of each NET of one of the kinds of machines; nil in a cluster
// of one.
func (c *Cluster) Rails(kind int) []int { return c.kinds[kind].rails }

// tierOf returns the tier of a link that is not inside a machine.
func (c *Cluster) tierOf(link int) *Tier {
	i := 0
	for i < len(c.tiers)-1 && link >= c.tiers[i+1].First {
		i++
	}
	return &c.tiers[i]
}

// group is the index of the group of a level's switches that a port is below.
func (c *Cluster) group(level int, p port) int {
	t := &c.tiers[level]
	return p.node/t.Nodes*t.Rails + c.Rail(p.node, p.net)%t.Rails
}

// meet returns the lowest level that joins two ports.
func (c *Cluster) meet(a, b port) int {
	level := 0
	for c.group(level, a) != c.group(level, b) {
		level++
	}
	return level
}

// climb appends the links from a port up to a level. The one way down from there
// has the numbers that follow theirs. Equal picks lead to the same switch from
// everywhere below it.
func (c *Cluster) climb(links []int, p port, level int, by picks) []int {
	links = append(links, c.tiers[0].First+2*(p.node*c.ports+p.net))
	plane := 0
	for i := 1; i <= level; i++ {
		t, trunk := &c.tiers[i], c.group(i-1, p)
		if !t.pooled {
			trunk = (trunk*c.tiers[i-1].Planes+plane)*t.ways() + by[i]
			plane = plane*t.Parents + by[i]/t.Parallel
		}
		links = append(links, t.First+2*trunk)
	}
	return links
}

// descend appends the links of climb, the other way.
func (c *Cluster) descend(links []int, p port, level int, by picks) []int {
	start := len(links)
	links = c.climb(links, p, level, by)
	down := links[start:]
	slices.Reverse(down)
	for i := range down {
		down[i]++
	}
	return links
}

// picks is which cable up a flow takes at each level of switches.
type picks [MaxLevels]int

// ways is how many cables a switch below has to this tier.
func (t *Tier) ways() int { return t.Parents * t.Parallel }

// picked returns what ECMP's hash gives.
func (c *Cluster) picked(hash uint64) (by picks) {
	for i := range c.tiers {
		by[i] = int(splitmix.Mix(hash+uint64(i)) % uint64(c.tiers[i].ways()))
	}
	return by
}

// hash stands for the fields of a flow's packets that switches hash.
func (c *Cluster) hash(a, b port, flow int) uint64 {
	h := c.Fabric.Seed
	for _, field := range []int{a.node, a.net, b.node, b.net, flow} {
		h = splitmix.Mix(h + uint64(field))
	}
	return h
}

// Reduces tells whether the switches can reduce what the NETs of this number
// send, of all machines (SHARP): whether all can up to the level that joins
// them.
func (c *Cluster) Reduces(net int) bool {
	if c.Nodes == 1 {
		return false
	}
	for i := range c.root(net) + 1 {
		if !c.Fabric.Levels[i].Reduces {
			return false
		}
	}
	return true
}

// ToRoot returns the links from a rank, by way of a NET, to the switch at which
// the NETs of this number meet: the root of an in-network reduction. From every
// rank it is the same switch. It panics for a cluster of one machine.
func (c *Cluster) ToRoot(rank, net int) []int {
	node := c.NodeOf(rank)
	links := c.toNIC(nil, rank, net)
	return c.climb(links, port{node, net}, c.root(net), c.picked(c.hash(port{}, port{net: net}, 0)))
}

// FromRoot returns the links from the switch that ToRoot leads to back to a rank.
func (c *Cluster) FromRoot(rank, net int) []int {
	node := c.NodeOf(rank)
	links := c.descend(nil, port{node, net}, c.root(net), c.picked(c.hash(port{}, port{net: net}, 0)))
	return c.fromNIC(links, rank, net)
}

// root is the level at which the NETs of this number meet.
func (c *Cluster) root(net int) int { return c.meet(port{0, net}, port{c.Nodes - 1, net}) }

// LinkName says what a link joins, as in "node 3 NET mlx5_0 > leaf 24",
// "leaf 24 > spine 7 cable 1" and, where cables are one trunk, "leaf 24 >
// spines 0 to 31".
func (c *Cluster) LinkName(id int) string {
	if id < c.cables() {
		node := id / c.links
		l := c.At(node).Links[id%c.links]
		return c.nodeName(node, l.From) + " > " + c.nodeName(node, l.To)
	}
	t := c.tierOf(id)
	trunk := (id - t.First) / 2
	if t.level == 0 {
		p := port{trunk / c.ports, trunk % c.ports}
		return c.directed(id, [2]string{c.nodeName(p.node, c.At(p.node).NETs[p.net]), fmt.Sprintf("leaf %d", c.group(0, p))})
	}
	below, group := &c.tiers[t.level-1], trunk/t.each
	if t.pooled {
		return c.directed(id, [2]string{below.groupName(group), t.groupName(t.above(below, group))})
	}
	return c.directed(id, t.cableEnds(below, group, trunk/t.ways()%below.Planes, trunk%t.ways()))
}

// nodeName names a part of a machine.
func (c *Cluster) nodeName(node, part int) string {
	n := c.At(node).Nodes[part]
	return fmt.Sprintf("node %d %v %s", node, n.Type, n.Name)
}

// groupName names the switches of a group.
func (t *Tier) groupName(group int) string {
	if t.Planes == 1 {
		return fmt.Sprintf("%s %d", t.Name, group)
	}
	return fmt.Sprintf("%ss %d to %d", t.Name, group*t.Planes, (group+1)*t.Planes-1)
}
